"""ZooKeeper in memory: nodes with versions, and transactions that happen all or not at all. And code in memory."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

from storm_on_spark.cluster.code.checksums import artifacts_of
from storm_on_spark.cluster.code.distributor import CodeDistributor, Metafile, Peers
from storm_on_spark.cluster.errors import ConflictError, FencedError
from storm_on_spark.cluster.paths import CODE, COUNTER, LEADER_INFO
from storm_on_spark.cluster.records import R, decode, encode
from storm_on_spark.cluster.state import Change, ClusterSnapshot, ClusterState, Create, Delete, Fence, Put
from storm_on_spark.cluster.state.contents import RECORDS, WATCHED, Contents, Node
from storm_on_spark.cluster.zookeeper.changes import Value

Parts = tuple[str, ...]
ROOT = "/storm"


@dataclass
class Stored:
    """A node."""

    data: bytes
    version: int
    created: int


def to_bytes(value: Value) -> bytes:
    return value if isinstance(value, bytes) else encode(value)


class MemoryState(ClusterState):
    """A `ClusterState` without ZooKeeper. Every operation is one step, as it is there.

    Args:
        before: called before each operation; what it does comes in between.
    """

    def __init__(self, before: Callable[[], object] = lambda: None) -> None:
        self.nodes: dict[Parts, Stored] = {(COUNTER,): Stored(b"0", 0, 0)}
        self.before = before
        self._ids = itertools.count(1)
        self.epoch = 0

    def lead(self) -> Fence:
        """Makes the holder of what is returned the leader; the one before it is fenced."""
        self.epoch += 1
        return Fence(epoch=self.epoch, lock_path=f"{ROOT}/leader-lock/n-{self.epoch}", info_version=self.epoch)

    def put(self, value: Value, *parts: str) -> None:
        """Writes a node, whoever leads."""
        old = self.nodes.get(parts)
        made = next(self._ids) if old is None else old.created
        self.nodes[parts] = Stored(to_bytes(value), 0 if old is None else old.version + 1, made)

    def snapshot(self) -> ClusterSnapshot:
        """Returns what a view would."""
        contents = Contents(ROOT)
        for folder in WATCHED:
            contents.set_names(folder, [parts[1] for parts in self.nodes if len(parts) == 2 and parts[0] == folder])
        for parts, node in self.nodes.items():
            if len(parts) == 2 and parts[0] in RECORDS:
                contents.set_node(parts, Node(node.data, node.version, node.created))
            if len(parts) == 2 and parts[0] == CODE:
                contents.set_replicas(parts[1], self._children(parts))
        return contents.snapshot()[0]

    def get(self, type_: type[R], *parts: str) -> tuple[R, int] | None:
        found = self.get_bytes(*parts)
        return None if found is None else (decode(type_, found[0], "/".join(parts)), found[1])

    def get_bytes(self, *parts: str) -> tuple[bytes, int] | None:
        self.before()
        node = self.nodes.get(parts)
        return None if node is None else (node.data, node.version)

    def children(self, *parts: str) -> list[str]:
        self.before()
        return self._children(parts)

    def commit(self, fence: Fence, *changes: Change) -> tuple[int, ...]:
        self.before()
        if fence.epoch != self.epoch:
            raise FencedError(f"leadership {fence.epoch} is over; {LEADER_INFO} is of {self.epoch}")
        nodes = dict(self.nodes)
        versions = []
        for change in changes:
            place = change.place
            assert isinstance(place, tuple)
            old = nodes.get(place)
            wanted = -1 if isinstance(change, Create) else change.version
            if (old is None) != isinstance(change, Create) or (old is not None and wanted not in (-1, old.version)):
                raise ConflictError(f"{type(change).__name__} {'/'.join(place)}")
            if isinstance(change, Create):
                nodes[place] = Stored(to_bytes(change.value), 0, next(self._ids))
                versions.append(0)
            elif isinstance(change, Put):
                assert old is not None
                nodes[place] = Stored(to_bytes(change.value), old.version + 1, old.created)
                versions.append(old.version + 1)
            elif isinstance(change, Delete):
                if self._children(place, nodes):
                    raise ConflictError(f"Delete {'/'.join(place)}: it has children")
                del nodes[place]
                versions.append(-1)
            else:
                versions.append(change.version)
        self.nodes = nodes
        return tuple(versions)

    def delete_tree(self, fence: Fence, *parts: str) -> None:
        below = [other for other in self.nodes if other[: len(parts)] == parts]
        if below:
            self.commit(fence, *(Delete(other) for other in sorted(below, key=len, reverse=True)))

    def create_ephemeral(self, value: Value, *parts: str) -> None:
        self.before()
        self.put(value, *parts)

    def _children(self, parts: Parts, nodes: dict[Parts, Stored] | None = None) -> list[str]:
        known = self.nodes if nodes is None else nodes
        return sorted(other[-1] for other in known if len(other) == len(parts) + 1 and other[:-1] == parts)


class MemoryCode(CodeDistributor):
    """Has the code of every topology, and notes what was removed.

    Args:
        stored: topologies that it says it has.
    """

    name = "memory"

    def __init__(self, *stored: str) -> None:
        super().__init__(Peers())
        self.removed: list[str] = []
        self._stored = dict.fromkeys(stored, 0.0)

    def prepare(self, conf) -> None: ...
    def download(self, topology_id, metafile, into): ...
    def fetch(self, topology_id, metafile) -> None: ...
    def close(self) -> None: ...
    def holds(self, topology_id, metafile) -> bool:
        return True

    def upload(self, folder, topology_id) -> str:
        return Metafile(location="", artifacts=artifacts_of(folder)).to_text()

    def get_replication_count(self, topology_id) -> int:
        return 1

    def stored(self):
        return self._stored

    def cleanup(self, topology_id) -> None:
        self.removed.append(topology_id)
