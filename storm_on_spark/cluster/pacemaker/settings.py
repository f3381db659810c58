"""A Pacemaker server's configuration: where it listens, who may do what, how much load it accepts."""

from __future__ import annotations

import math
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

import msgspec

from storm_on_spark.api.config import Config
from storm_on_spark.api.config.settings import Settings
from storm_on_spark.api.errors import SetupError
from storm_on_spark.cluster.pacemaker.access import Rules
from storm_on_spark.cluster.pacemaker.heartbeats import Quota
from storm_on_spark.cluster.pacemaker.login.identities import (
    KerberosIdentity,
    LoginSettings,
    daemon_login,
    kerberos_identity,
)
from storm_on_spark.cluster.security.digest import Login
from storm_on_spark.cluster.security.settings import SecuritySettings
from storm_on_spark.cluster.security.tls import Tls
from storm_on_spark.cluster.security.tokens import Tokens

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


@dataclass(frozen=True)
class _Keys(Settings):
    host: Annotated[str, Config.PACEMAKER_BIND_ADDRESS]
    port: Annotated[int, Config.PACEMAKER_PORT]
    message_bytes: Annotated[int, Config.PACEMAKER_THRIFT_MESSAGE_SIZE_MAX]
    connections: Annotated[int, Config.PACEMAKER_MAX_CONNECTIONS]
    by_address: Annotated[int, Config.PACEMAKER_MAX_CONNECTIONS_PER_ADDRESS]
    login_secs: Annotated[float, Config.PACEMAKER_LOGIN_SECS]
    idle_secs: Annotated[float, Config.PACEMAKER_IDLE_SECS]
    client_keys: Annotated[int, Config.PACEMAKER_CLIENT_MAX_KEYS]
    client_max_mb: Annotated[int, Config.PACEMAKER_CLIENT_MAX_MB]
    max_mb: Annotated[int, Config.PACEMAKER_MAX_MB]
    expiry_secs: Annotated[float, Config.PACEMAKER_HEARTBEAT_EXPIRY_SECS]
    tls: Annotated[bool, Config.PACEMAKER_TLS]
    metrics_port: Annotated[int | None, Config.PACEMAKER_METRICS_PORT]
    childopts: Annotated[str | tuple[str, ...] | None, Config.PACEMAKER_CHILDOPTS]


class ServerSettings(msgspec.Struct, frozen=True):
    """All of it."""

    host: str
    port: int
    rules: Rules
    limits: Limits
    quota: Quota
    expiry_secs: float
    daemon: Login | None
    """The login of Nimbuses, with DIGEST."""
    tokens: Tokens | None
    """The cluster's secret, from which logins of topologies are derived."""
    kerberos: KerberosIdentity | None
    tls: ssl.SSLContext | None
    metrics_port: int | None

    @classmethod
    def from_conf(cls, conf: Mapping[str, Any], port: int | None = None) -> ServerSettings:
        """Returns what a configuration says.

        Args:
            conf: the cluster's configuration.
            port: in the place of `pacemaker.port`; 0 is any free one.

        Raises:
            SetupError: it says nothing that a server could run by.
        """
        keys, logins = _Keys.of(conf), LoginSettings.of(conf)
        if keys.childopts is not None:
            raise SetupError(
                f"{Config.PACEMAKER_CHILDOPTS} has options of a JVM; this Pacemaker is a Python process: leave it out"
            )
        security = SecuritySettings.of(conf)
        tokens = Tokens.of(security)
        tls = Tls.of_daemon(security).server if keys.tls else None
        if keys.tls and tls is None:
            raise SetupError("pacemaker.tls needs storm.tls.certificate.file, storm.tls.key.file and storm.tls.ca.file")
        method = logins.method
        sections = {} if method == "NONE" else logins.sections()
        return cls(
            host=keys.host,
            port=keys.port if port is None else port,
            rules=Rules(method, logins.writes),
            limits=Limits(
                message_bytes=keys.message_bytes,
                connections=keys.connections,
                by_address=keys.by_address,
                login_secs=keys.login_secs,
                idle_secs=keys.idle_secs,
            ),
            quota=Quota(keys=keys.client_keys, client_bytes=keys.client_max_mb * _MIB, all_bytes=keys.max_mb * _MIB),
            expiry_secs=keys.expiry_secs or math.inf,
            daemon=daemon_login(logins, sections) if method == "DIGEST" else None,
            tokens=None if method == "NONE" else tokens,
            kerberos=kerberos_identity(logins, sections) if method == "KERBEROS" else None,
            tls=tls,
            metrics_port=keys.metrics_port,
        )
