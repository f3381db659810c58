"""Which store keeps heartbeats, and how to talk to Pacemakers."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from storm_on_spark.api.config import Config, default_of, value_of
from storm_on_spark.api.errors import ConfigError
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
class PacemakerSettings:
    """Where the Pacemakers are, and what may pass; times are in seconds.

    Example:
        >>> PacemakerSettings.from_conf({"pacemaker.servers": ["p1", "p2:6700", "::1"]}).servers
        ('p1:6699', 'p2:6700', '[::1]:6699')
    """

    servers: tuple[str, ...]
    """`host:port` each."""
    threads: int = 2
    """How many servers are read at the same time."""
    most_bytes: int = 10 << 20
    """Of a message."""
    timeout: float = 1.0
    """For a connection, and for each answer after the one before, as in Storm."""
    tls: ssl.SSLContext | None = field(default=None, repr=False, compare=False)
    """By what servers are known; None for connections without TLS."""

    @classmethod
    def from_conf(cls, conf: Mapping[str, Any]) -> PacemakerSettings:
        """Returns the settings in a configuration; what isn't set there has Storm's default.

        Raises:
            ConfigError: no server is named, or one is named wrongly.
        """
        servers = value_of(conf, Config.PACEMAKER_SERVERS)
        if not servers:
            raise ConfigError(
                f"{Config.STORM_CLUSTER_STATE_STORE} says that Pacemakers keep heartbeats, and "
                f"{Config.PACEMAKER_SERVERS} names none",
                key=Config.PACEMAKER_SERVERS,
            )
        port = value_of(conf, Config.PACEMAKER_PORT)
        return cls(
            servers=tuple(dict.fromkeys(_address(server, port) for server in servers)),
            threads=value_of(conf, Config.PACEMAKER_CLIENT_MAX_THREADS),
            most_bytes=value_of(conf, Config.PACEMAKER_THRIFT_MESSAGE_SIZE_MAX),
            tls=_tls(conf) if value_of(conf, Config.PACEMAKER_TLS) else None,
        )


def uses_pacemaker(conf: Mapping[str, Any]) -> bool:
    """Returns whether Pacemakers keep the heartbeats; else ZooKeeper does.

    Raises:
        ConfigError: there is no such store.

    Example:
        >>> uses_pacemaker({}), uses_pacemaker(
        ...     {"storm.cluster.state.store": "org.apache.storm.cluster.PaceMakerStateStorageFactory"})
        (False, True)
    """
    key = Config.STORM_CLUSTER_STATE_STORE
    name = str(conf.get(key) or default_of(key))
    if name not in STORES:
        raise ConfigError(f"{key} must be one of {', '.join(STORES)}, not {name!r}", key=key)
    return STORES[name]


def _tls(conf: Mapping[str, Any]) -> ssl.SSLContext:
    context = Tls.of_client(conf).client
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
