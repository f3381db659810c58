"""What a Pacemaker server is told by a configuration: where it listens, who may do what, how much it bears."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from storm_on_spark.api.config import Config, value_of
from storm_on_spark.api.errors import SetupError
from storm_on_spark.cluster.pacemaker.access import Method, Rules
from storm_on_spark.cluster.pacemaker.heartbeats import Quota
from storm_on_spark.cluster.pacemaker.login.digest import Login, storm_secret
from storm_on_spark.cluster.pacemaker.login.jaas import read_jaas
from storm_on_spark.cluster.security.tokens import Tokens, derived, mac

_PURPOSE: Final = "pacemaker"
_TOPOLOGY: Final = "topology:"
_MIB: Final = 1 << 20


class Limits(msgspec.Struct, frozen=True):
    """What connections may do to a server. Times are in seconds."""

    message_bytes: int = 10 * _MIB
    connections: int = 20_000
    by_address: int = 10_000
    login_secs: float = 10.0
    """For a login, and for a message that has begun."""
    idle_secs: float = 300.0
    """Without a message."""
    stall_secs: float = 30.0
    """Without getting on with answers that the other side doesn't read."""
    sweep_secs: float = 1.0
    """Between two looks for connections and heartbeats whose time is over."""


class KerberosIdentity(msgspec.Struct, frozen=True):
    """By what a server takes Kerberos logins, and whose."""

    principal: str
    keytab: Path
    users: tuple[str, ...]
    """Short names, or whole principals."""


class ServerSettings(msgspec.Struct, frozen=True):
    """All of it."""

    host: str
    port: int
    rules: Rules
    limits: Limits
    quota: Quota
    expiry: float
    daemon: Login | None
    """The login of Nimbuses, with DIGEST."""
    tokens: Tokens | None
    """The cluster's secret, from which logins of topologies are derived."""
    kerberos: KerberosIdentity | None
    tls: bool
    metrics_port: int | None

    @classmethod
    def from_conf(cls, conf: Mapping[str, Any]) -> ServerSettings:
        """Returns what a configuration says.

        Raises:
            SetupError: it says nothing that a server could run by.
        """
        if conf.get(Config.PACEMAKER_CHILDOPTS) is not None:
            raise SetupError(
                f"{Config.PACEMAKER_CHILDOPTS} has options of a JVM; this Pacemaker is a Python process: leave it out"
            )
        method = cast(Method, value_of(conf, Config.PACEMAKER_AUTH_METHOD))
        tokens = Tokens.from_conf(conf)
        sections = {} if method == "NONE" else _sections(conf)
        return cls(
            host=value_of(conf, Config.PACEMAKER_BIND_ADDRESS),
            port=value_of(conf, Config.PACEMAKER_PORT),
            rules=Rules(method, value_of(conf, Config.PACEMAKER_AUTH_WRITES)),
            limits=Limits(
                message_bytes=value_of(conf, Config.PACEMAKER_THRIFT_MESSAGE_SIZE_MAX),
                connections=value_of(conf, Config.PACEMAKER_MAX_CONNECTIONS),
                by_address=value_of(conf, Config.PACEMAKER_MAX_CONNECTIONS_PER_ADDRESS),
                login_secs=value_of(conf, Config.PACEMAKER_LOGIN_SECS),
                idle_secs=value_of(conf, Config.PACEMAKER_IDLE_SECS),
            ),
            quota=Quota(
                keys=value_of(conf, Config.PACEMAKER_CLIENT_MAX_KEYS),
                client_bytes=value_of(conf, Config.PACEMAKER_CLIENT_MAX_MB) * _MIB,
                all_bytes=value_of(conf, Config.PACEMAKER_MAX_MB) * _MIB,
            ),
            expiry=value_of(conf, Config.PACEMAKER_HEARTBEAT_EXPIRY_SECS) or math.inf,
            daemon=daemon_login(conf, sections) if method == "DIGEST" else None,
            tokens=None if method == "NONE" else tokens,
            kerberos=_kerberos(conf, sections) if method == "KERBEROS" else None,
            tls=value_of(conf, Config.PACEMAKER_TLS),
            metrics_port=conf.get(Config.PACEMAKER_METRICS_PORT),
        )


