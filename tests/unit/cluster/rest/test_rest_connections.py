"""Connections that are of no use close a server to nobody else."""

from __future__ import annotations

import contextlib
import itertools
import socket
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lengths import PATIENCE_SECS
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from storm_on_spark.cluster.http.auth import Authentication
from storm_on_spark.cluster.http.guard import Guard
from storm_on_spark.cluster.http.limits import ConnectionLimits, Limits
from storm_on_spark.cluster.http.server import HttpServer, listen

TOKEN = "0123456789abcdef0123"
LIMITS = Limits(connections=40, by_address=20, head_secs=1.0, idle_secs=2.0, write_secs=1.0)
MUCH_ENDED = threading.Event()
HEADERS = {"Authorization": f"Bearer {TOKEN}"}


async def answer(request: Request) -> Response:
    return Response("ok")


async def slow(request: Request) -> Response:
    await anyio.sleep(float(request.query_params["secs"]))
    return Response("ok")


async def read(request: Request) -> Response:
    try:
        return Response(str(len(await request.body())))
    except ClientDisconnect:
        return Response(status_code=400)


async def much(request: Request) -> Response:
    async def parts():
        try:
            for _ in range(1000):
                yield bytes(100_000)
        finally:
            MUCH_ENDED.set()

    return StreamingResponse(parts())


