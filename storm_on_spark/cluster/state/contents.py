"""The data that a view has read, and snapshots of it. No I/O."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from storm_on_spark.cluster.errors import FormatError, RecordError
from storm_on_spark.cluster.paths import (
    ASSIGNMENTS,
    CODE,
    DRAINS,
    LEADER_INFO,
    LEADER_LOCK,
    LOGCONFIGS,
    NIMBUSES,
    OWNERS,
    STORMS,
    SUBMISSIONS,
    SUPERVISORS,
    UNHEALTHY,
    WORKERBEATS,
)
from storm_on_spark.cluster.records import (
    Assignment,
    CodeManifest,
    Drain,
    LeaderInfo,
    LogConfig,
    NimbusSummary,
    Ownership,
    Record,
    StormBase,
    Submission,
    SupervisorInfo,
    Unhealthy,
    WorkerBeat,
)
from storm_on_spark.cluster.security.keyring import Keyring, Stamps
from storm_on_spark.cluster.state.newest import counting
from storm_on_spark.cluster.state.snapshot import ClusterSnapshot, Code, Unreadable

RECORDS: Final[Mapping[str, type[Record]]] = {
    NIMBUSES: NimbusSummary,
    SUPERVISORS: SupervisorInfo,
    SUBMISSIONS: Submission,
    STORMS: StormBase,
    ASSIGNMENTS: Assignment,
    CODE: CodeManifest,
    OWNERS: Ownership,
    WORKERBEATS: WorkerBeat,
    LOGCONFIGS: LogConfig,
    DRAINS: Drain,
    UNHEALTHY: Unhealthy,
}
"""The type of the records in each folder."""

WATCHED: Final = (*RECORDS, LEADER_LOCK)
"""Folders whose nodes are read."""

Parts = tuple[str, ...]


@dataclass(frozen=True)
class Node:
    """A node as it was read."""

    data: bytes
    version: int
    created: int
    """Id of the transaction that made it."""


class Contents:
    """Nodes that have been read; what changes is noted until the next snapshot.

    Args:
        root: path of the cluster's nodes.
        keyring: says which records count.

    Example:
        >>> contents = Contents("/storm")
        >>> contents.set_node(("leader-info",), Node(b"", 0, 1))
        >>> contents.snapshot()[1]
        frozenset()
    """

    def __init__(self, root: str, keyring: Keyring | None = None) -> None:
        self._root = root
        self._keyring = Keyring() if keyring is None else keyring
        self._stamps = Stamps()
        self._records: dict[str, dict[str, Record]] = {folder: {} for folder in RECORDS}
        self._versions: dict[str, dict[str, int]] = {folder: {} for folder in RECORDS}
        self._replicas: dict[str, frozenset[str]] = {}
        self._queue: dict[str, int] = {}
        """Node in the queue for leadership -> transaction id of its creation."""
        self._leader_info: LeaderInfo | None = None
        self._names: dict[str, set[str]] = {folder: set() for folder in WATCHED}
        """Names in each folder, whether or not what they hold could be read."""
        self._problems: dict[str, str] = {}
        self._unreadable: dict[str, dict[str, Unreadable]] = {}
        self._beats: Mapping[str, WorkerBeat] = {}
        """Heartbeats that are kept elsewhere."""
        self._beating: set[str] = set()
        """Topologies whose heartbeat there has changed since their last words in ZooKeeper did."""
        self._changed: set[str] = set()
        self._snapshot = ClusterSnapshot()

    def names(self, folder: str) -> frozenset[str]:
        """Returns the names that are known in a folder."""
        return frozenset(self._names[folder])

    def set_names(self, folder: str, names: Iterable[str]) -> set[str]:
        """Notes which nodes there are in a folder.

        Returns:
            Those that weren't known.
        """
        now = set(names)
        for name in self._names[folder] - now:
            self.set_node((folder, name), None)
        new = now - self._names[folder]
        self._names[folder] = now
        return new

    def set_replicas(self, topology_id: str, addresses: Iterable[str]) -> None:
        """Notes which Nimbuses have a topology's code."""
        replicas = frozenset(addresses)
        if replicas != self._replicas.get(topology_id, frozenset()):
            self._replicas[topology_id] = replicas
            self._changed.add(CODE)

    def set_node(self, parts: Parts, node: Node | None) -> None:
        """Notes what a node holds, or that there is none."""
        folder, name = parts[0], parts[-1]
        if folder == LEADER_INFO:
            record = self._decoded(LeaderInfo, parts, node)
            if record != self._leader_info:
                self._leader_info = record
                self._changed.add(LEADER_INFO)
            return
        if node is None:
            self._names[folder].discard(name)
        if folder == LEADER_LOCK:
            self._set(self._queue, name, None if node is None else node.created, LEADER_INFO)
            return
        if node is None and folder == CODE:
            self._replicas.pop(name, None)
        record = self._decoded(RECORDS[folder], parts, node)
        if folder == WORKERBEATS and record != self._records[folder].get(name):
            self._beating.discard(name)
        self._set(self._records[folder], name, record, folder)
        self._set(self._versions[folder], name, None if record is None or node is None else node.version, folder)

    def set_beats(self, beats: Mapping[str, WorkerBeat]) -> None:
        """Notes drivers' heartbeats that are kept elsewhere, by topology id."""
        if beats != self._beats:
            new = {name for name, beat in beats.items() if self._beats.get(name, beat) != beat}
            self._beating = (self._beating & beats.keys()) | new
            self._beats = beats
            self._changed.add(WORKERBEATS)

    def problems(self) -> Mapping[str, str]:
        """Returns what couldn't be read."""
        return self._problems

    def damaged(self) -> set[Parts]:
        """Returns the nodes that couldn't be read."""
        return {tuple(path.removeprefix(self._root).strip("/").split("/")) for path in self._problems}

    def snapshot(self) -> tuple[ClusterSnapshot, frozenset[str]]:
        """Returns how things are now, and the folders that have changed since this was asked last.

        `leader-info` stands for who leads, whichever of its nodes has changed.
        """
        changed = frozenset(self._changed)
        if not changed and self._snapshot.problems == self._problems:
            return self._snapshot, changed
        new: dict[str, Any] = {"problems": MappingProxyType(dict(self._problems))}
        if self._problems != self._snapshot.problems:
            unreadable = {folder: MappingProxyType(dict(found)) for folder, found in self._unreadable.items()}
            new["unreadable"] = MappingProxyType(unreadable)
        for folder in changed & RECORDS.keys():
            new[folder] = MappingProxyType(self._mapping(folder))
        if changed & RECORDS.keys():
            versions = dict(self._snapshot.versions)
            versions.update(
                {folder: MappingProxyType(dict(self._versions[folder])) for folder in changed & RECORDS.keys()}
            )
            new["versions"] = MappingProxyType(versions)
        if LEADER_INFO in changed:
            new["leader"] = self._leader()
        self._changed.clear()
        self._snapshot = dataclasses.replace(self._snapshot, **new)
        return self._snapshot, changed

    def _mapping(self, folder: str) -> dict[str, Any]:
        if folder == CODE:
            return self._code()
        found: dict[str, Any] = dict(self._records[folder])
        if folder == WORKERBEATS:
            for name, beat in self._beats.items():
                # With Pacemaker, ZooKeeper has drivers' last words.
                last = found.get(name)
                found[name] = beat if last is None else counting(last, beat, since=name in self._beating)
        return found

    def _code(self) -> dict[str, Code]:
        return {
            name: Code(manifest, self._replicas.get(name, frozenset()))
            for name, manifest in self._records[CODE].items()
            if isinstance(manifest, CodeManifest)
        }

    def _leader(self) -> LeaderInfo | None:
        """Returns the leader: the writer of `leader-info`, as long as its node is first in the queue."""
        info = self._leader_info
        return info if info is not None and self._queue and self._queue[min(self._queue)] == info.epoch else None

    def _decoded(self, type_: type[Any], parts: Parts, node: Node | None) -> Any:
        path = "/".join([self._root, *parts])
        record, problem = None, None
        if node is not None and (node.data or parts[0] != LEADER_INFO):
            try:
                opened = self._keyring.open(type_, node.data, path)
                self._stamps.check(path, type_.__name__, opened.stamp)
                record = opened.record
            except RecordError as error:
                problem = Unreadable(str(error), isinstance(error, FormatError))
        found = self._unreadable.setdefault(parts[0], {})
        if found.get(parts[-1]) != problem:
            # Also of one that was not there before: that it is there counts.
            self._changed.add(parts[0])
        if problem is None:
            self._problems.pop(path, None)
            found.pop(parts[-1], None)
        else:
            self._problems[path] = problem.reason
            found[parts[-1]] = problem
        return record

    def _set(self, where: dict[str, Any], name: str, value: Any, folder: str) -> None:
        if value is None:
            if name in where:
                del where[name]
                self._changed.add(folder)
        elif where.get(name) != value:
            where[name] = value
            self._changed.add(folder)
