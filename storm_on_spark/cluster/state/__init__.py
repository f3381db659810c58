"""The cluster's state in ZooKeeper: writing it under a fence, reading it, and a watched copy of it."""

from __future__ import annotations

from storm_on_spark.cluster.state.changes import Change, Check, Create, Delete, Fence, Put
from storm_on_spark.cluster.state.kept import KeptNodes
from storm_on_spark.cluster.state.snapshot import ClusterSnapshot, Code, Unreadable
from storm_on_spark.cluster.state.state import ClusterState
from storm_on_spark.cluster.state.view import ClusterView

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
    "KeptNodes",
    "Put",
    "Unreadable",
]
