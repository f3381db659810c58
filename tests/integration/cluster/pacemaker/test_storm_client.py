"""Storm's own clients, unmodified, against our server; and Storm's own Pacemaker with our messages."""

from __future__ import annotations

import base64
import contextlib
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest
from cluster_records import beat
from storm_peer import StormPeer, storm_peer, storm_server
from waiting import eventually

from storm_on_spark.cluster.heartbeats.connection import Connection
from storm_on_spark.cluster.heartbeats.login import reader_login, writer_login
from storm_on_spark.cluster.heartbeats.pulses import PulseReader
from storm_on_spark.cluster.heartbeats.settings import HeartbeatSettings, PacemakerSettings
from storm_on_spark.cluster.heartbeats.values import unpack, worker_path
from storm_on_spark.cluster.heartbeats.writer import PacemakerWriter
from storm_on_spark.cluster.pacemaker.login.identities import LoginSettings, daemon_login
from storm_on_spark.cluster.pacemaker.messages import Message, MessageType, Nodes, Pulse, Records
from storm_on_spark.cluster.pacemaker.server import PacemakerServer
from storm_on_spark.testing.servers.pacemaker_client import RawClient

pytestmark = pytest.mark.integration

T = MessageType
PAYLOAD = {"pacemaker.auth.payload": "some username:some password"}
JAAS = """PacemakerDigest {
    any.Module required
    username="some username"
    password="some password";
};
"""
"""As in Storm's documentation, but with a module and a flag: Java refuses the file without them."""
BEAT = "/workerbeats/words-1/a-6700"


X = TypeVar("X")


def value(text: bytes) -> str:
    return base64.b64encode(text).decode()


@contextlib.contextmanager
def ours(**conf: object) -> Iterator[PacemakerServer]:
    with PacemakerServer(conf, port=0) as server:
        yield server


@pytest.fixture(scope="module")
def jaas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("jaas") / "digest.jaas"
    file.write_text(JAAS)
    file.chmod(0o600)
    return file


@pytest.fixture(scope="module")
def server() -> Iterator[PacemakerServer]:
    with ours() as found:
        yield found


@pytest.fixture(scope="module")
def client(server: PacemakerServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StormPeer]:
    conf = {"pacemaker_port": server.port, "pacemaker_auth_method": "NONE", "pacemaker_servers": "[127.0.0.1]"}
    with storm_peer("client", tmp_path_factory.mktemp("client"), **conf) as peer:
        yield peer


def test_every_operation_of_storms_client(client: StormPeer) -> None:
    for how in ("send 127.0.0.1", "pool", "all"):
        said = [
            client.ask(how, *request)
            for request in (
                ("CREATE_PATH", "/c/created"),
                ("SEND_PULSE", "/c/t-1/a", value(b"1")),
                ("EXISTS", "/c/t-1/a"),
                ("EXISTS", "/c/created"),
                ("EXISTS", "/c/t-2"),
                ("GET_PULSE", "/c/t-1/a"),
                ("GET_PULSE", "/c/nothing"),
                ("GET_ALL_NODES_FOR_PATH", "/c"),
                ("GET_ALL_PULSE_FOR_PATH", "/c"),
                ("DELETE_PULSE_ID", "/c/t-1/a"),
                ("GET_PULSE", "/c/t-1/a"),
                ("DELETE_PATH", "/c"),
                ("EXISTS", "/c/created"),
            )
        ]
        assert said == [
            "CREATE_PATH_RESPONSE",
            "SEND_PULSE_RESPONSE",
            "EXISTS_RESPONSE true",
            "EXISTS_RESPONSE true",
            "EXISTS_RESPONSE false",
            f"GET_PULSE_RESPONSE /c/t-1/a={value(b'1')}",
            "GET_PULSE_RESPONSE /c/nothing=",
            "GET_ALL_NODES_FOR_PATH_RESPONSE created,t-1",
            f"GET_ALL_PULSE_FOR_PATH_RESPONSE /c/t-1/a={value(b'1')}",
            "DELETE_PULSE_ID_RESPONSE",
            "GET_PULSE_RESPONSE /c/t-1/a=",
            "DELETE_PATH_RESPONSE",
            "EXISTS_RESPONSE false",
        ]