@pytest.fixture
def port() -> Iterator[int]:
    listener = listen("127.0.0.1", 0)
    routes = [Route("/", answer, methods=["GET", "POST"]), Route("/slow", slow), Route("/much", much)]
    routes.append(Route("/read", read, methods=["POST"]))
    with HttpServer(Guard(Starlette(routes=routes), Authentication(TOKEN)), listener, LIMITS):
        yield listener.getsockname()[1]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Key and certificate in one file."""
    folder = tmp_path_factory.mktemp("tls")
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key", "-out", "made", *names],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    (folder / "both").write_bytes((folder / "key").read_bytes() + (folder / "made").read_bytes())
    return folder / "both"


@pytest.fixture
def tls_port(certificate: Path) -> Iterator[int]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    listener = listen("127.0.0.1", 0)
    routes = [Route("/", answer), Route("/slow", slow), Route("/much", much)]
    with HttpServer(Guard(Starlette(routes=routes), Authentication(TOKEN)), listener, LIMITS, context):
        yield listener.getsockname()[1]


@contextlib.contextmanager
def connections(port: int, count: int, source: str = "127.0.0.1") -> Iterator[list[socket.socket]]:
    made = [socket.create_connection(("127.0.0.1", port), 5, (source, 0)) for _ in range(count)]
    try:
        yield made
    finally:
        for connection in made:
            connection.close()


def ask(port: int, path: str = "/", source: str = "127.0.0.1") -> int:
    connection = HTTPConnection("127.0.0.1", port, 10, (source, 0))
    try:
        connection.request("GET", path, headers=HEADERS)
        return connection.getresponse().status
    finally:
        connection.close()


def is_closed(connection: socket.socket, within: float) -> bool:
    """Whether the server closes a connection in time."""
    deadline = time.monotonic() + within
    while (left := deadline - time.monotonic()) > 0:
        connection.settimeout(left)
        try:
            if not connection.recv(65536):
                return True
        except TimeoutError:
            return False
        except OSError:
            return True
    return False


def test_no_socket_stays_open_behind_a_server_that_ends() -> None:
    blocked, release = threading.Event(), threading.Event()

    async def block(request: Request) -> Response:
        blocked.set()
        release.wait(10)  # the loop stands still: the next connection waits to be taken until the server ends
        return Response("ok")

    listener = listen("127.0.0.1", 0)
    port = listener.getsockname()[1]
    server = HttpServer(Guard(Starlette(routes=[Route("/", block)]), Authentication(TOKEN)), listener, Limits())
    server.start()
    with contextlib.ExitStack() as stack:
        [first] = stack.enter_context(connections(port, 1))
        first.sendall(f"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode())
        assert blocked.wait(10)
        [late] = stack.enter_context(connections(port, 1))
        threading.Timer(0.5, release.set).start()
        server.close()
        assert is_closed(late, PATIENCE_SECS)


@pytest.mark.parametrize("source", ["127.0.0.1", "127.0.0.2"])
def test_silent_connections_close_the_server_to_nobody(port: int, source: str) -> None:
    with connections(port, 3 * LIMITS.connections):
        assert [ask(port, source=source) for _ in range(5)] == [200] * 5


def test_silent_connections_from_many_addresses(port: int) -> None:
    with contextlib.ExitStack() as stack:
        for host in range(2, 9):
            stack.enter_context(connections(port, 15, f"127.0.0.{host}"))
        assert [ask(port, source="127.0.0.99") for _ in range(5)] == [200] * 5


def test_one_that_says_nothing_is_hung_up_on(port: int) -> None:
    with connections(port, 1) as [silent]:
        assert is_closed(silent, PATIENCE_SECS)


def test_silence_before_the_handshake_closes_the_server_to_nobody(tls_port: int, certificate: Path) -> None:
    client = ssl.create_default_context(cafile=certificate)

    def ask_tls(path: str) -> bytes:
        connection = HTTPSConnection("127.0.0.1", tls_port, timeout=10, context=client)
        try:
            connection.request("GET", path, headers=HEADERS)
            return connection.getresponse().read()
        finally:
            connection.close()

    assert ask_tls("/") == b"ok"
    with connections(tls_port, 3 * LIMITS.connections) as silent:
        # Those that had to make room are gone, the rest goes in time.
        assert all(is_closed(each, PATIENCE_SECS) for each in silent[: 2 * LIMITS.connections])
        assert [ask_tls("/") for _ in range(5)] == [b"ok"] * 5
        assert is_closed(silent[-1], PATIENCE_SECS)
    with connections(tls_port, 1) as [babbling]:
        babbling.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert is_closed(babbling, PATIENCE_SECS)
    assert len(ask_tls("/much")) == 100_000_000
    assert ask_tls("/slow?secs=1.5") == b"ok"


def closed_amid(connection: socket.socket, sent: Iterable[bytes]) -> bool:
    """Whether the server closes a connection while something is sent all the time."""
    for data in sent:
        try:
            connection.send(data)
        except OSError:
            return True
        if is_closed(connection, 0.05):
            return True
    return False


def test_a_byte_now_and_then_buys_no_time(port: int) -> None:
    head = b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X-A: b\r\n" * 100
    began = time.monotonic()
    with connections(port, 1) as [loris]:
        assert closed_amid(loris, (bytes([byte]) for byte in head))
    assert time.monotonic() - began > LIMITS.head_secs - 0.1


def test_a_second_request_has_the_same_deadline(port: int) -> None:
    request = f"GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()
    with connections(port, 1) as [connection]:
        for _ in range(2):
            connection.sendall(request)
            received = b""
            while not received.endswith(b"ok"):
                received += connection.recv(65536)
        connection.sendall(request[:20])
        assert is_closed(connection, PATIENCE_SECS)


def test_a_body_that_nobody_reads_buys_no_time(port: int) -> None:
    head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"
    with connections(port, 1) as [connection]:
        connection.sendall(head)
        assert connection.recv(65536).startswith(b"HTTP/1.1 401")
        assert closed_amid(connection, itertools.repeat(b"x", 400))


def test_an_answer_that_nobody_reads_is_broken_off(port: int) -> None:
    MUCH_ENDED.clear()
    with connections(port, 1) as [connection]:
        connection.sendall(f"GET /much HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode())
        received = len(connection.recv(1))
        assert MUCH_ENDED.wait(15)
        connection.settimeout(10)
        with contextlib.suppress(OSError):
            while part := connection.recv(1 << 20):
                received += len(part)
        # The rest is what the kernels kept.
        assert received < 50_000_000


def test_requests_that_are_answered_are_not_broken_off_for_others(port: int) -> None:
    with contextlib.ExitStack() as stack:
        working = []
        for _ in range(LIMITS.by_address):
            connection = HTTPConnection("127.0.0.1", port, 20)
            stack.callback(connection.close)
            connection.request("GET", "/slow?secs=2.5", headers=HEADERS)
            working.append(connection)
        time.sleep(0.5)
        # The address has all its places; another's are its own.
        assert ask(port) == 503
        assert ask(port, source="127.0.0.2") == 200
        stack.enter_context(connections(port, 100, "127.0.0.3"))
        assert [connection.getresponse().status for connection in working] == [200] * len(working)
    assert ask(port) == 200


def test_slow_bodies_close_the_server_to_nobody(port: int) -> None:
    head = f"POST /read HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 1000000\r\n\r\n"
    with contextlib.ExitStack() as stack:
        upload = HTTPConnection("127.0.0.1", port, 20)
        stack.callback(upload.close)
        upload.putrequest("POST", "/read")
        upload.putheader("Authorization", f"Bearer {TOKEN}")
        upload.putheader("Content-Length", "1000000")
        upload.endheaders()
        slow = stack.enter_context(connections(port, LIMITS.by_address - 1))
        for each in slow:
            each.sendall(head.encode() + b"x")
        time.sleep(0.5)
        upload.send(bytes(500_000))
        # Slow ones make room, and not the body that came at a good rate, although it began before them.
        assert [ask(port) for _ in range(5)] == [200] * 5
        upload.send(bytes(500_000))
        response = upload.getresponse()
        assert (response.status, response.read()) == (200, b"1000000")


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 1_000_000 + b"\r\n\r\n", 431),
        (b"GET /" + b"a" * 1_000_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: many\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
        (b"\x16\x03\x01 no HTTP\r\n\r\n", 400),
    ],
)
def test_what_is_no_request_is_refused_with_its_status(
    port: int, request_: bytes, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    with connections(port, 1) as [connection]:
        connection.settimeout(10)
        connection.sendall(request_)
        response = HTTPResponse(connection)
        response.begin()
        assert response.status == status
        assert len(response.read()) == int(response.headers["Content-Length"])
        assert is_closed(connection, PATIENCE_SECS)
    assert ask(port) == 200
    assert caplog.messages == [], "what others send fills no log"


def test_a_body_that_breaks_off_hurts_nobody(port: int, caplog: pytest.LogCaptureFixture) -> None:
    with connections(port, 1) as [connection]:
        head = f"POST /read HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nTransfer-Encoding: chunked\r\n\r\n"
        connection.sendall(head.encode() + b"no chunk\r\n")
        assert is_closed(connection, PATIENCE_SECS)
    assert ask(port) == 200
    assert caplog.messages == []


@pytest.mark.parametrize("host", ["[", "[::1", "a b", "127.0.0.1:"])
def test_a_host_that_is_none_is_refused(host: str, caplog: pytest.LogCaptureFixture) -> None:
    listener = listen("127.0.0.1", 0)
    app = Guard(Starlette(routes=[Route("/", answer)]), Authentication())
    with HttpServer(app, listener, LIMITS), connections(listener.getsockname()[1], 1) as [connection]:
        connection.sendall(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        assert connection.recv(12) == (b"HTTP/1.1 200" if host.startswith("1") else b"HTTP/1.1 403")
    assert caplog.messages == []


def test_many_requests_over_one_connection(port: int) -> None:
    connection = HTTPConnection("127.0.0.1", port, 10)
    for _ in range(50):
        connection.request("GET", "/", headers=HEADERS)
        response = connection.getresponse()
        assert (response.status, response.read()) == (200, b"ok")
    connection.close()


def test_who_may_not_ask_is_told_so_beside_silent_ones(port: int) -> None:
    with connections(port, 2 * LIMITS.connections), pytest.raises(urllib.error.HTTPError) as error:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10)
    assert error.value.code == 401
    error.value.close()


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["enter", "body", "busy", "idle", "heard", "leave"]), st.integers(0, 12), st.integers(0, 3)
        )
    )
)
def test_limits_hold_and_nothing_busy_is_closed(events: list[tuple[str, int, int]]) -> None:
    limits = Limits(connections=6, by_address=3)
    places, inside, busy, number = ConnectionLimits(limits), {}, set(), 100
    bodies: set[int] = set()
    for now, (event, which, address) in enumerate(events):
        chosen = sorted(inside)[which % len(inside)] if inside else None
        if event == "enter":
            number += 1
            others = [each for each in inside if inside[each] == f"10.0.0.{address}"]
            entered = places.enter(number, f"10.0.0.{address}", float(now))
            closed = places.to_close()
            assert not busy & set(closed)
            for each in closed:
                del inside[each]
            if entered:
                inside[number] = f"10.0.0.{address}"
            else:
                # Only where everything that could have made room is busy.
                assert set(others) <= busy if len(others) == limits.by_address else set(inside) <= busy
        elif chosen is not None and event == "leave":
            places.leave(chosen)
            del inside[chosen]
            busy.discard(chosen)
        elif chosen is not None and event == "body":
            places.body(chosen, 4096 * address, float(now))
            bodies.add(chosen)
            busy.discard(chosen)
        elif chosen is not None:
            getattr(places, event)(chosen, float(now))
            bodies -= {chosen} if event != "heard" else set()
            busy.add(chosen) if event == "busy" else busy.discard(chosen) if event == "idle" else None
        assert len(inside) <= limits.connections
        assert all(list(inside.values()).count(name) <= limits.by_address for name in set(inside.values()))
        for each in inside:
            assert (places.deadline(each) is None) == (each in busy | bodies)
