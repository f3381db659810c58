"""Which store keeps heartbeats, and how to talk to Pacemakers."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from storm_on_spark.api.config import Config
from storm_on_spark.api.config.settings import Settings
from storm_on_spark.api.errors import ConfigError
from storm_on_spark.cluster.pacemaker.login.identities import LoginSettings
from storm_on_spark.cluster.security.settings import SecuritySettings
from storm_on_spark.cluster.security.tls import Tls

STORES: Final[Mapping[str, bool]] = {
    "org.apache.storm.cluster.ZKStateStorageFactory": False,
    "org.apache.storm.cluster.PaceMakerStateStorageFactory": True,
    "storm_on_spark.cluster.heartbeats.reader.ZooKeeperReader": False,
    "storm_on_spark.cluster.heartbeats.reader.PacemakerReader": True,
}
"""Values of `storm.cluster.state.store`, Storm's and ours: whether Pacemakers keep the heartbeats."""

BEAT_SECS: Final = 3.0
"""Between two heartbeats of a driver (Storm's `task.heartbeat.frequency.secs`)."""


@dataclass(frozen=True)
class StoreSettings(Settings):
    """The store of heartbeats, from the configuration."""

    store: Annotated[str, Config.STORM_CLUSTER_STATE_STORE]
    servers: Annotated[tuple[str, ...], Config.PACEMAKER_SERVERS]
    port: Annotated[int, Config.PACEMAKER_PORT]
    threads: Annotated[int, Config.PACEMAKER_CLIENT_MAX_THREADS]
    message_bytes: Annotated[int, Config.PACEMAKER_THRIFT_MESSAGE_SIZE_MAX]
    tls: Annotated[bool, Config.PACEMAKER_TLS]

    @property
    def uses_pacemaker(self) -> bool:
        """Whether Pacemakers keep the heartbeats; else ZooKeeper does.

        Example:
            >>> StoreSettings.of({}).uses_pacemaker, StoreSettings.of(
            ...     {"storm.cluster.state.store": "org.apache.storm.cluster.PaceMakerStateStorageFactory"}
            ... ).uses_pacemaker
            (False, True)
        """
        return STORES[self.store]


@dataclass(frozen=True)
class PacemakerSettings:
    """Where the Pacemakers are, and the limits of messages and times.

    Example:
        >>> PacemakerSettings.from_conf({"pacemaker.servers": ["p1", "p2:6700", "::1"]}).servers
        ('p1:6699', 'p2:6700', '[::1]:6699')
    """

    servers: tuple[str, ...]
    """`host:port` each."""
    threads: int = 2
    """How many servers are read at the same time."""
    most_bytes: int = 10 << 20
    """The longest message, in bytes."""
    timeout_secs: float = 1.0
    """For a connection, and for each answer after the one before, as in Storm."""
    tls: ssl.SSLContext | None = field(default=None, repr=False, compare=False)
    """The certificates that servers are verified by; None for connections without TLS."""

    @classmethod
    def from_conf(cls, conf: Mapping[str, Any]) -> PacemakerSettings:
        """Returns the settings in a configuration; what isn't set there has Storm's default.

        Raises:
            ConfigError: no server is named, or one is named wrongly.
        """
        return cls.of(StoreSettings.of(conf), SecuritySettings.of(conf))

    @classmethod
    def of(cls, settings: StoreSettings, security: SecuritySettings) -> PacemakerSettings:
        """Returns the settings for a store.

        Raises:
            ConfigError: no server is named, or one is named wrongly.
        """
        if not settings.servers:
            raise ConfigError(
                f"{Config.STORM_CLUSTER_STATE_STORE} says that Pacemakers keep heartbeats, and "
                f"{Config.PACEMAKER_SERVERS} names none",
                key=Config.PACEMAKER_SERVERS,
            )
        return cls(
            servers=tuple(dict.fromkeys(_address(server, settings.port) for server in settings.servers)),
            threads=settings.threads,
            most_bytes=settings.message_bytes,
            tls=_tls(security) if settings.tls else None,
        )


@dataclass(frozen=True)
class HeartbeatSettings:
    """The store of heartbeats, and how a process logs in there."""

    pacemakers: PacemakerSettings | None
    """None where ZooKeeper keeps them."""
    login: LoginSettings
    security: SecuritySettings

    @classmethod
    def from_conf(cls, conf: Mapping[str, Any]) -> HeartbeatSettings:
        """Returns what a configuration says.

        Raises:
            ConfigError: a value is wrong.
        """
        store, security = StoreSettings.of(conf), SecuritySettings.of(conf)
        pacemakers = PacemakerSettings.of(store, security) if store.uses_pacemaker else None
        return cls(pacemakers, LoginSettings.of(conf), security)


def _tls(security: SecuritySettings) -> ssl.SSLContext:
    context = Tls.of_client(security).client
    if context is None:
        raise ConfigError(f"{Config.PACEMAKER_TLS} needs {Config.STORM_TLS_CA_FILE}", key=Config.PACEMAKER_TLS)
    return context


def _address(server: str, port: int) -> str:
    """Returns `host:port`."""
    host, colon, own = server.rpartition(":")
    if server.count(":") > 1 and not server.startswith("["):
        return f"[{server}]:{port}"
    if not colon or server.endswith("]"):
        host, own = server, str(port)
    if not host or not own.isdecimal() or not 0 < int(own) < 65536:
        raise ConfigError(
            f"{Config.PACEMAKER_SERVERS} must name hosts, or host:port, not {server!r}", key=Config.PACEMAKER_SERVERS
        )
    return f"{host}:{own}"
