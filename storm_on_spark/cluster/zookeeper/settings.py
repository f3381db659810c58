"""Which ZooKeeper, and how to talk to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from storm_on_spark.api.config.config import Config, validate_conf
from storm_on_spark.api.config.settings import Settings
from storm_on_spark.api.errors import ConfigError

_SCHEMES = ("digest", "sasl")


@dataclass(frozen=True)
class _Keys(Settings):
    servers: Annotated[tuple[str, ...], Config.STORM_ZOOKEEPER_SERVERS]
    port: Annotated[int, Config.STORM_ZOOKEEPER_PORT]
    root: Annotated[str, Config.STORM_ZOOKEEPER_ROOT]
    session_timeout_ms: Annotated[int, Config.STORM_ZOOKEEPER_SESSION_TIMEOUT]
    connection_timeout_ms: Annotated[int, Config.STORM_ZOOKEEPER_CONNECTION_TIMEOUT]
    retry_times: Annotated[int, Config.STORM_ZOOKEEPER_RETRY_TIMES]
    retry_interval_ms: Annotated[int, Config.STORM_ZOOKEEPER_RETRY_INTERVAL]
    retry_ceiling_ms: Annotated[int, Config.STORM_ZOOKEEPER_RETRY_INTERVAL_CEILING]
    auth_scheme: Annotated[str | None, Config.STORM_ZOOKEEPER_AUTH_SCHEME]
    auth_payload: Annotated[str | None, Config.STORM_ZOOKEEPER_AUTH_PAYLOAD] = field(repr=False)


@dataclass(frozen=True)
class ZooKeeperSettings:
    """Where ZooKeeper is, and how long things may take.

    Example:
        >>> settings = ZooKeeperSettings.from_conf({"storm.zookeeper.servers": ["zk1", "zk2:2182"]})
        >>> settings.hosts, settings.root, settings.session_timeout_secs
        ('zk1:2181,zk2:2182', '/storm', 20.0)
    """

    hosts: str
    """`host:port,host:port`, as ZooKeeper's clients write it."""
    root: str = "/storm"
    session_timeout_secs: float = 20.0
    """After this long without a word from its client, ZooKeeper expires a session."""
    connection_timeout_secs: float = 15.0
    """How long the first connection may take, and how long an operation waits for one."""
    retry_times: int = 5
    """Attempts after a read that failed because of the connection."""
    retry_interval_secs: float = 1.0
    """Before the first of them."""
    retry_ceiling_secs: float = 30.0
    """Most between two of them."""
    auth_scheme: str | None = None
    """`digest`, or `sasl` with DIGEST-MD5."""
    auth_payload: str | None = field(default=None, repr=False)
    """`user:password`; a secret."""

    @classmethod
    def from_conf(cls, conf: Mapping[str, Any]) -> ZooKeeperSettings:
        """Returns the settings in a configuration; what isn't set there has Storm's default.

        Raises:
            ConfigError: a value is no such value, or the authentication can't be used.
        """
        validate_conf({key: value for key, value in conf.items() if str(key).startswith("storm.zookeeper.")})
        keys = _Keys.of(conf)
        root = _root(keys.root)
        scheme, payload = _auth(keys.auth_scheme, keys.auth_payload)
        return cls(
            hosts=_hosts(keys.servers, keys.port),
            root=root,
            session_timeout_secs=keys.session_timeout_ms / 1000,
            connection_timeout_secs=keys.connection_timeout_ms / 1000,
            retry_times=keys.retry_times,
            retry_interval_secs=keys.retry_interval_ms / 1000,
            retry_ceiling_secs=keys.retry_ceiling_ms / 1000,
            auth_scheme=scheme,
            auth_payload=payload,
        )


def _hosts(servers: Sequence[str], port: int) -> str:
    if not servers:
        raise ConfigError(f"{Config.STORM_ZOOKEEPER_SERVERS} names no server", key=Config.STORM_ZOOKEEPER_SERVERS)
    return ",".join(_host(server, port) for server in servers)


def _host(server: str, port: int) -> str:
    """Returns `host:port`; an address of IPv6 needs brackets for that."""
    if server.count(":") > 1 and not server.startswith("["):
        return f"[{server}]:{port}"
    _, colon, own = server.rpartition(":")
    return server if colon and own.isdecimal() else f"{server}:{port}"


def _root(root: str) -> str:
    parts = root.split("/")
    if not root.startswith("/") or len(parts) < 2 or any(part in ("", ".", "..") for part in parts[1:]):
        raise ConfigError(
            f"{Config.STORM_ZOOKEEPER_ROOT} must be an absolute path of a node such as /storm, not {root!r}",
            key=Config.STORM_ZOOKEEPER_ROOT,
        )
    return root


def _auth(scheme: str | None, payload: str | None) -> tuple[str | None, str | None]:
    if scheme is None and payload is None:
        return None, None
    key = Config.STORM_ZOOKEEPER_AUTH_SCHEME
    if scheme is None or payload is None:
        raise ConfigError(f"{key} and {Config.STORM_ZOOKEEPER_AUTH_PAYLOAD} must be set together", key=key)
    if scheme not in _SCHEMES:
        raise ConfigError(f"{key} must be one of {', '.join(_SCHEMES)}, not {scheme!r}", key=key)
    user, colon, password = payload.partition(":")
    if not user or not colon or not password:
        raise ConfigError(f"{Config.STORM_ZOOKEEPER_AUTH_PAYLOAD} must be user:password", key=key)
    return scheme, payload