def daemon_login(conf: Mapping[str, Any], sections: Mapping[str, Mapping[str, str]] | None = None) -> Login:
    """Returns the login of a Nimbus with DIGEST, as Storm's client has it.

    Args:
        conf: with `pacemaker.auth.payload`, or a JAAS file that has the section `PacemakerDigest`.
        sections: of that file, where it was read already.

    Raises:
        SetupError: neither says it, or both do.
    """
    found = (_sections(conf) if sections is None else sections).get("PacemakerDigest")
    payload = conf.get(Config.PACEMAKER_AUTH_PAYLOAD)
    if (found is None) == (payload is None):
        raise SetupError(
            f"{Config.PACEMAKER_AUTH_METHOD}: DIGEST needs one of {Config.PACEMAKER_AUTH_PAYLOAD} and the section "
            f"PacemakerDigest in the file that {Config.JAVA_SECURITY_AUTH_LOGIN_CONFIG} names"
        )
    if found is not None:
        username, password = found.get("username", ""), found.get("password", "")
    else:
        username, _, password = str(payload).partition(":")
    if not username or not password:
        raise SetupError("a login with DIGEST needs a username and a password that are not empty")
    # Storm's clients call themselves so, or by the name of their topology; the secret is the same.
    return Login("pacemaker-client", storm_secret(username, password))


def topology_login(token: str, topology: str) -> Login:
    """Returns by what a topology writes its own heartbeats, and can do nothing else.

    Args:
        token: one of the cluster's; the first one, for a login that is given out.
        topology: its id.

    Example:
        >>> topology_login("0123456789abcdef", "words-1")
        Login('topology:words-1')
    """
    return Login(f"{_TOPOLOGY}{topology}", mac(derived(token, _PURPOSE), "topology", topology))


def topology_of(name: str) -> str | None:
    """Returns the topology that a login's name stands for; None for another login."""
    return name.removeprefix(_TOPOLOGY) if name.startswith(_TOPOLOGY) else None


def _sections(conf: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    file = conf.get(Config.JAVA_SECURITY_AUTH_LOGIN_CONFIG)
    return {} if file is None else read_jaas(file)


def _kerberos(conf: Mapping[str, Any], sections: Mapping[str, Mapping[str, str]]) -> KerberosIdentity:
    section = sections.get("PacemakerServer", {})
    principal = conf.get(Config.PACEMAKER_KERBEROS_PRINCIPAL) or section.get("principal")
    keytab = conf.get(Config.PACEMAKER_KERBEROS_KEYTAB) or section.get("keyTab")
    if not principal or not keytab:
        raise SetupError(
            f"{Config.PACEMAKER_AUTH_METHOD}: KERBEROS needs {Config.PACEMAKER_KERBEROS_PRINCIPAL} and "
            f"{Config.PACEMAKER_KERBEROS_KEYTAB}, or a section PacemakerServer with principal and keyTab in the file "
            f"that {Config.JAVA_SECURITY_AUTH_LOGIN_CONFIG} names"
        )
    if section and section.get("useKeyTab", "true").lower() != "true":
        raise SetupError("section PacemakerServer: a server needs useKeyTab=true; nobody is there to enter a password")
    users = tuple(value_of(conf, Config.PACEMAKER_KERBEROS_USERS))
    if not users:
        raise SetupError(
            f"{Config.PACEMAKER_AUTH_METHOD}: KERBEROS needs {Config.PACEMAKER_KERBEROS_USERS}: who may read and write"
        )
    return KerberosIdentity(str(principal), Path(keytab), users)
