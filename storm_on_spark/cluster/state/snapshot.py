"""The cluster at one moment, as one Nimbus, supervisor or client knows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeVar

from storm_on_spark.cluster.paths import STORMS
from storm_on_spark.cluster.records import (
    Assignment,
    CodeManifest,
    Drain,
    LeaderInfo,
    LogConfig,
    NimbusSummary,
    Ownership,
    StormBase,
    Submission,
    SupervisorInfo,
    Unhealthy,
    WorkerBeat,
)

V = TypeVar("V")


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True)
class Code:
    """A topology's code, and the hosts that have it."""

    manifest: CodeManifest
    replicas: frozenset[str] = frozenset()
    """Addresses of the Nimbuses that have verified it and are up."""


@dataclass(frozen=True)
class Unreadable:
    """A node whose record can't be read here. It is there: nothing may be done as if it were not."""

    reason: str
    foreign: bool
    """Whether it is of another format, so that another release can read it; else it is damaged."""


@dataclass(frozen=True)
class ClusterSnapshot:
    """The contents of ZooKeeper; each mapping's keys are the names of the nodes.

    Example:
        >>> ClusterSnapshot().leader is None
        True
    """

    leader: LeaderInfo | None = None
    """The leader; None if the last one has gone and no other has taken over."""
    nimbuses: Mapping[str, NimbusSummary] = field(default_factory=_nothing)
    supervisors: Mapping[str, SupervisorInfo] = field(default_factory=_nothing)
    submissions: Mapping[str, Submission] = field(default_factory=_nothing)
    storms: Mapping[str, StormBase] = field(default_factory=_nothing)
    assignments: Mapping[str, Assignment] = field(default_factory=_nothing)
    code: Mapping[str, Code] = field(default_factory=_nothing)
    owners: Mapping[str, Ownership] = field(default_factory=_nothing)
    workerbeats: Mapping[str, WorkerBeat] = field(default_factory=_nothing)
    logconfigs: Mapping[str, LogConfig] = field(default_factory=_nothing)
    drains: Mapping[str, Drain] = field(default_factory=_nothing)
    unhealthy: Mapping[str, Unhealthy] = field(default_factory=_nothing)
    versions: Mapping[str, Mapping[str, int]] = field(default_factory=_nothing)
    """Folder -> name -> version of the node, for `Put`, `Check` and `take_ownership`."""
    problems: Mapping[str, str] = field(default_factory=_nothing)
    """Path -> what is wrong with it, of nodes that hold something else than they should; they are left out above."""
    unreadable: Mapping[str, Mapping[str, Unreadable]] = field(default_factory=_nothing)
    """Folder -> name -> the same by place. A decision that rests on a missing record has to look here, too."""

    def unread(self, folder: str) -> Mapping[str, Unreadable]:
        """Returns the nodes of a folder that are there and can't be read."""
        return self.unreadable.get(folder, {})

    def knows(self, topology_id: str) -> bool:
        """Returns whether there is such a topology, also if nothing more is known of it."""
        return topology_id in self.storms or topology_id in self.unread(STORMS)
