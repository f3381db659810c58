"""Logins with Kerberos, with a real KDC: ours and Storm's client, ours and Storm's server."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from kdc import REALM, Kdc, kdc
from storm_peer import storm_peer, storm_server

from storm_on_spark.api.errors import SetupError
from storm_on_spark.cluster.pacemaker.login.kerberos import KerberosClient, KerberosServer
from storm_on_spark.cluster.pacemaker.messages import Control, MessageType, Pulse, control_of, sasl_token, token_of
from storm_on_spark.cluster.pacemaker.server import PacemakerServer
from storm_on_spark.cluster.pacemaker.settings import KerberosIdentity, topology_login
from storm_on_spark.testing.pacemaker import RawClient

pytestmark = pytest.mark.integration

T = MessageType
TOKEN = "0123456789abcdef"
BEAT = Pulse("/workerbeats/words-1/a-6700", b"1")
MODULE = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true useTicketCache=false"


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    with kdc(tmp_path_factory.mktemp("kdc")) as running:
        for principal in ("pacemaker/localhost", "nimbus", "stranger"):
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
def server(realm: Kdc, jaas: Path) -> Iterator[PacemakerServer]:
    tokens = realm.folder / "token"
    tokens.write_text(TOKEN)
    tokens.chmod(0o600)
    conf = {
        "pacemaker.port": 0,
        "pacemaker.auth.method": "KERBEROS",
        "pacemaker.kerberos.users": ["nimbus"],
        "java.security.auth.login.config": str(jaas),
        "nimbus.auth.token.file": str(tokens),
    }
    with PacemakerServer(conf) as found:
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


def test_without_a_login_with_anothers_and_with_a_replayed_one_nothing_is_allowed(
    server: PacemakerServer, realm: Kdc
) -> None:
    with RawClient(server.port) as client:
        assert client.ask(T.SEND_PULSE, BEAT).type is T.NOT_AUTHORIZED
        assert client.ask(T.GET_PULSE, BEAT.id).type is T.NOT_AUTHORIZED
    with RawClient(server.port) as client, pytest.raises(ConnectionError):
        log_in(client, realm, "stranger")
    with RawClient(server.port) as client:
        sent = log_in(client, realm, "nimbus")
    for tokens in (sent, [b"no ticket"]):
        with RawClient(server.port) as client:
            # The last one is wrapped with a key of that login only.
            client.send(*map(sasl_token, tokens))
            said = []
            with contextlib.suppress(ConnectionError):
                while True:
                    said.append(client.receive().type)
            assert T.CONTROL_MESSAGE not in said


def test_a_topology_logs_in_by_digest_at_a_server_with_kerberos(server: PacemakerServer) -> None:
    with RawClient(server.port) as client:
        client.log_in(topology_login(TOKEN, "words-1"))
        assert client.ask(T.SEND_PULSE, BEAT).type is T.SEND_PULSE_RESPONSE
        assert client.ask(T.GET_PULSE, BEAT.id).type is T.NOT_AUTHORIZED


def test_storms_client_logs_in_and_reads(server: PacemakerServer, realm: Kdc, jaas: Path, tmp_path: Path) -> None:
    conf = {
        "pacemaker_port": server.port,
        "pacemaker_auth_method": "KERBEROS",
        "java_security_auth_login_config": str(jaas),
    }
    with storm_peer("client", tmp_path, f"-Djava.security.krb5.conf={realm.conf}", **conf) as client:
        assert client.ask("send localhost SEND_PULSE", BEAT.id, "MQ==") == "SEND_PULSE_RESPONSE"
        assert client.ask("send localhost GET_PULSE", BEAT.id) == f"GET_PULSE_RESPONSE {BEAT.id}=MQ=="


def test_our_client_logs_in_at_storms_server(realm: Kdc, jaas: Path, tmp_path: Path) -> None:
    conf = {
        "pacemaker_auth_method": "KERBEROS",
        "nimbus_daemon_user": "nimbus",
        "java_security_auth_login_config": str(jaas),
    }
    storms = storm_server(tmp_path, f"-Djava.security.krb5.conf={realm.conf}", **conf)
    with storms as port, RawClient(port) as client:
        log_in(client, realm, "nimbus")
        client.ask(T.SEND_PULSE, BEAT)
        assert client.ask(T.GET_PULSE, BEAT.id).data == BEAT


def test_a_key_table_that_cant_be_used_is_said(realm: Kdc) -> None:
    with pytest.raises(SetupError, match="is not there"):
        KerberosServer(KerberosIdentity(f"pacemaker@{REALM}", realm.folder / "none", ("nimbus",)))
    with pytest.raises(SetupError, match="is no principal"):
        KerberosServer(KerberosIdentity("pacemaker", keytab(realm, "nimbus"), ("nimbus",)))
