"""ZooKeeper's tree in memory: the copy that admins read, and the transactions of their leader."""

from __future__ import annotations

import contextlib
import itertools
from types import SimpleNamespace
from typing import Any, TypeVar

from storm_on_spark.cluster.errors import ConflictError, RecordError
from storm_on_spark.cluster.records import decode, encode
from storm_on_spark.cluster.zookeeper.changes import Change, Create, Delete, Put
from storm_on_spark.cluster.zookeeper.tree import MAX_REQUEST_BYTES
from storm_on_spark.xd.tree import nodes

N = TypeVar("N", bound=nodes.Node)


class MemoryTree:
    """Stands for a `Mirror` and a `Tree`."""

    def __init__(self) -> None:
        self.nodes: dict[str, tuple[bytes, int]] = {}
        self.made: dict[str, int] = {}
        self._numbers = itertools.count(1)
        for path in (nodes.ROOT, nodes.ADMINS, *nodes.FOLDERS):
            self.put(path)

    def put(self, path: str, value: nodes.Node | bytes = nodes.EMPTY) -> None:
        """Writes a node, as somebody else than the leader."""
        data = value if isinstance(value, bytes) else encode(value)
        _, version = self.nodes.get(path, (b"", -1))
        self.nodes[path] = data, version + 1
        if version < 0:
            self.made[path] = next(self._numbers)

    def children(self, path: str) -> list[str]:
        """See `Mirror`."""
        found = (each.removeprefix(f"{path}/") for each in self.nodes if each.startswith(f"{path}/"))
        return sorted(name for name in found if "/" not in name)

    def value(self, path: str, kind: type[N]) -> N | None:
        """See `Mirror`."""
        found = self.nodes.get(path)
        with contextlib.suppress(RecordError):
            return None if found is None else decode(kind, found[0], path)
        return None

    def stat(self, path: str) -> Any:
        """See `Mirror`."""
        found = self.nodes.get(path)
        return None if found is None else SimpleNamespace(version=found[1], ephemeralOwner=1, czxid=self.made[path])

    def commit(self, fence: object, *changes: Change) -> None:
        """See `Tree`."""
        if len(f"{changes}") > MAX_REQUEST_BYTES:
            raise RecordError(f"{len(changes)} changes take too many bytes")
        before = dict(self.nodes)
        try:
            for change in changes:
                self._apply(change)
        except ConflictError:
            self.nodes = before
            raise

    def _apply(self, change: Change) -> None:
        assert isinstance(change.place, str)
        path, there = change.place, self.nodes.get(change.place)
        if isinstance(change, Create):
            if there is not None or path.rpartition("/")[0] not in self.nodes:
                raise ConflictError(f"{change}")
            self.nodes[path] = _data(change), 0
            self.made[path] = next(self._numbers)
        elif there is None:
            raise ConflictError(f"{change}")
        elif isinstance(change, Delete):
            if self.children(path):
                raise ConflictError(f"{change}")
            del self.nodes[path]
        elif isinstance(change, Put):
            if change.version not in (-1, there[1]):
                raise ConflictError(f"{change}")
            self.nodes[path] = _data(change), there[1] + 1


def _data(change: Create | Put) -> bytes:
    return change.value if isinstance(change.value, bytes) else encode(change.value)
