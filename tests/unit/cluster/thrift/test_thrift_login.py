"""Logins over Thrift as bytes, and what the configuration says of them."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from storm_on_spark.api.errors import SetupError
from storm_on_spark.cluster.http.frames import FrameService, LoginError, framed
from storm_on_spark.cluster.http.limits import Limits
from storm_on_spark.cluster.http.server import HttpServer, listen
from storm_on_spark.cluster.security.digest import THRIFT, Answering, Login
from storm_on_spark.cluster.thrift.login import DIGEST, DigestLogin, Status, login_users, message
from storm_on_spark.cluster.thrift.settings import ThriftSettings

USERS = {"ann": "pw", "bö": "Ω pass"}
BEGIN = message(Status.START, b"DIGEST-MD5") + message(Status.OK)


def log_in(name: str, secret: str) -> tuple[DigestLogin, Answering, bytes]:
    """Returns both sides and the client's answer to the challenge."""
    server, client = DigestLogin(USERS), Answering(Login(name, secret), dialect=THRIFT)
    asked = server.feed(BEGIN)
    assert asked[:5] == struct.pack("!Bi", Status.OK, len(asked) - 5)
    return server, client, client.answer(asked[5:])


@pytest.mark.parametrize("name", USERS)
def test_a_user_logs_in_and_calls_follow(name: str) -> None:
    server, client, answer = log_in(name, USERS[name])
    last = server.feed(message(Status.OK, answer) + b"calls")
    assert last[0] == Status.COMPLETE
    client.check(last[5:])
    assert (server.user, server.rest) == (name, b"calls")


@given(st.integers(1, 40))
def test_a_login_is_the_same_however_it_is_cut(size: int) -> None:
    server, client = DigestLogin(USERS), Answering(Login("ann", "pw"), dialect=THRIFT)

    def send(data: bytes) -> bytes:
        return b"".join(server.feed(data[at : at + size]) for at in range(0, len(data), size))

    answer = client.answer(send(BEGIN)[5:])
    client.check(send(message(Status.OK, answer))[5:])
    assert server.user == "ann"


@pytest.mark.parametrize(("name", "secret"), [("ann", "Ω pass"), ("ann", ""), ("cat", "pw"), ("", "")])
def test_a_wrong_user_and_a_wrong_password_are_told_the_same(name: str, secret: str) -> None:
    server, _, answer = log_in(name, secret)
    with pytest.raises(LoginError, match="user or password is wrong") as refused:
        server.feed(message(Status.OK, answer))
    assert refused.value.answer == message(Status.BAD, b"user or password is wrong")
    assert server.user is None


def test_an_answer_to_another_challenge_is_refused() -> None:
    _, _, answer = log_in("ann", "pw")
    server = DigestLogin(USERS)
    server.feed(BEGIN)
    with pytest.raises(LoginError, match="answers another challenge"):
        server.feed(message(Status.OK, answer))


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (message(Status.START, b"GSSAPI"), "begins with the mechanism DIGEST-MD5, not 'GSSAPI'"),
        (message(Status.OK), "begins with the mechanism DIGEST-MD5"),
        (struct.pack("!Bi", 1, -1), "has 0 to 4,096 bytes, and this one -1"),
        (struct.pack("!Bi", 1, 1 << 30), "this one 1,073,741,824"),
        (message(Status.START, b"DIGEST-MD5") + message(Status.OK, b"early"), "before it is asked"),
        (message(Status.START, b"DIGEST-MD5") + message(Status.COMPLETE), "status 5 instead of 2"),
        (BEGIN + message(Status.OK, b"\xff"), "not UTF-8"),
        (BEGIN + message(Status.OK), "lacks cnonce"),
    ],
)
def test_what_is_no_login_is_refused(sent: bytes, said: str) -> None:
    with pytest.raises(LoginError, match=said) as refused:
        DigestLogin(USERS).feed(sent)
    assert refused.value.answer[0] == Status.BAD