def test_storms_state_storage(client: StormPeer, server: PacemakerServer) -> None:
    assert client.ask("get", BEAT) == "nothing"
    assert client.ask("set", BEAT, 1_700_000_000) == "done"
    assert client.ask("set", BEAT, 1_700_000_003) == "done"
    assert client.ask("set", "/workerbeats/words-1/b-6701", 1_700_000_001) == "done"
    assert client.ask("get", BEAT) == "seconds 1700000003"
    assert client.ask("children", "/workerbeats") == "words-1"
    assert client.ask("children", "/workerbeats/words-1") == "a-6700 b-6701"
    assert client.ask("delete", "/workerbeats/words-1") == "done"
    assert client.ask("children", "/workerbeats") == ""
    assert server.clients.metrics.storm()["pacemaker:send-pulse-count"] >= 3


def test_a_large_value(client: StormPeer) -> None:
    large = value(bytes(range(256)) * 2000)
    assert client.ask("send 127.0.0.1 SEND_PULSE", "/large", large) == "SEND_PULSE_RESPONSE"
    assert client.ask("send 127.0.0.1 GET_PULSE", "/large") == f"GET_PULSE_RESPONSE /large={large}"


def test_storms_workers_write_without_a_login_where_that_is_switched_on(
    tmp_path: Path, server: PacemakerServer
) -> None:
    with ours(**PAYLOAD, **{"pacemaker.auth.method": "DIGEST", "pacemaker.auth.writes": False}) as found:
        conf = {"pacemaker_port": found.port, "pacemaker_auth_method": "NONE"}
        with storm_peer("client", tmp_path, **conf) as worker:
            assert worker.ask("send 127.0.0.1 SEND_PULSE", BEAT, value(b"1")) == "SEND_PULSE_RESPONSE"
            assert worker.ask("send 127.0.0.1 GET_PULSE", BEAT) == "NOT_AUTHORIZED"
        with RawClient(found.port) as nimbus:
            nimbus.log_in(daemon_login(LoginSettings.of(PAYLOAD)))
            assert nimbus.ask(T.GET_PULSE, BEAT).data == Pulse(BEAT, b"1")


def test_storms_clients_with_digest_close_their_own_channel_with_either_server(tmp_path: Path, jaas: Path) -> None:
    """The login is right, then the client closes the channel and hears no answer. Its first request may be carried out.

    So do `PacemakerClientPool` and, by way of it, `PaceMakerStateStorage`, which asks ten times: two minutes.
    """
    digest = {"pacemaker_auth_method": "DIGEST", "java_security_auth_login_config": str(jaas)}
    with (
        storm_server(tmp_path / "storm", **digest) as storms,
        ours(**PAYLOAD, **{"pacemaker.auth.method": "DIGEST"}) as found,
    ):

        def written(port: int, how: str) -> str:
            conf = {"pacemaker_port": port, "pacemaker_servers": "[127.0.0.1]", **digest}
            with storm_peer("client", tmp_path / f"{port}-{how[:4]}", **conf) as client:
                return client.ask(how, "SEND_PULSE", BEAT, value(b"1"))

        # At once: each client tries for eleven seconds.
        tried = [(storms, "send 127.0.0.1"), (found.port, "send 127.0.0.1"), (found.port, "pool")]
        with ThreadPoolExecutor(len(tried)) as threads:
            for said in threads.map(written, *zip(*tried, strict=True)):
                assert said.endswith("couldn't get response after 10 attempts."), said
        assert found.clients.metrics.prometheus().count("pacemaker_logins_total 2.0\n") == 1
        for port in (storms, found.port):
            with RawClient(port) as nimbus:
                nimbus.log_in(daemon_login(LoginSettings.of(PAYLOAD)))
                nimbus.ask(T.SEND_PULSE, Pulse("/x", b"2"))
                assert nimbus.ask(T.GET_PULSE, "/x").data == Pulse("/x", b"2")
            with RawClient(port) as stranger:
                assert stranger.ask(T.GET_PULSE, "/x").type is T.NOT_AUTHORIZED


