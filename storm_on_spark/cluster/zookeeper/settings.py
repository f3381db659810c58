"""Which ZooKeeper, and how to talk to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from storm_on_spark.api.config.config import Config, validate_conf, value_of
from storm_on_spark.api.errors import ConfigError

_SCHEMES = ("digest", "sasl")


@dataclass(frozen=True)
class ZooKeeperSettings:
    """Where ZooKeeper is, and how long things may take; times are in seconds.

    Example:
        >>> settings = ZooKeeperSettings.from_conf({"storm.zookeeper.servers": ["zk1", "zk2:2182"]})
        >>> settings.hosts, settings.root, settings.session_timeout
        ('zk1:2181,zk2:2182', '/storm', 20.0)
    """

    hosts: str
    """`host:port,host:port`, as ZooKeeper's clients write it."""
    root: str = "/storm"
    session_timeout: float = 20.0
    """After this long without a word from its client, ZooKeeper expires a session."""
    connection_timeout: float = 15.0
    """How long the first connection may take, and how long an operation waits for one."""
    retry_times: int = 5
    """Attempts after a read that failed because of the connection."""
    retry_interval: float = 1.0
    """Before the first of them."""
    retry_ceiling: float = 30.0
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
        root = _root(value_of(conf, Config.STORM_ZOOKEEPER_ROOT))
        scheme, payload = _auth(
            value_of(conf, Config.STORM_ZOOKEEPER_AUTH_SCHEME),
            value_of(conf, Config.STORM_ZOOKEEPER_AUTH_PAYLOAD),
        )
        return cls(
            hosts=_hosts(value_of(conf, Config.STORM_ZOOKEEPER_SERVERS), value_of(conf, Config.STORM_ZOOKEEPER_PORT)),
            root=root,
            session_timeout=value_of(conf, Config.STORM_ZOOKEEPER_SESSION_TIMEOUT) / 1000,
            connection_timeout=value_of(conf, Config.STORM_ZOOKEEPER_CONNECTION_TIMEOUT) / 1000,
            retry_times=value_of(conf, Config.STORM_ZOOKEEPER_RETRY_TIMES),
            retry_interval=value_of(conf, Config.STORM_ZOOKEEPER_RETRY_INTERVAL) / 1000,
            retry_ceiling=value_of(conf, Config.STORM_ZOOKEEPER_RETRY_INTERVAL_CEILING) / 1000,
            auth_scheme=scheme,
            auth_payload=payload,
        )


def _hosts(servers: list[str], port: int) -> str:
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
