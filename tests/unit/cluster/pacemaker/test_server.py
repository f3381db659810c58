"""A server over real sockets: what connections may do to it, and to each other."""

from __future__ import annotations

import contextlib
import logging
import re
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families
from waiting import eventually

from storm_on_spark.api.errors import SetupError
from storm_on_spark.cluster.pacemaker.login.identities import LoginSettings, daemon_login, topology_login
from storm_on_spark.cluster.pacemaker.messages import (
    Control,
    Message,
    MessageType,
    Pulse,
    Records,
    control,
    frame,
    sasl_token,
)
from storm_on_spark.cluster.pacemaker.server import PacemakerServer
from storm_on_spark.cluster.pacemaker.settings import Limits
from storm_on_spark.cluster.security.digest import Login
from storm_on_spark.testing.servers.pacemaker_client import RawClient

T = MessageType
TOKEN = "0123456789abcdef"
PAYLOAD = "some username:some password"
BEAT = Pulse("/workerbeats/words-1/a-6700", b"1")
Serve = Callable[..., PacemakerServer]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts servers with a configuration and, where they are given, other limits."""
    with contextlib.ExitStack() as servers:

        def start(limits: dict[str, float] | None = None, **conf: object) -> PacemakerServer:
            dotted = {key.replace("_", "."): value for key, value in conf.items()}
            server = PacemakerServer(dotted, port=0)
            server.clients.limits = msgspec.structs.replace(server.clients.limits, **(limits or {}))
            return servers.enter_context(server)

        yield start


def digest(tmp_path: Path) -> dict[str, object]:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    file.chmod(0o600)
    return {
        "pacemaker_auth_method": "DIGEST",
        "pacemaker_auth_payload": PAYLOAD,
        "nimbus.auth.token.file": str(file),
    }


def test_a_client_is_answered_in_order_however_much_it_asks_at_once(serve: Serve) -> None:
    with RawClient(serve().port) as client:
        client.send(*(Message(T.SEND_PULSE, Pulse(f"/a/{n}", b"%d" % n), n) for n in range(500)))
        assert [client.receive().id for _ in range(500)] == list(range(500))
        assert client.ask(T.GET_PULSE, "/a/499").data == Pulse("/a/499", b"499")


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"\xff\xff\xff\xff", id="a negative length"),
        pytest.param(b"\x7f\xff\xff\xff", id="a length beyond the limit"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", id="HTTP"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03", id="TLS"),
        pytest.param(b"\0\0\0\1\7", id="no message"),
        pytest.param(frame(Message(T.GET_PULSE_RESPONSE, "/a", 1)), id="an answer"),
        pytest.param(frame(Message(T.GET_PULSE, None, 1)), id="a request without a path"),
        pytest.param(frame(Message(T.GET_PULSE, "no path", 1)), id="a wrong path"),
        pytest.param(frame(control(Control.OK)), id="a control code that is not for a server"),
        pytest.param(frame(control(Control.SASL_TOKEN_MESSAGE_REQUEST)), id="a login where there is none"),
        pytest.param(frame(sasl_token(b"ticket")), id="Kerberos where there is none"),
    ],
)
def test_what_is_wrong_ends_one_connection_with_one_line(
    serve: Serve, caplog: pytest.LogCaptureFixture, sent: bytes
) -> None:
    server = serve()
    with RawClient(server.port) as other, RawClient(server.port) as client:
        assert other.ask(T.SEND_PULSE, BEAT).type is T.SEND_PULSE_RESPONSE
        caplog.clear()
        with caplog.at_level(logging.INFO):
            client.socket.sendall(sent)
            assert client.hung_up()
        assert len(caplog.messages) == 1
        assert caplog.messages[0].startswith("closed address=127.0.0.1 reason=")
        assert other.ask(T.GET_PULSE, BEAT.id).data == BEAT


def test_logins_and_what_they_are_good_for(serve: Serve, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    conf = digest(tmp_path)
    server = serve(**conf)
    nimbus = daemon_login(LoginSettings.of({"pacemaker.auth.payload": PAYLOAD}))
    words = topology_login(TOKEN, "words-1")
    with caplog.at_level(logging.DEBUG):
        with RawClient(server.port) as client:
            assert client.ask(T.SEND_PULSE, BEAT).type is T.NOT_AUTHORIZED
            assert client.ask(T.GET_PULSE, BEAT.id).type is T.NOT_AUTHORIZED
        with RawClient(server.port) as client:
            client.log_in(words)
            assert client.ask(T.SEND_PULSE, BEAT).type is T.SEND_PULSE_RESPONSE
            assert client.ask(T.SEND_PULSE, Pulse("/workerbeats/words-2/a", b"")).type is T.NOT_AUTHORIZED
            assert client.ask(T.DELETE_PATH, "/workerbeats").type is T.NOT_AUTHORIZED
            assert client.ask(T.GET_PULSE, BEAT.id).type is T.NOT_AUTHORIZED
        with RawClient(server.port) as client:
            client.log_in(nimbus)
            assert client.ask(T.GET_PULSE, BEAT.id).data == BEAT
        for wrong in (Login(nimbus.name, words.secret), Login("topology:words-2", words.secret)):
            with RawClient(server.port) as client, pytest.raises(ConnectionError):
                client.log_in(wrong)
    for secret in (nimbus.secret, words.secret, TOKEN, "some password"):
        assert secret not in caplog.text
    told = server.clients.metrics.prometheus()
    assert "pacemaker_logins_total 2.0\n" in told
    assert "pacemaker_logins_failed_total 2.0\n" in told


def test_before_its_login_a_client_sends_no_large_message(serve: Serve, tmp_path: Path) -> None:
    """Thousands of connections that nobody knows could hold gigabytes: a frame is kept until it is whole."""
    server = serve({"login_secs": 3600.0}, **digest(tmp_path))
    large = Pulse(BEAT.id, bytes(1 << 20))
    with RawClient(server.port) as client:
        client.socket.sendall((1 << 20).to_bytes(4, "big"))
        assert client.hung_up()
    with RawClient(server.port) as client:
        client.log_in(topology_login(TOKEN, "words-1"))
        assert client.ask(T.SEND_PULSE, large).type is T.SEND_PULSE_RESPONSE
    storms = serve(**digest(tmp_path), pacemaker_auth_writes=False)
    with RawClient(storms.port) as client:
        assert client.ask(T.SEND_PULSE, large).type is T.SEND_PULSE_RESPONSE


def test_an_address_has_so_many_connections(serve: Serve) -> None:
    server = serve(pacemaker_max_connections_per_address=2)
    with RawClient(server.port) as first, RawClient(server.port) as second, RawClient(server.port) as third:
        assert first.ask(T.EXISTS, "/a").data is False
        assert second.ask(T.EXISTS, "/a").data is False
        assert third.hung_up()
        second.socket.close()
        eventually(lambda: "pacemaker_connections 1.0\n" in server.clients.metrics.prometheus())
        with RawClient(server.port) as fourth:
            assert fourth.ask(T.EXISTS, "/a").data is False


def test_silence_an_unfinished_message_and_an_unfinished_login_end(serve: Serve, tmp_path: Path) -> None:
    server = serve(**digest(tmp_path))
    with RawClient(server.port) as silent, RawClient(server.port) as slow, RawClient(server.port) as undecided:
        slow.socket.sendall(b"\0\0\0\x20abc")
        undecided.send(control(Control.SASL_TOKEN_MESSAGE_REQUEST))
        undecided.receive()
        # Only now: on a slow machine they would have been silent for so long before they said anything.
        server.clients.limits = msgspec.structs.replace(server.clients.limits, idle_secs=0.2, login_secs=0.2)
        assert silent.hung_up()
        assert slow.hung_up()
        assert undecided.hung_up()


def test_a_client_that_never_reads_is_held_back_and_then_dropped(serve: Serve) -> None:
    server = serve({"stall_secs": 0.5})
    value = bytes(1 << 20)
    with RawClient(server.port) as other, RawClient(server.port) as client:
        assert client.ask(T.SEND_PULSE, Pulse("/large", value)).type is T.SEND_PULSE_RESPONSE
        request = frame(Message(T.GET_PULSE, "/large", 1))
        with contextlib.suppress(OSError):
            client.socket.sendall(request * 5000)
        assert other.ask(T.EXISTS, "/large").data is True
        eventually(lambda: "pacemaker_connections 1.0\n" in server.clients.metrics.prometheus())
        # Of five thousand answers of a MiB few were made: what the socket's buffers take.
        assert server.clients.metrics.storm()["pacemaker:get-pulse=count"] < 100


def test_a_client_that_reads_late_gets_everything(serve: Serve) -> None:
    value = bytes(range(256)) * 4096
    with RawClient(serve().port) as client:
        client.ask(T.SEND_PULSE, Pulse("/large", value))
        client.send(*(Message(T.GET_PULSE, "/large", n) for n in range(20)))
        for number in range(20):
            assert client.receive() == Message(T.GET_PULSE_RESPONSE, Pulse("/large", value), number)


def test_a_client_that_has_said_its_last_word_still_gets_everything(serve: Serve) -> None:
    """Half of its connection is closed, while more answers are due than a connection holds."""
    value = bytes(1 << 20)
    with RawClient(serve().port) as client:
        client.ask(T.SEND_PULSE, Pulse("/large", value))
        client.send(*(Message(T.GET_PULSE, "/large", n) for n in range(20)))
        client.socket.shutdown(socket.SHUT_WR)
        assert [client.receive().id for _ in range(20)] == list(range(20))
        assert client.hung_up()


def test_a_clock_that_jumps_on_the_server_moves_nothing(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither heartbeats nor connections expire by it, and both still expire by the time that passes."""
    server = serve({"login_secs": 3600.0, "sweep_secs": 0.05})
    sweeps: list[float] = []
    sweep = server.clients.sweep
    monkeypatch.setattr(server.clients, "sweep", lambda: sweeps.append(time.time()) or sweep())
    now = time.time
    with RawClient(server.port) as client, RawClient(server.port) as half:
        client.ask(T.SEND_PULSE, BEAT)
        half.socket.sendall(b"\0\0\0\x20abc")
        for hours in (5, -7):
            monkeypatch.setattr(time, "time", lambda: now() + 3600 * hours)  # noqa: B023
            monkeypatch.setattr(time, "time_ns", lambda: int(1e9 * (now() + 3600 * hours)))  # noqa: B023
            seen = len(sweeps)
            eventually(lambda: len(sweeps) > seen + 2)  # noqa: B023
            assert abs(sweeps[-1] - now()) > 3600 * 4
            assert client.ask(T.GET_PULSE, BEAT.id).data == BEAT
        client.ask(T.SEND_PULSE, BEAT)
        server.clients.beats.expiry = 0.1
        eventually(lambda: client.ask(T.EXISTS, BEAT.id).data is False)
        assert "closed" not in caplog.text
        server.clients.limits = msgspec.structs.replace(server.clients.limits, login_secs=0.1)
        assert half.hung_up()


