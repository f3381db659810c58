"""ZooKeeper: a session that tells what becomes of it, records and fenced writes, real servers for development."""

from __future__ import annotations

from storm_on_spark.cluster.zookeeper.server import ZooKeeperEnsemble, ZooKeeperServer
from storm_on_spark.cluster.zookeeper.session import SessionState, ZooKeeperSession
from storm_on_spark.cluster.zookeeper.settings import ZooKeeperSettings

__all__ = ["SessionState", "ZooKeeperEnsemble", "ZooKeeperServer", "ZooKeeperSession", "ZooKeeperSettings"]