@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_wait_or_are_refused(data: bytes, begun: bool) -> None:
    server = DigestLogin(USERS)
    with contextlib.suppress(LoginError):
        server.feed(BEGIN + data if begun else data)
    assert server.user is None


def settings(tmp_path: Path, text: str, plugin: str = DIGEST) -> ThriftSettings:
    file = tmp_path / "jaas"
    file.write_text(text)
    file.chmod(0o600)
    return ThriftSettings.of({"storm.thrift.transport": plugin, "java.security.auth.login.config": str(file)})


def test_users_stand_in_the_section_of_storms_servers(tmp_path: Path) -> None:
    found = login_users(settings(tmp_path, 'StormServer { a.Module required user_ann="pw" user_bob=b other=c; };'))
    assert found == {"ann": "pw", "bob": "b"}
    assert login_users(ThriftSettings.of({})) is None


@pytest.mark.parametrize(
    ("text", "plugin", "said"),
    [
        ("", DIGEST, "section StormServer with user_NAME"),
        ('StormServer { a.B required user_ann=""; };', DIGEST, "section StormServer with user_NAME"),
        ("", "a.KerberosSaslTransportPlugin", "'a.KerberosSaslTransportPlugin' is not supported"),
    ],
)
def test_a_login_that_can_not_be_offered_is_refused(tmp_path: Path, text: str, plugin: str, said: str) -> None:
    with pytest.raises(SetupError, match=said):
        login_users(settings(tmp_path, text, plugin))


def test_a_jaas_file_is_needed() -> None:
    with pytest.raises(SetupError, match=r"java\.security\.auth\.login\.config"):
        login_users(ThriftSettings.of({"nimbus.thrift.transport": DIGEST}))


def test_a_password_without_quotes_is_in_no_error(tmp_path: Path) -> None:
    with pytest.raises(SetupError) as refused:
        login_users(settings(tmp_path, "StormServer { a.B required user_ann=secret another; };"))
    assert "another" not in str(refused.value)


@pytest.fixture
def port() -> Iterator[int]:
    """A server that answers each frame with itself, after a login, beside HTTP."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await Response("http")(scope, receive, send)

    listener = listen("127.0.0.1", 0)
    frames = FrameService(lambda frame, user: frame, 100, 1, lambda: DigestLogin(USERS))
    server = HttpServer(app, listener, Limits(head_secs=0.5), frames=frames)
    server.start()
    yield listener.getsockname()[1]
    server.close()


def received(connection: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size and (more := connection.recv(size - len(found))):
        found += more
    return found


def reply(connection: socket.socket) -> tuple[int, bytes]:
    status, length = struct.unpack("!Bi", received(connection, 5))
    return status, received(connection, length)


def test_frames_are_answered_after_a_login_and_http_without(port: int) -> None:
    client = Answering(Login("ann", "pw"), dialect=THRIFT)
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(BEGIN)
        _, asked = reply(connection)
        # The first call in the same bytes as the end of the login.
        connection.sendall(message(Status.OK, client.answer(asked)) + framed(b"one"))
        status, last = reply(connection)
        client.check(last)
        assert (status, received(connection, 7)) == (Status.COMPLETE, framed(b"one"))
        connection.sendall(framed(b"two"))
        assert received(connection, 7) == framed(b"two")
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert received(connection, 12) == b"HTTP/1.1 200"


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        pytest.param(framed(b"one"), None, id="no login"),
        pytest.param(BEGIN[:17], None, id="a login that does not go on"),
        pytest.param(message(Status.START, b"PLAIN"), Status.BAD, id="another login"),
    ],
)
def test_without_a_login_no_frame_is_answered(port: int, sent: bytes, status: Status | None) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(sent)
        with contextlib.suppress(ConnectionResetError):
            if status is not None:
                assert reply(connection)[0] == status
            assert connection.recv(1) == b""
