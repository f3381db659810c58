"""A DRPC server over its three ports: requests, what topologies do with them, and what ends them."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
import trustme
from lengths import PATIENCE_SECS

from storm_on_spark import LocalDRPC
from storm_on_spark.api.errors import ConfigError, SetupError
from storm_on_spark.cluster.drpc.server import DRPCServer, Ports
from storm_on_spark.cluster.errors import AuthenticationError
from storm_on_spark.cluster.security.proofs import TokenAuth
from storm_on_spark.cluster.security.tokens import Tokens
from storm_on_spark.drpc import DRPCClient, DRPCExceptionType, DRPCExecutionException
from storm_on_spark.drpc.connection import Address, DRPCConnection
from storm_on_spark.drpc.interface import to_wire

ANY = Ports(0, 0, 0)
opened: list[DRPCClient | DRPCConnection] = []


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    yield
    while opened:
        opened.pop().close()


def connected(address: Address, service: str) -> DRPCConnection:
    connection = DRPCConnection(address, service, 20.0)
    opened.append(connection)
    return connection


def topology(server: DRPCServer) -> DRPCConnection:
    return connected(server.invocations, "DistributedRPCInvocations")


def client(server: DRPCServer, **conf) -> DRPCClient:
    address = server.calls
    if address.token_file is not None:
        conf["nimbus.auth.token.file"] = address.token_file
    found = DRPCClient({"drpc.servers": [address.host], **conf}, port=address.port, timeout_secs=20.0)
    opened.append(found)
    return found


class Answering(threading.Thread):
    """Answers the requests of a function until it has been asked for "end"."""

    def __init__(
        self, server: DRPCServer, answer: Callable[[DRPCConnection, object], None], function: str = "f"
    ) -> None:
        super().__init__(daemon=True)
        self._connection, self._answer, self._function = topology(server), answer, function

    def run(self) -> None:
        while True:
            for request in self._connection.call("fetchRequests", self._function, 10, 10_000):
                if request.func_args == "end":
                    self._connection.call("result", request.request_id, "ended")
                    self._connection.close()
                    return
                self._answer(self._connection, request)


def exclaim(connection: DRPCConnection, request) -> None:
    connection.call("result", request.request_id, request.func_args + "!")


@pytest.fixture
def server() -> Iterator[DRPCServer]:
    with DRPCServer({}, ANY) as server:
        yield server


def test_a_request_is_answered_over_thrift_and_http(server: DRPCServer) -> None:
    answering = Answering(server, exclaim)
    answering.start()
    with client(server) as thrift, httpx.Client(base_url=server.url) as http:
        assert [thrift.execute("f", text) for text in ("a", "ä€ \n", "")] == ["a!", "ä€ \n!", "!"]
        assert http.post("/drpc/f", content="in a body").text == "in a body!"
        assert http.get("/drpc/f/of%20the/path").text == "of the/path!"
        assert http.get("/drpc/f").text == http.get("/drpc/f/").text == "!"
        assert thrift.execute("f", "end") == "ended"
    answering.join()


def test_a_fetch_without_waiting_returns_storms_empty_request(server: DRPCServer) -> None:
    found = topology(server).call("fetchRequest", "f")
    assert (found.request_id, found.func_args) == ("", "")


@pytest.mark.parametrize(
    ("why", "kind", "status"),
    [
        (None, DRPCExceptionType.FAILED_REQUEST, 400),
        (DRPCExecutionException("broken", DRPCExceptionType.INTERNAL_ERROR), DRPCExceptionType.INTERNAL_ERROR, 500),
    ],
)
def test_a_request_that_a_topology_fails(server: DRPCServer, why, kind: DRPCExceptionType, status: int) -> None:
    def fail(connection: DRPCConnection, request) -> None:
        if why is None:
            connection.call("failRequest", request.request_id)
        else:
            connection.call("failRequestV2", request.request_id, to_wire(why))

    answering = Answering(server, fail)
    answering.start()
    with client(server) as thrift:
        with pytest.raises(DRPCExecutionException, match=str(why or "the request failed")) as failed:
            thrift.execute("f", "x")
        assert failed.value.type is kind
        answered = httpx.get(f"{server.url}/drpc/f/x")
        assert (answered.status_code, answered.json()["error"]) == (status, kind.name)
        thrift.execute("f", "end")
    answering.join()


def test_a_result_for_an_unknown_id_and_a_second_one_change_nothing(server: DRPCServer) -> None:
    def twice(connection: DRPCConnection, request) -> None:
        connection.call("result", "unknown", "?")
        for result in ("first", "second"):
            connection.call("result", request.request_id, result)
        connection.call("failRequest", request.request_id)

    answering = Answering(server, twice)
    answering.start()
    with client(server) as thrift:
        assert [thrift.execute("f", "x") for _ in range(2)] == ["first", "first"]
        thrift.execute("f", "end")
    answering.join()
    assert len(server.broker.requests) == 0


def test_a_request_that_nobody_answers_times_out() -> None:
    with DRPCServer({"drpc.request.timeout.secs": 1}, ANY) as server, client(server) as thrift:
        with pytest.raises(DRPCExecutionException, match=r"'f' has not answered within 1 s") as failed:
            thrift.execute("f", "x")
        assert failed.value.type is DRPCExceptionType.SERVER_TIMEOUT
        answered = httpx.get(f"{server.url}/drpc/f/x", timeout=20)
        assert (answered.status_code, answered.json()["error"]) == (504, "SERVER_TIMEOUT")


def in_background(act: Callable[[], object]) -> tuple[threading.Thread, list[BaseException]]:
    raised: list[BaseException] = []

    def run() -> None:
        try:
            act()
        except Exception as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, raised


def wait_for_requests(server: DRPCServer, count: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECS
    while len(server.broker.requests) < count:
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_a_server_that_ends_answers_what_waits_at_once() -> None:
    with DRPCServer({}, ANY) as server:
        asking, raised = in_background(lambda: client(server).execute("f", "x"))
        local, raised_here = in_background(lambda: server.execute("f", "x"))
        fetched: list[object] = []
        fetching, broken = in_background(lambda: fetched.append(topology(server).call("fetchRequests", "g", 1, 60_000)))
        wait_for_requests(server, 2)
        began = time.monotonic()
    assert time.monotonic() - began < 30, "the topology would have waited for a minute"
    for thread in (asking, local, fetching):
        thread.join(PATIENCE_SECS)
        assert not thread.is_alive()
    kinds = [error.type for error in (*raised, *raised_here) if isinstance(error, DRPCExecutionException)]
    assert kinds == [DRPCExceptionType.SERVER_SHUTDOWN] * 2
    assert fetched == [[]] or broken
    with pytest.raises(DRPCExecutionException, match="has ended"):
        server.execute("f", "x")


def test_a_server_that_is_not_there_is_an_internal_error_and_so_is_one_that_goes() -> None:
    with DRPCServer({}, ANY) as server:
        thrift = client(server)
        asking, raised = in_background(lambda: thrift.execute("f", "x"))
        wait_for_requests(server, 1)
        thrift.close()
        asking.join(PATIENCE_SECS)
    with pytest.raises(DRPCExecutionException, match="can't be reached") as refused:
        thrift.execute("f", "x")
    assert [error.type for error in (*raised, refused.value)] == [DRPCExceptionType.INTERNAL_ERROR] * 2


def test_a_caller_that_goes_takes_its_request_along(server: DRPCServer) -> None:
    thrift = client(server)
    asking, _ = in_background(lambda: thrift.execute("f", "x"))
    wait_for_requests(server, 1)
    thrift.close()
    asking.join(PATIENCE_SECS)
    deadline = time.monotonic() + PATIENCE_SECS
    while len(server.broker.requests):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    assert topology(server).call("fetchRequest", "f").request_id == ""


def test_a_topology_that_goes_while_it_waits_loses_no_request(server: DRPCServer) -> None:
    gone = topology(server)
    fetching, _ = in_background(lambda: gone.call("fetchRequests", "f", 10, 60_000))
    deadline = time.monotonic() + PATIENCE_SECS
    while not server.broker.fetching:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    gone.close()
    fetching.join(PATIENCE_SECS)
    answering = Answering(server, exclaim)
    answering.start()
    with client(server) as thrift:
        assert thrift.execute("f", "x") == "x!"
        thrift.execute("f", "end")
    answering.join()


def test_a_full_queue_is_told_at_once() -> None:
    with DRPCServer({"drpc.queue.size": 1}, ANY) as server:
        in_background(lambda: client(server).execute("f", "x"))
        wait_for_requests(server, 1)
        answered = httpx.get(f"{server.url}/drpc/f/x")
        assert (answered.status_code, answered.json()["error"]) == (500, "INTERNAL_ERROR")
        assert "drpc.queue.size" in answered.json()["errorMessage"]


def test_what_is_too_long_or_no_call_is_refused(server: DRPCServer) -> None:
    limit = 1 << 20
    assert httpx.post(f"{server.url}/drpc/f", content=b"x" * (limit + 1)).status_code == 413
    assert httpx.post(f"{server.url}/drpc/f", content=b"\xff").status_code == 400
    with pytest.raises(
        DRPCExecutionException, match=r"arguments of 1,048,576 bytes; drpc.max_buffer_size is 1,048,576"
    ):
        client(server).execute("f", "x" * limit)
    for port in (server.calls.port, server.invocations.port):
        with socket.create_connection((server.calls.host, port)) as connection:
            connection.sendall(struct.pack("!i", 3) + b"abc")
            assert connection.recv(1) == b""
    with pytest.raises(NotImplementedError):
        connected(server.calls, "DistributedRPCInvocations").call("fetchRequest", "f")
    # The ports of Thrift serve no HTTP.
    assert httpx.get(f"http://{server.calls}/drpc/f").status_code == 404


def test_the_name_of_a_function_may_have_slashes_and_what_is_not_utf8_is_refused(server: DRPCServer) -> None:
    answering = Answering(server, exclaim, "a/ü")
    answering.start()
    with httpx.Client(base_url=server.url) as http:
        assert http.get("/drpc/a%2F%C3%BC/x%2Fy/z").text == "x/y/z!"
        assert http.post("/drpc/a%2F%C3%BC", content="x").text == "x!"
        assert http.post("/drpc/a%2F%C3%BC/x", content="x").status_code == 404
        for path in ("/drpc/a%2F%C3%BC/%FF", "/drpc/%FF/x"):
            assert "not: invalid start byte at byte 0" in http.get(path).json()["errorMessage"]
    half = "\udcff"
    for ask in (client(server).execute, server.execute):
        with pytest.raises(DRPCExecutionException, match=r"U\+DCFF at position 1 is no character that UTF-8 has"):
            ask("a/ü", "x" + half)
        assert ask("a/ü", "x") == "x!", "those that follow are answered"
    assert server.execute("a/ü", "end") == "ended"
    answering.join()


def test_a_web_page_of_another_site_is_refused(server: DRPCServer) -> None:
    refused = httpx.post(f"{server.url}/drpc/f", content="x", headers={"Origin": "http://evil.example"})
    assert refused.status_code == 403


def secret(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o600)
    return str(path)


def test_whoever_has_no_token_is_let_in_nowhere(tmp_path: Path) -> None:
    token = secret(tmp_path / "token", "0123456789abcdef0123456789abcdef")
    other = secret(tmp_path / "other", "fedcba9876543210fedcba9876543210")
    with DRPCServer({"nimbus.auth.token.file": token}, ANY) as server:
        for wrong in (other, None):
            address = Address(server.calls.host, server.calls.port, wrong)
            expected = AuthenticationError if wrong else OSError
            with pytest.raises(expected, match="token"):
                connected(address, "DistributedRPC").call("execute", "f", "x")
            inner = Address(server.invocations.host, server.invocations.port, wrong)
            with pytest.raises(expected):
                connected(inner, "DistributedRPCInvocations").call("fetchRequest", "f")
        assert httpx.get(f"{server.url}/drpc/f").status_code == 401
        assert httpx.get(f"{server.url}/drpc/f", auth=TokenAuth(Tokens.from_file(other))).status_code == 401
        bearer = {"Authorization": f"Bearer {'0' * 32}"}
        assert httpx.post(f"{server.url}/drpc/f", content="x", headers=bearer).status_code == 401
        answering = Answering(server, exclaim)
        answering.start()
        with client(server) as thrift, httpx.Client(auth=TokenAuth(Tokens.from_file(token))) as http:
            assert thrift.execute("f", "x") == "x!"
            assert http.post(f"{server.url}/drpc/f", content="y").text == "y!"
            thrift.execute("f", "end")
        answering.join()


def test_a_new_token_is_let_in_without_a_restart(tmp_path: Path) -> None:
    token = tmp_path / "token"
    old, new = "0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"
    secret(token, old)
    with DRPCServer({"nimbus.auth.token.file": str(token)}, ANY) as server:
        assert topology(server).call("fetchRequest", "f").request_id == ""
        token.write_text(f"{new}\n{old}\n")
        deadline = time.monotonic() + PATIENCE_SECS
        while True:
            try:
                found = topology(server).call("fetchRequest", "f")
                break
            except AuthenticationError:
                assert time.monotonic() < deadline
                time.sleep(0.1)
        assert found.request_id == ""


def test_a_server_that_others_reach_needs_a_token() -> None:
    with pytest.raises(SetupError, match=r"drpc\.bind\.address '0\.0\.0\.0' can be reached from other hosts"):
        DRPCServer({"drpc.bind.address": "0.0.0.0"}, ANY)


@pytest.mark.parametrize(
    ("conf", "said"),
    [
        ({"drpc.thrift.transport": "org.example.Own"}, "'org.example.Own' is not supported"),
        (
            {"drpc.thrift.transport": "org.apache.storm.security.auth.digest.DigestSaslTransportPlugin"},
            "the path of a JAAS file whose section StormServer",
        ),
    ],
)
def test_transports_that_cannot_be(conf: dict[str, object], said: str) -> None:
    with pytest.raises(SetupError, match=said):
        DRPCServer(conf, ANY)


def test_a_client_without_a_server_is_told_what_to_set() -> None:
    with pytest.raises(ConfigError, match=r"drpc\.servers names no DRPC server"):
        DRPCClient({})
    with pytest.raises(TypeError, match="takes two texts, not str and int"):
        DRPCClient({"drpc.servers": ["localhost"]}).execute("f", 3)


def test_a_local_drpc_is_a_server_with_a_token_of_its_own() -> None:
    with LocalDRPC({"drpc.request.timeout.secs": 1}) as drpc:
        assert drpc.invocations.token_file is not None
        assert httpx.get(f"{drpc.url}/drpc/f").status_code == 401
        with pytest.raises(DRPCExecutionException) as failed:
            drpc.execute("f", "x")
        assert failed.value.type is DRPCExceptionType.SERVER_TIMEOUT
        file = Path(drpc.invocations.token_file)
        assert file.is_file()
    assert not file.exists()
    with pytest.raises(DRPCExecutionException):
        drpc.execute("f", "x")


def test_with_a_certificate_all_three_ports_speak_tls(tmp_path: Path) -> None:
    ca = trustme.CA()
    certificate = ca.issue_cert("localhost")
    ca.cert_pem.write_to_path(tmp_path / "ca.pem")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "certificate.pem")
    key = secret(tmp_path / "key.pem", certificate.private_key_pem.bytes().decode())
    token = secret(tmp_path / "token", "0123456789abcdef0123456789abcdef")
    tls = {"storm.tls.ca.file": str(tmp_path / "ca.pem")}
    conf = {
        **tls,
        "storm.tls.certificate.file": str(tmp_path / "certificate.pem"),
        "storm.tls.key.file": key,
        "nimbus.auth.token.file": token,
    }
    with DRPCServer(conf, ANY) as server:
        answering = Answering(server, exclaim)
        answering.start()
        trusted = ssl.create_default_context(cafile=tmp_path / "ca.pem")
        with (
            client(server, **tls) as thrift,
            httpx.Client(auth=TokenAuth(Tokens.from_file(token)), verify=trusted) as http,
        ):
            assert thrift.execute("f", "x") == "x!"
            assert http.get(f"{server.url}/drpc/f/y").text == "y!"
            thrift.execute("f", "end")
        answering.join()
        with pytest.raises(DRPCExecutionException, match="can't be reached"):
            client(server).execute("f", "x")
