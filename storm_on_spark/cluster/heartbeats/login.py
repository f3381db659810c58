"""How clients log in at a Pacemaker.

A Nimbus reads: it logs in with DIGEST or Kerberos, as Storm's does. Drivers and supervisors write: each driver has a
login that is derived from the cluster's secret for its topology, so that it can write its own heartbeats and nobody
else's. Where the cluster has no secret, they log in as a Nimbus does, or not at all if everybody may write.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from storm_on_spark.api.config import Config
from storm_on_spark.api.errors import ConfigError
from storm_on_spark.cluster.errors import WireError
from storm_on_spark.cluster.heartbeats.connection import Login, Receive, Send
from storm_on_spark.cluster.heartbeats.settings import HeartbeatSettings
from storm_on_spark.cluster.pacemaker.login.identities import LoginSettings, daemon_login, topology_login
from storm_on_spark.cluster.pacemaker.login.kerberos import KerberosClient
from storm_on_spark.cluster.pacemaker.messages import (
    Control,
    Message,
    MessageType,
    control,
    control_of,
    sasl_token,
    token_of,
)
from storm_on_spark.cluster.security import digest
from storm_on_spark.cluster.security.tokens import Tokens


def reader_login(settings: LoginSettings) -> Callable[[str], Login | None]:
    """Returns how a Nimbus logs in at a server `host:port`.

    Raises:
        SetupError: the configuration names no user.
    """
    if settings.method == "NONE":
        return lambda server: None
    if settings.method == "DIGEST":
        known = daemon_login(settings)
        return lambda server: lambda send, receive: log_in(known, send, receive)
    return _kerberos(settings)


def writer_login(settings: HeartbeatSettings, topology_id: str) -> Callable[[str], Login | None]:
    """Returns how writers below a topology's path log in at a server `host:port`.

    Raises:
        SetupError: the configuration has no credentials.
    """
    login = settings.login
    if login.method == "NONE":
        return lambda server: None
    tokens = Tokens.of(settings.security)
    if tokens is None:
        return reader_login(login) if login.writes else lambda server: None
    # The token may change while this process runs.
    return lambda server: lambda send, receive: log_in(topology_login(tokens.first, topology_id), send, receive)


def log_in(login: digest.Login, send: Send, receive: Receive) -> None:
    """Logs in with DIGEST-MD5.

    Raises:
        AuthenticationError: the server does not know the secret.
        WireError: it answers something else.
    """
    answering = digest.Answering(login)
    send(control(Control.SASL_TOKEN_MESSAGE_REQUEST))
    send(sasl_token(answering.answer(token_of(receive()))))
    answering.check(token_of(receive()))
    _complete(receive())


def _kerberos(settings: LoginSettings) -> Callable[[str], Login | None]:
    section = settings.sections().get("PacemakerClient", {})
    keytab = section.get("keyTab")
    if section.get("useKeyTab", "false").lower() == "true" and keytab is None:
        raise ConfigError(
            f"{settings.jaas_file}: section PacemakerClient says useKeyTab=true and names no keyTab",
            key=Config.JAVA_SECURITY_AUTH_LOGIN_CONFIG,
        )

    def at(server: str) -> Login:
        host = server.rpartition(":")[0].strip("[]")

        def login(send: Send, receive: Receive) -> None:
            client = KerberosClient(
                section.get("serviceName", "pacemaker"),
                host,
                None if keytab is None else Path(keytab),
                section.get("principal"),
            )
            token: bytes | None = None
            while True:
                send(sasl_token(client.step(token)))
                answer = receive()
                if answer.type is MessageType.CONTROL_MESSAGE:
                    _complete(answer)
                    return
                token = token_of(answer)

        return login

    return at


def _complete(message: Message) -> None:
    code = control_of(message)
    if code is not Control.SASL_COMPLETE_REQUEST:
        raise WireError(f"a login ends with {code.name}")