def test_a_client_that_keeps_too_much_is_told_no(serve: Serve) -> None:
    with RawClient(serve(pacemaker_client_max_keys=1).port) as client:
        assert client.ask(T.SEND_PULSE, BEAT).type is T.SEND_PULSE_RESPONSE
        assert client.ask(T.SEND_PULSE, Pulse("/b", b"")).type is T.NOT_AUTHORIZED
        assert client.ask(T.SEND_PULSE, BEAT).type is T.SEND_PULSE_RESPONSE


def test_a_topology_keeps_no_more_than_a_nimbus_reads_at_once(serve: Serve, tmp_path: Path) -> None:
    """Else one topology could have every Nimbus read half a gigabyte each time, or refuse to read at all."""
    server = serve(**digest(tmp_path))
    for topology in ("words-1", "__supervisors"):
        with RawClient(server.port) as client:
            client.log_in(topology_login(TOKEN, topology))
            for each in range(0, 1200, 100):
                paths = [f"/workerbeats/{topology}/{number}" for number in range(each, each + 100)]
                client.send(*(Message(T.SEND_PULSE, Pulse(path, b""), 1) for path in paths))
                refused = [client.receive().type for _ in paths].count(T.NOT_AUTHORIZED)
                assert refused == (100 if topology == "words-1" and each >= 1000 else 0)
    with RawClient(server.port) as client:
        client.log_in(topology_login(TOKEN, "large-1"))
        answers = [client.ask(T.SEND_PULSE, Pulse(f"/workerbeats/large-1/{n}", bytes(4 << 20))).type for n in range(3)]
        assert answers == [T.SEND_PULSE_RESPONSE, T.NOT_AUTHORIZED, T.NOT_AUTHORIZED]
    with RawClient(server.port) as client:
        client.log_in(daemon_login(LoginSettings.of({"pacemaker.auth.payload": PAYLOAD})))
        records = client.ask(T.GET_ALL_PULSE_FOR_PATH, "/workerbeats/words-1").data
        assert isinstance(records, Records)
        assert len(records.pulses) == 1000


