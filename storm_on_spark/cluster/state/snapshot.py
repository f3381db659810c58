"""The cluster at one moment, as one Nimbus, supervisor or client knows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeVar

from storm_on_spark.cluster.records import (
    Assignment,
    CodeManifest,
    LeaderInfo,
    NimbusSummary,
    Ownership,
    StormBase,
    Submission,
    SupervisorInfo,
    WorkerBeat,
)

V = TypeVar("V")


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True)
class Code:
    """A topology's code, and who has it."""

    manifest: CodeManifest
    replicas: frozenset[str] = frozenset()
    """Addresses of the Nimbuses that have verified it and are up."""


@dataclass(frozen=True)
class ClusterSnapshot:
    """What is in ZooKeeper; each mapping's keys are the names of the nodes.

    Example:
        >>> ClusterSnapshot().leader is None
        True
    """

    leader: LeaderInfo | None = None
    """Who leads; None if the last who did has gone and no other has taken over."""
    nimbuses: Mapping[str, NimbusSummary] = field(default_factory=_nothing)
    supervisors: Mapping[str, SupervisorInfo] = field(default_factory=_nothing)
    submissions: Mapping[str, Submission] = field(default_factory=_nothing)
    storms: Mapping[str, StormBase] = field(default_factory=_nothing)
    assignments: Mapping[str, Assignment] = field(default_factory=_nothing)
    code: Mapping[str, Code] = field(default_factory=_nothing)
    owners: Mapping[str, Ownership] = field(default_factory=_nothing)
    workerbeats: Mapping[str, WorkerBeat] = field(default_factory=_nothing)
    versions: Mapping[str, Mapping[str, int]] = field(default_factory=_nothing)
    """Folder -> name -> version of the node, for `Put`, `Check` and `take_ownership`."""
    problems: Mapping[str, str] = field(default_factory=_nothing)
    """Path -> what is wrong with it, of nodes that hold something else than they should; they are left out above."""
