"""The tree of Nimbuses in ZooKeeper: what only it holds, and a watched copy of it."""

from __future__ import annotations

from storm_on_spark.cluster.state.snapshot import ClusterSnapshot, Code, Unreadable
from storm_on_spark.cluster.state.state import ClusterState
from storm_on_spark.cluster.state.view import ClusterView
from storm_on_spark.cluster.zookeeper.changes import Change, Check, Create, Delete, Fence, Put

__all__ = [
    "Change",
    "Check",
    "ClusterSnapshot",
    "ClusterState",
    "ClusterView",
    "Code",
    "Create",
    "Delete",
    "Fence",
    "Put",
    "Unreadable",
]
