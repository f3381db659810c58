from __future__ import annotations

import logging
import threading
import time
from collections import deque

import pytest
from kazoo.exceptions import NoAuthError
from waiting import eventually

from storm_on_spark.cluster.errors import UnavailableError
from storm_on_spark.cluster.paths import STORM
from storm_on_spark.cluster.zookeeper import ZooKeeperEnsemble, ZooKeeperServer, ZooKeeperSession, ZooKeeperSettings
from storm_on_spark.runtime.processes.server import free_port
from storm_on_spark.testing.faults.connections import TcpProxy, expire_session


@pytest.mark.representative
def test_an_expired_session_is_followed_by_another(connect) -> None:
    session = connect()
    states: deque[tuple[str, str]] = deque()
    session.add_listener(lambda state: states.append((state, threading.current_thread().name)))
    before = session.session_id
    assert expire_session(session) == before
    # That it is connected at first may be told late.
    eventually(lambda: [state for state, _ in states][-3:] == ["SUSPENDED", "LOST", "CONNECTED"])
    assert {thread for _, thread in states} == {"zookeeper-listeners"}
    assert session.session_id != before
    assert not session.lives(before)


def test_listeners_may_ask_zookeeper_and_fail(connect, caplog) -> None:
    session = connect()
    found: list[list[str]] = []

    def ask(state: str) -> None:
        if state == "CONNECTED":
            found.append(session.client.get_children("/"))
        raise ValueError(f"of {state}")

    remove = session.add_listener(ask)
    expire_session(session)
    # It is logged after the listener has returned, on its own thread.
    eventually(lambda: "ValueError: of CONNECTED" in caplog.text)
    remove()
    assert found
    assert "failed at CONNECTED" in caplog.text


def test_a_dead_line_is_noticed_though_somebody_keeps_asking(zookeeper, connect) -> None:
    with TcpProxy(zookeeper.connect_string) as proxy:
        session = connect(proxy.address)
        session_id = session.session_id
        assert not session.lives(session_id)
        session.proving = True
        eventually(lambda: session.lives(session_id))
        proxy.cut()
        cut_at = time.monotonic()
        while session.state == "CONNECTED":
            session.client.exists_async("/")
            time.sleep(0.02)
            assert time.monotonic() < cut_at + session.negotiated_timeout
        assert not session.lives(session_id)
        proxy.mend()
        eventually(lambda: session.state == "CONNECTED")
        assert session.session_id == session_id
        eventually(lambda: session.lives(session_id))


def test_nobody_waits_without_a_limit(zookeeper, connect) -> None:
    with TcpProxy(zookeeper.connect_string) as proxy:
        session = connect(proxy.address, connection_timeout_secs=0.5)
        proxy.cut()
        proxy.drop()
        eventually(lambda: session.state == "SUSPENDED")
        with pytest.raises(UnavailableError, match=r"has not answered within 0.5 s; the connection is SUSPENDED"):
            session.wait(session.client.exists_async("/"))
        proxy.mend()


def test_closing_does_not_wait_for_a_server_that_hangs(connect) -> None:
    with ZooKeeperServer(tick=0.2) as server:
        session = connect(server.connect_string, session_timeout_secs=4.0)
        server.pause()
        began = time.monotonic()
        session.close()
        assert time.monotonic() - began < 20
        server.resume()


def test_no_server(root: str) -> None:
    settings = ZooKeeperSettings(f"127.0.0.1:{free_port()}", root, connection_timeout_secs=0.3)
    with pytest.raises(
        UnavailableError, match=r"no ZooKeeper server of 127\.0\.0\.1:\d+ accepted a session within 0\.3 s"
    ):
        ZooKeeperSession(settings).start()


def test_nobody_waits_for_a_server_that_is_to_end(root: str) -> None:
    ended = threading.Event()
    threading.Timer(0.2, ended.set).start()
    settings = ZooKeeperSettings(f"127.0.0.1:{free_port()}", root, connection_timeout_secs=3600)
    with pytest.raises(UnavailableError, match=r"accepted a session before this was to end"):
        ZooKeeperSession(settings).start(ended)


def test_the_server_says_how_long_a_session_lives(connect) -> None:
    # At most what the server allows.
    assert connect(session_timeout_secs=60).negotiated_timeout == 30.0
    assert connect(session_timeout_secs=1.5).negotiated_timeout == 1.5


def test_folders(connect) -> None:
    session = connect()
    session.ensure_folders()
    session.ensure_folders()
    assert set(session.client.get_children(session.settings.root)) == set(STORM.nodes)


def test_with_authentication_others_see_nothing_and_no_log_has_the_secret(connect, caplog) -> None:
    caplog.set_level(logging.DEBUG)
    session = connect(auth_scheme="digest", auth_payload="storm:sesame")
    session.ensure_folders()
    stranger = connect()
    with pytest.raises(NoAuthError):
        stranger.client.get_children(session.paths.of("storms"))
    with pytest.raises(NoAuthError):
        stranger.client.create(session.paths.of("storms", "mine"))
    expire_session(session)
    eventually(lambda: session.state == "CONNECTED")
    assert session.client.get_children(session.paths.of("storms")) == []
    assert "sesame" not in caplog.text
    assert "sesame" not in repr(session.settings)


def test_a_session_survives_the_loss_of_the_ensembles_leader(connect) -> None:
    with ZooKeeperEnsemble(3, tick=0.2) as ensemble:
        session = connect(ensemble.connect_string, session_timeout_secs=4.0)
        session_id = session.session_id
        session.ensure_folders()
        for fault, repair in (("pause", "resume"), ("kill", "start")):
            leader = eventually(lambda: ensemble.leader)
            getattr(leader, fault)()
            # The first write that goes through tells that the others have a leader by now.
            eventually(lambda: _written(session))
            assert ensemble.leader is not leader
            getattr(leader, repair)()
            eventually(lambda leader=leader: leader.mode == "follower")
        assert session.session_id == session_id
        session.close()


def _written(session: ZooKeeperSession) -> bool:
    try:
        session.wait(session.client.set_async(session.paths.of("counter"), b"1"), timeout=1)
    except Exception:
        return False
    return True