def test_our_clients_log_in_at_two_of_storms_servers_and_one_is_enough(tmp_path: Path, jaas: Path) -> None:
    digest = {"pacemaker_auth_method": "DIGEST", "java_security_auth_login_config": str(jaas)}
    mine = {key.replace("_", "."): value for key, value in digest.items()}
    with contextlib.ExitStack() as stack:
        running = [contextlib.ExitStack(), contextlib.ExitStack()]
        ports = []
        for number, each in enumerate(running):
            stack.enter_context(each)
            ports.append(each.enter_context(storm_server(tmp_path / str(number), **digest)))
        names = tuple(f"127.0.0.1:{port}" for port in ports)
        logins = HeartbeatSettings.from_conf(mine)
        settings = PacemakerSettings(names, timeout_secs=10.0)
        readers = [
            stack.enter_context(PulseReader(Connection(name, settings, reader_login(logins.login)(name))))
            for name in names
        ]
        writer = stack.enter_context(PacemakerWriter(settings, writer_login(logins, "words-1"), random.Random(1)))
        path = worker_path(beat("words-1"))

        def holding(at: float) -> list[int]:
            writer.put(beat("words-1", at))
            return [number for number, reader in enumerate(readers) if reader.read_tree("/workerbeats").get(path)]

        [used] = eventually(lambda: holding(1.0))
        running[used].close()
        left = readers[1 - used]

        def moved() -> bool:
            writer.put(beat("words-1", 2.0))
            found = left.read_tree("/workerbeats").get(path)
            return found is not None and unpack(found, path) == beat("words-1", 2.0)

        eventually(moved)
        left.delete("/workerbeats/words-1")


def test_our_messages_with_storms_own_pacemaker(tmp_path: Path) -> None:
    """The operations of both servers, one after the other: the differences are those of docs/pacemaker.md."""
    with contextlib.ExitStack() as stack:
        storms = stack.enter_context(storm_server(tmp_path, pacemaker_auth_method="NONE"))
        storm = stack.enter_context(RawClient(storms))
        mine = stack.enter_context(RawClient(stack.enter_context(ours()).port))

        def both(type_: MessageType, data: Pulse | str) -> tuple[Message, Message]:
            return storm.ask(type_, data), mine.ask(type_, data)

        for type_, data in (
            (T.SEND_PULSE, Pulse("/a/b/c", b"1")),
            (T.SEND_PULSE, Pulse("/a/bx/d", b"2")),
            (T.EXISTS, "/a/b/c"),
            (T.EXISTS, "/a/x"),
            (T.GET_PULSE, "/a/b/c"),
            (T.GET_PULSE, "/nothing"),
            (T.GET_ALL_NODES_FOR_PATH, "/a/bx"),
            (T.CREATE_PATH, "/new"),
        ):
            storms_answer, our_answer = both(type_, data)
            assert storms_answer == our_answer
        # Where Storm's has a stub, or a fault.
        storms_answer, our_answer = both(T.EXISTS, "/new")
        assert (storms_answer.data, our_answer.data) == (False, True)
        storms_answer, our_answer = both(T.EXISTS, "/a/b")
        assert (storms_answer.data, our_answer.data) == (False, True)
        storms_answer, our_answer = both(T.GET_ALL_NODES_FOR_PATH, "/a/b")
        assert isinstance(storms_answer.data, Nodes)
        assert (sorted(storms_answer.data.ids), our_answer.data) == (["c", "x"], Nodes(("c",)))
        storms_answer, our_answer = both(T.GET_ALL_PULSE_FOR_PATH, "/a/b")
        assert (storms_answer.data, our_answer.data) == (None, Records((Pulse("/a/b/c", b"1"),)))
        for type_, data in ((T.DELETE_PULSE_ID, "/a/bx/d"), (T.DELETE_PATH, "/a/b"), (T.EXISTS, "/a/b/c")):
            storms_answer, our_answer = both(type_, data)
            assert storms_answer == our_answer
