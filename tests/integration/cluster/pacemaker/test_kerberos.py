"""Logins with Kerberos, with a real KDC: ours and Storm's client, ours and Storm's server."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cluster_records import beat
from kdc import REALM, Kdc, kdc
from storm_peer import storm_peer, storm_server
from waiting import eventually

from storm_on_spark.api.errors import SetupError
from storm_on_spark.cluster.errors import AuthenticationError
from storm_on_spark.cluster.heartbeats.connection import Connection
from storm_on_spark.cluster.heartbeats.login import reader_login, writer_login
from storm_on_spark.cluster.heartbeats.pulses import PulseReader
from storm_on_spark.cluster.heartbeats.settings import HeartbeatSettings, PacemakerSettings
from storm_on_spark.cluster.heartbeats.values import unpack, worker_path
from storm_on_spark.cluster.heartbeats.writer import PacemakerWriter
from storm_on_spark.cluster.pacemaker.login.identities import (
    KerberosIdentity,
    LoginSettings,
    daemon_login,
    topology_login,
)
from storm_on_spark.cluster.pacemaker.login.kerberos import KerberosClient, KerberosServer
from storm_on_spark.cluster.pacemaker.messages import (
    REQUESTS,
    Control,
    MessageType,
    Pulse,
    control_of,
    sasl_token,
    token_of,
)
from storm_on_spark.cluster.pacemaker.server import PacemakerServer
from storm_on_spark.cluster.security.digest import Login
from storm_on_spark.testing.servers.pacemaker_client import RawClient

pytestmark = pytest.mark.integration

T = MessageType
NOW, BEFORE, GONE = "0123456789abcdef", "fedcba9876543210", "aaaaaaaaaaaaaaaa"
BEAT = Pulse("/workerbeats/words-1/a-6700", b"1")
MODULE = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true useTicketCache=false"
READS = {T.EXISTS, T.GET_PULSE, T.GET_ALL_NODES_FOR_PATH, T.GET_ALL_PULSE_FOR_PATH}
WRITES = {T.CREATE_PATH, T.SEND_PULSE, T.DELETE_PATH, T.DELETE_PULSE_ID}
ALL, NOTHING = READS | WRITES, set[MessageType]()
SHORT_SECS, SKEW_SECS = 3, 1
DEADLINE = 60.0


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    with kdc(tmp_path_factory.mktemp("kdc")) as running:
        for principal in ("pacemaker/localhost", "pacemaker/127.0.0.2", "http/localhost", "nimbus", "stranger"):
            running.keytab(principal)
        yield running


def keytab(realm: Kdc, principal: str) -> Path:
    return realm.folder / (principal.replace("/", "_") + ".keytab")


@pytest.fixture(scope="module")
def jaas(realm: Kdc) -> Path:
    file = realm.folder / "pacemaker.jaas"
    file.write_text(
        f'PacemakerServer {{ {MODULE} keyTab="{keytab(realm, "pacemaker/localhost")}" '
        f'principal="pacemaker/localhost@{REALM}"; }};\n'
        f'PacemakerClient {{ {MODULE} keyTab="{keytab(realm, "nimbus")}" serviceName="pacemaker" '
        f'principal="nimbus@{REALM}"; }};\n'
    )
    file.chmod(0o600)
    return file


@pytest.fixture(scope="module")
def conf(realm: Kdc, jaas: Path) -> dict[str, object]:
    tokens = realm.folder / "tokens"
    tokens.write_text(f"{NOW}\n{BEFORE}\n")
    tokens.chmod(0o600)
    return {
        "pacemaker.auth.method": "KERBEROS",
        "pacemaker.kerberos.users": ["nimbus"],
        "java.security.auth.login.config": str(jaas),
        "nimbus.auth.token.file": str(tokens),
    }


@pytest.fixture(scope="module")
def server(conf: dict[str, object]) -> Iterator[PacemakerServer]:
    with PacemakerServer(conf, port=0) as found:
        yield found


@pytest.fixture(scope="module")
def as_storms(conf: dict[str, object]) -> Iterator[PacemakerServer]:
    with PacemakerServer({**conf, "pacemaker.auth.writes": False}, port=0) as found:
        yield found


def log_in(client: RawClient, realm: Kdc, principal: str) -> list[bytes]:
    """Logs in with Kerberos; returns the tokens that were sent."""
    login = KerberosClient("pacemaker", "localhost", keytab(realm, principal), f"{principal}@{REALM}")
    sent = [login.step()]
    client.send(sasl_token(sent[0]))
    while True:
        answer = client.receive()
        if answer.type is T.CONTROL_MESSAGE:
            assert control_of(answer) is Control.SASL_COMPLETE_REQUEST
            return sent
        sent.append(login.step(token_of(answer)))
        client.send(sasl_token(sent[-1]))


def test_our_client_reads_and_writes_after_its_login(server: PacemakerServer, realm: Kdc) -> None:
    with RawClient(server.port) as client:
        log_in(client, realm, "nimbus")
        assert client.ask(T.SEND_PULSE, BEAT).type is T.SEND_PULSE_RESPONSE
        assert client.ask(T.GET_PULSE, BEAT.id).data == BEAT


Enter = Callable[[RawClient, PacemakerServer], None]


def with_tokens(client: RawClient, tokens: list[bytes]) -> None:
    """Sends the tokens of a login one by one; raises ConnectionError when the server hangs up."""
    for token in tokens:
        client.send(sasl_token(token))
        client.receive()


def with_ticket(realm: Kdc, principal: str, service: str = "pacemaker") -> Enter:
    def enter(client: RawClient, server: PacemakerServer) -> None:
        login = KerberosClient(service, "localhost", keytab(realm, principal), f"{principal}@{REALM}")
        with_tokens(client, [login.step()])

    return enter


def replayed(realm: Kdc) -> Enter:
    def enter(client: RawClient, server: PacemakerServer) -> None:
        with RawClient(server.port) as victim:
            sent = log_in(victim, realm, "nimbus")
        with_tokens(client, sent)

    return enter


@pytest.fixture(scope="module")
def expired(realm: Kdc, server: PacemakerServer) -> Enter:
    """Presents tickets that were right when they were made, at a server that allows clocks a second of difference.

    The library leaves tickets of the past at home, so what is presented is made before.
    """
    tight = realm.folder / "tight.conf"
    tight.write_text(realm.conf.read_text().replace("[libdefaults]\n", f"[libdefaults]\n clockskew = {SKEW_SECS}\n"))

    def ticket(count: int) -> list[KerberosClient]:
        realm.run(["kinit", "-l", f"{SHORT_SECS}s", "-k", "-t", str(keytab(realm, "nimbus")), f"nimbus@{REALM}"])
        return [KerberosClient("pacemaker", "localhost", None, f"nimbus@{REALM}") for _ in range(count)]

    def made(count: int) -> list[bytes]:
        deadline = time.monotonic() + DEADLINE
        while True:
            try:
                return [login.step() for login in ticket(count)]
            except AuthenticationError:
                # A slow machine: it was over before it was used.
                assert time.monotonic() < deadline

    first, *tokens = made(1 + 2 * len(REQUESTS))
    over = time.time() + SHORT_SECS + 2 * SKEW_SECS
    with RawClient(server.port) as client:
        with_tokens(client, [first])

    def enter(client: RawClient, server: PacemakerServer) -> None:
        eventually(lambda: time.time() > over, "the ticket is over")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("KRB5_CONFIG", str(tight))
            with_tokens(client, [tokens.pop()])

    return enter


def with_digest(login: Login) -> Enter:
    return lambda client, server: client.log_in(login)


@pytest.fixture(scope="module")
def logins(realm: Kdc, expired: Enter) -> dict[str, Enter]:
    return {
        "none": lambda client, server: None,
        "no ticket": lambda client, server: with_tokens(client, [b"no ticket"]),
        "of another user": lambda client, server: void(log_in(client, realm, "stranger")),
        "for another service": with_ticket(realm, "nimbus", "http"),
        "replayed": replayed(realm),
        "expired": expired,
        "a daemon by DIGEST": with_digest(
            daemon_login(LoginSettings.of({"pacemaker.auth.payload": "nimbus:its password"}))
        ),
        "a topology's, of a token that is gone": with_digest(topology_login(GONE, "words-1")),
        "another topology's": with_digest(topology_login(NOW, "words-12")),
        "its own": with_digest(topology_login(NOW, "words-1")),
        "its own, of the token before": with_digest(topology_login(BEFORE, "words-1")),
        "a daemon's": lambda client, server: void(log_in(client, realm, "nimbus")),
    }


def void(_: object) -> None:
    """For a lambda that returns nothing."""


#: Of a login: why the log says that it was refused, what may be done then, and what at a server like Storm's.
MATRIX: dict[str, tuple[str | None, set[MessageType], set[MessageType]]] = {
    "none": (None, NOTHING, WRITES),
    "no ticket": ("Kerberos refuses a login", NOTHING, NOTHING),
    "of another user": ("is none of pacemaker.kerberos.users", NOTHING, NOTHING),
    "for another service": ("Kerberos refuses a login", NOTHING, NOTHING),
    "replayed": ("Request is a replay", NOTHING, NOTHING),
    "expired": ("Ticket expired", NOTHING, NOTHING),
    "a daemon by DIGEST": ("a wrong secret of 'pacemaker-client'", NOTHING, NOTHING),
    "a topology's, of a token that is gone": ("a wrong secret of 'topology:words-1'", NOTHING, NOTHING),
    "another topology's": (None, NOTHING, NOTHING),
    "its own": (None, WRITES, WRITES),
    "its own, of the token before": (None, WRITES, WRITES),
    "a daemon's": (None, ALL, ALL),
}


@pytest.mark.parametrize("kind", ["KERBEROS", "KERBEROS as Storm's"])
@pytest.mark.parametrize("login", MATRIX)
def test_the_matrix(
    server: PacemakerServer,
    as_storms: PacemakerServer,
    logins: dict[str, Enter],
    caplog: pytest.LogCaptureFixture,
    kind: str,
    login: str,
) -> None:
    """Every operation on the heartbeats of `words-1`; what is not in the table is refused."""
    at = server if kind == "KERBEROS" else as_storms
    refused, *allowed = MATRIX[login]
    for operation in REQUESTS:
        caplog.clear()
        with RawClient(at.port) as client:
            try:
                logins[login](client, at)
                answer = client.ask(operation, BEAT if operation is T.SEND_PULSE else BEAT.id).type
            except ConnectionError:
                answer = T.NOT_AUTHORIZED
                assert refused is not None
                assert refused in caplog.text
        may = operation in allowed[kind != "KERBEROS"]
        assert answer is (operation.reply if may else T.NOT_AUTHORIZED), operation
    assert set(REQUESTS) == ALL


def test_a_topology_logs_in_by_digest_at_a_server_with_kerberos(server: PacemakerServer) -> None:
    with RawClient(server.port) as client:
        client.log_in(topology_login(NOW, "words-1"))
        assert client.ask(T.SEND_PULSE, BEAT).type is T.SEND_PULSE_RESPONSE
        assert client.ask(T.GET_PULSE, BEAT.id).type is T.NOT_AUTHORIZED


def test_storms_clients_log_in_at_two_servers_and_one_is_enough(
    realm: Kdc, conf: dict[str, object], jaas: Path, tmp_path: Path
) -> None:
    """`PacemakerClient`, its pool and the state storage. They reach all servers at one port, each by its own login.

    This takes eleven seconds: Storm's client waits so long before it gives up a server.
    """
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(PacemakerServer(conf, port=0))
        its_own = {
            "pacemaker.port": first.port,
            "pacemaker.bind.address": "127.0.0.2",
            "pacemaker.kerberos.principal": f"pacemaker/127.0.0.2@{REALM}",
            "pacemaker.kerberos.keytab": str(keytab(realm, "pacemaker/127.0.0.2")),
        }
        servers = [first, stack.enter_context(PacemakerServer({**conf, **its_own}))]
        of_storm = {
            "pacemaker_port": first.port,
            "pacemaker_servers": "[localhost,127.0.0.2]",
            "pacemaker_auth_method": "KERBEROS",
            "java_security_auth_login_config": str(jaas),
        }
        krb5 = f"-Djava.security.krb5.conf={realm.conf}"
        client = stack.enter_context(storm_peer("client", tmp_path, krb5, **of_storm))
        assert client.ask("send localhost SEND_PULSE", "/x/z", "MQ==") == "SEND_PULSE_RESPONSE"
        assert client.ask("send localhost GET_PULSE", "/x/z") == "GET_PULSE_RESPONSE /x/z=MQ=="
        assert client.ask("pool SEND_PULSE", "/x/y", "MQ==") == "SEND_PULSE_RESPONSE"
        said = client.ask("all GET_PULSE", "/x/y")
        assert sorted(said.split(" | ")) == ["GET_PULSE_RESPONSE /x/y=", "GET_PULSE_RESPONSE /x/y=MQ=="]
        assert client.ask("set", BEAT.id, 1_700_000_000) == "done"
        assert client.ask("get", BEAT.id) == "seconds 1700000000"
        assert client.ask("children", "/workerbeats") == "words-1"
        # It stays with the server that it wrote to; when that one is gone, it writes to the other.
        [used] = [number for number, each in enumerate(servers) if each.clients.beats.exists(BEAT.id)]
        servers[used].close()
        assert client.ask("set", BEAT.id, 1_700_000_003) == "done"
        assert servers[1 - used].clients.beats.exists(BEAT.id)
        for each in servers:
            assert "pacemaker_logins_failed_total 0.0\n" in each.clients.metrics.prometheus()


def test_our_client_logs_in_at_storms_server(realm: Kdc, jaas: Path, tmp_path: Path) -> None:
    as_storms = {
        "pacemaker_auth_method": "KERBEROS",
        "nimbus_daemon_user": "nimbus",
        "java_security_auth_login_config": str(jaas),
    }
    with storm_server(tmp_path, f"-Djava.security.krb5.conf={realm.conf}", **as_storms) as port:
        ours = {"pacemaker.auth.method": "KERBEROS", "java.security.auth.login.config": str(jaas)}
        logins = HeartbeatSettings.from_conf(ours)
        settings = PacemakerSettings((name := f"localhost:{port}",), timeout_secs=10.0)
        path = worker_path(said := beat("words-1"))
        with (
            PacemakerWriter(settings, writer_login(logins, "words-1"), random.Random(1)) as writer,
            PulseReader(Connection(name, settings, reader_login(logins.login)(name))) as reader,
        ):
            writer.put(said)
            eventually(lambda: path in reader.read_tree("/workerbeats"), "Storm's server has the heartbeat")
            assert unpack(reader.read_tree("/workerbeats")[path], path) == said
            reader.delete("/workerbeats/words-1")
            assert reader.get(path) is None
        with RawClient(port) as stranger:
            stranger.ask(T.SEND_PULSE, BEAT)
            assert stranger.ask(T.GET_PULSE, BEAT.id).type is T.NOT_AUTHORIZED


def test_a_key_table_that_cant_be_used_is_said(realm: Kdc) -> None:
    with pytest.raises(SetupError, match="is not there"):
        KerberosServer(KerberosIdentity(f"pacemaker@{REALM}", realm.folder / "none", ("nimbus",)))
    with pytest.raises(SetupError, match="is not a principal"):
        KerberosServer(KerberosIdentity("pacemaker", keytab(realm, "nimbus"), ("nimbus",)))
