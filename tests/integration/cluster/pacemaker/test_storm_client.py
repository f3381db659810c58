"""Storm's own clients, unmodified, against our server; and Storm's own Pacemaker with our messages."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from storm_peer import StormPeer, storm_peer, storm_server

from storm_on_spark.cluster.pacemaker.messages import Message, MessageType, Nodes, Pulse, Records
from storm_on_spark.cluster.pacemaker.server import PacemakerServer
from storm_on_spark.cluster.pacemaker.settings import daemon_login
from storm_on_spark.testing.pacemaker import RawClient

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


def value(text: bytes) -> str:
    return base64.b64encode(text).decode()


@contextlib.contextmanager
def ours(**conf: object) -> Iterator[PacemakerServer]:
    with PacemakerServer({"pacemaker.port": 0, **conf}) as server:
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
    assert server.hall.metrics.storm()["pacemaker:send-pulse-count"] >= 3


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
            nimbus.log_in(daemon_login(PAYLOAD))
            assert nimbus.ask(T.GET_PULSE, BEAT).data == Pulse(BEAT, b"1")


def test_storms_client_with_digest_closes_its_own_channel_with_either_server(tmp_path: Path, jaas: Path) -> None:
    """Its login is right, its first request is carried out, and then it closes the channel and hears no answer."""
    digest = {"pacemaker_auth_method": "DIGEST", "java_security_auth_login_config": str(jaas)}
    with (
        storm_server(tmp_path / "storm", **digest) as storms,
        ours(**PAYLOAD, **{"pacemaker.auth.method": "DIGEST"}) as found,
    ):

        def written(port: int) -> str:
            with storm_peer("client", tmp_path / str(port), pacemaker_port=port, **digest) as client:
                return client.ask("send 127.0.0.1 SEND_PULSE", BEAT, value(b"1"))

        # At once: each client tries for eleven seconds.
        with ThreadPoolExecutor(2) as threads:
            for said in threads.map(written, (storms, found.port)):
                assert said.endswith("couldn't get response after 10 attempts."), said
        assert found.hall.metrics.prometheus().count("pacemaker_logins_total 1\n") == 1
        # Our own client's login works with Storm's server and with ours.
        for port in (storms, found.port):
            with RawClient(port) as nimbus:
                nimbus.log_in(daemon_login(PAYLOAD))
                nimbus.ask(T.SEND_PULSE, Pulse("/x", b"2"))
                assert nimbus.ask(T.GET_PULSE, "/x").data == Pulse("/x", b"2")
            with RawClient(port) as stranger:
                assert stranger.ask(T.GET_PULSE, "/x").type is T.NOT_AUTHORIZED


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
