"""A session of an admin or a container: servers are tried in the order given, for as long as it takes."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final

from storm_on_spark.api.config import Config
from storm_on_spark.api.config.settings import Settings
from storm_on_spark.cluster.errors import ClusterError, UnavailableError
from storm_on_spark.cluster.security.keyring import Keyring
from storm_on_spark.cluster.zookeeper.session import ZooKeeperSession
from storm_on_spark.cluster.zookeeper.settings import ZooKeeperSettings
from storm_on_spark.cluster.zookeeper.tree import Tree
from storm_on_spark.xd.tree import nodes

logger = logging.getLogger(__name__)

_RETRY_SECS: Final = 1.0


@dataclass(frozen=True)
class XdSettings(Settings):
    """The ZooKeeper that admins and containers use."""

    connect: Annotated[str | None, Config.ZK_CLIENT_CONNECT]
    """`host:port`, or several with commas; None for that of the other keys."""
    embedded_port: Annotated[int | None, Config.ZK_EMBEDDED_SERVER_PORT]
    """The port of the ZooKeeper that a single node starts; None for any free port."""


def zookeeper_settings(conf: Mapping[str, Any]) -> ZooKeeperSettings:
    """Returns where ZooKeeper is: `zk.client.connect`, or else the keys of Storm's; the root is `/xd`.

    Example:
        >>> zookeeper_settings({"zk.client.connect": "zk1:2181,zk2:2182"}).hosts
        'zk1:2181,zk2:2182'
    """
    connect = XdSettings.of(conf).connect
    given = dict(conf)
    if connect is not None:
        given[Config.STORM_ZOOKEEPER_SERVERS] = [host.strip() for host in connect.split(",") if host.strip()]
    return replace(ZooKeeperSettings.from_conf(given), root=nodes.ROOT)


def xd_session(settings: ZooKeeperSettings, keyring: Keyring | None = None) -> ZooKeeperSession:
    """Returns a session that creates the nodes of an XD cluster, and prefers the servers named first."""
    session = ZooKeeperSession(settings, keyring=keyring, layout=nodes.LAYOUT)
    session.client.randomize_hosts = False
    return session


def tree_id(tree: Tree) -> str:
    """Returns the id of an installation's tree in ZooKeeper; empty if ZooKeeper can't be asked now."""
    try:
        stat = tree.stat(nodes.ROOT)
    except ClusterError:
        return ""
    return "" if stat is None else f"{stat.ctime:x}-{stat.czxid:x}"


def connected(
    settings: ZooKeeperSettings, ended: threading.Event, keyring: Keyring | None = None
) -> ZooKeeperSession | None:
    """Returns a connected session once the nodes exist, however long that takes.

    Args:
        settings: which ZooKeeper.
        ended: set when nobody waits any longer; then None is returned.
        keyring: signs records that are written, and checks those that are read.
    """
    while not ended.is_set():
        session = xd_session(settings, keyring)
        try:
            session.start(ended)
            session.ensure_folders()
        except UnavailableError as error:
            session.close()
            if not ended.is_set():
                logger.warning("%s; trying again", error)
            ended.wait(_RETRY_SECS)
            continue
        return session
    return None
