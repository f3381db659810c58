"""Leader election: the interface, the rules, and their execution in ZooKeeper."""

from __future__ import annotations

from storm_on_spark.cluster.leadership.elector import LeaderElector
from storm_on_spark.cluster.leadership.zookeeper_elector import ZooKeeperLeaderElector

__all__ = ["LeaderElector", "ZooKeeperLeaderElector"]