def test_a_heartbeat_that_nobody_writes_again_goes(serve: Serve) -> None:
    server = serve()
    server.clients.beats.expiry = 0.1
    with RawClient(server.port) as client:
        client.ask(T.SEND_PULSE, BEAT)
        eventually(lambda: client.ask(T.EXISTS, BEAT.id).data is False)
        assert "pacemaker_heartbeats_expired_total 1.0\n" in server.clients.metrics.prometheus()


def test_metrics_over_http(serve: Serve) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with RawClient(serve(pacemaker_metrics_port=port).port) as client:
        client.ask(T.SEND_PULSE, BEAT)
        client.ask(T.GET_PULSE, BEAT.id)
    text = httpx.get(f"http://127.0.0.1:{port}/metrics").text
    assert "pacemaker_send_pulse_total 1.0\n" in text
    assert 'pacemaker_heartbeat_size_bytes_bucket{le="256"} 1.0\n' in text
    assert httpx.get(f"http://127.0.0.1:{port}/metrics.json").json()["pacemaker:size-total-keys"] == 1


def test_a_server_ends_with_its_connections_and_leaves_its_port(serve: Serve) -> None:
    server = serve()
    with RawClient(server.port) as client:
        client.ask(T.SEND_PULSE, BEAT)
        port = server.port
        server.close()
        assert client.hung_up()
    server.close()
    with PacemakerServer({"pacemaker.port": port}) as again:
        assert again.port == port


def test_a_port_that_is_taken_is_said(serve: Serve) -> None:
    server = serve()
    with pytest.raises(SetupError, match=r"can't listen on 127\.0\.0\.1"):
        PacemakerServer({"pacemaker.port": server.port})
    with pytest.raises(SetupError, match=r"pacemaker\.tls needs"):
        PacemakerServer({"pacemaker.tls": True}, port=0)


def test_limits_have_defaults_that_leave_room_for_thousands_of_supervisors() -> None:
    assert Limits().by_address >= 10_000


def test_the_table_of_metrics_is_what_prometheus_gets(serve: Serve) -> None:
    told = {family.name for family in text_string_to_metric_families(serve().clients.metrics.prometheus())}
    page = (Path(__file__).parents[4] / "docs" / "metrics.md").read_text("utf-8")
    table = re.findall(r"^\| `(pacemaker_\w+)` \| (\w+) \| (.+) \|$", page, re.MULTILINE)
    names = {name.removesuffix("_total") for name in told if name.startswith("pacemaker_")}
    assert {name.removesuffix("_total") for name, _, _ in table} == names
    assert "process_resident_memory_bytes" in told
    assert "process_open_fds" in told
