"""Every operation with every login, at servers of every kind, over sockets; what is not in the table is refused."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trustme

from storm_on_spark.cluster.pacemaker.login.identities import LoginSettings, daemon_login, topology_login
from storm_on_spark.cluster.pacemaker.messages import (
    REQUESTS,
    Control,
    Message,
    MessageType,
    Pulse,
    control,
    sasl_token,
    token_of,
)
from storm_on_spark.cluster.pacemaker.server import PacemakerServer
from storm_on_spark.cluster.security.digest import Answering, Login
from storm_on_spark.cluster.security.settings import SecuritySettings
from storm_on_spark.cluster.security.tls import Tls
from storm_on_spark.testing.servers.pacemaker_client import RawClient

T = MessageType
NOW, BEFORE, GONE = "0123456789abcdef", "fedcba9876543210", "aaaaaaaaaaaaaaaa"
PAYLOAD = "some username:some password"
NIMBUS = daemon_login(LoginSettings.of({"pacemaker.auth.payload": PAYLOAD}))
BEAT = Pulse("/workerbeats/words-1/a-6700", b"1")
READS = {T.EXISTS, T.GET_PULSE, T.GET_ALL_NODES_FOR_PATH, T.GET_ALL_PULSE_FOR_PATH}
WRITES = {T.CREATE_PATH, T.SEND_PULSE, T.DELETE_PATH, T.DELETE_PULSE_ID}
ALL, NONE = READS | WRITES, set[MessageType]()

Enter = Callable[[RawClient, RawClient], None]


def as_is(client: RawClient, other: RawClient) -> None:
    """No login."""


def with_login(login: Login) -> Enter:
    return lambda client, other: client.log_in(login)


def replayed(client: RawClient, other: RawClient) -> None:
    """Answers the server's challenge by what another connection answered to its own."""
    other.send(control(Control.SASL_TOKEN_MESSAGE_REQUEST))
    heard = Answering(NIMBUS).answer(token_of(other.receive()))
    client.send(control(Control.SASL_TOKEN_MESSAGE_REQUEST))
    client.receive()
    client.send(sasl_token(heard))
    client.receive()


LOGINS: dict[str, Enter] = {
    "none": as_is,
    "wrong": with_login(Login(NIMBUS.name, "guessed")),
    "replayed": replayed,
    "expired": with_login(topology_login(GONE, "words-1")),
    "a topology as a daemon": with_login(Login(NIMBUS.name, topology_login(NOW, "words-1").secret)),
    "another topology's": with_login(topology_login(NOW, "words-12")),
    "its own": with_login(topology_login(NOW, "words-1")),
    "its own, of the token before": with_login(topology_login(BEFORE, "words-1")),
    "a daemon's": with_login(NIMBUS),
}
ALLOWED: dict[tuple[str, str], set[MessageType]] = {
    ("NONE", "none"): ALL,
    ("DIGEST", "its own"): WRITES,
    ("DIGEST", "its own, of the token before"): WRITES,
    ("DIGEST", "a daemon's"): ALL,
    ("DIGEST as Storm's", "none"): WRITES,
    ("DIGEST as Storm's", "its own"): WRITES,
    ("DIGEST as Storm's", "its own, of the token before"): WRITES,
    ("DIGEST as Storm's", "a daemon's"): ALL,
}
"""By server and login, what may be done to the heartbeats of `words-1`."""


@pytest.fixture(scope="module", params=["NONE", "DIGEST", "DIGEST as Storm's"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    tokens = tmp_path_factory.mktemp("tokens") / "tokens"
    tokens.write_text(f"{NOW}\n{BEFORE}\n")
    tokens.chmod(0o600)
    conf: dict[str, object] = {}
    if request.param != "NONE":
        conf |= {
            "pacemaker.auth.method": "DIGEST",
            "pacemaker.auth.payload": PAYLOAD,
            "pacemaker.auth.writes": request.param == "DIGEST",
            "nimbus.auth.token.file": str(tokens),
        }
    with PacemakerServer(conf, port=0) as found:
        yield request.param, found.port


@pytest.mark.parametrize("login", LOGINS)
@pytest.mark.parametrize("operation", REQUESTS, ids=lambda each: each.name)
def test_the_matrix(server: tuple[str, int], login: str, operation: MessageType) -> None:
    kind, port = server
    with RawClient(port) as client, RawClient(port) as other:
        try:
            LOGINS[login](client, other)
            answer = client.ask(operation, BEAT if operation is T.SEND_PULSE else BEAT.id).type
        except ConnectionError:
            answer = T.NOT_AUTHORIZED
        allowed = operation in ALLOWED.get((kind, login), NONE)
        assert answer is (operation.reply if allowed else T.NOT_AUTHORIZED)


def test_the_table_has_all_operations() -> None:
    assert set(REQUESTS) == ALL


def test_all_of_it_over_tls(tmp_path: Path) -> None:
    ca = trustme.CA()
    certificate = ca.issue_cert("localhost")
    files = {name: tmp_path / f"{name}.pem" for name in ("certificate", "key", "ca")}
    files["certificate"].write_bytes(b"".join(blob.bytes() for blob in certificate.cert_chain_pems))
    files["key"].write_bytes(certificate.private_key_pem.bytes())
    files["key"].chmod(0o600)
    ca.cert_pem.write_to_path(files["ca"])
    tls = {f"storm.tls.{name}.file": str(file) for name, file in files.items()}
    conf = {"pacemaker.tls": True, "pacemaker.auth.method": "DIGEST", **tls}
    with PacemakerServer({**conf, "pacemaker.auth.payload": PAYLOAD}, port=0) as found:
        with RawClient(found.port, tls=Tls.of_client(SecuritySettings.of(tls)).client) as client:
            client.log_in(NIMBUS)
            client.send(*(Message(T.SEND_PULSE, Pulse(f"/a/{n}", bytes(20_000)), n) for n in range(50)))
            assert [client.receive().id for _ in range(50)] == list(range(50))
            assert client.ask(T.GET_PULSE, "/a/49").data == Pulse("/a/49", bytes(20_000))
        with RawClient(found.port) as plain:
            plain.send(Message(T.GET_PULSE, "/a/49", 1))
            assert ends(plain)
    one = PacemakerServer({**conf, "pacemaker.auth.payload": PAYLOAD, "pacemaker.max.connections": 1}, port=0)
    with one, RawClient(one.port) as undecided, RawClient(one.port) as other:
        # A handshake that has not begun has its place already.
        assert ends(other)
        undecided.socket.sendall(b"no TLS")
        assert ends(undecided)
        with RawClient(one.port) as late:
            one.close()
            assert ends(late)


def ends(client: RawClient) -> bool:
    """Waits until the server has hung up, whatever it said before; an alert of TLS may come or not."""
    with contextlib.suppress(ConnectionError):
        while client.socket.recv(1024):
            pass
    return True
