"""Checks of the history, from ZooKeeper's transaction logs and the checkpoints alone.

The history is replayed from its beginning, with a model of the nodes: at every write the existing nodes are known, and
so is the leader.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from lab.failover.history import Operation, Transaction

_LEADERS_FOLDERS: Final = frozenset({"submissions", "names", "storms", "assignments", "code", "counter"})
"""Only a leader writes there; below `code/<topology>` every Nimbus records that it has the code."""
_SHOWN: Final = 5


@dataclass
class Node:
    """A znode."""

    data: bytes
    created: int
    """The id of the transaction that made it."""
    owner: int
    """The session that owns it; 0 for none."""
    version: int = 0


@dataclass(frozen=True)
class Leadership:
    """A leader's beginning."""

    time: float
    address: str
    epoch: int
    session: int


@dataclass(frozen=True)
class Refusal:
    """A write under a fence that ZooKeeper refused because the fence did not hold."""

    time: float
    session: int


@dataclass
class Findings:
    """The findings from the history of one cluster."""

    leaderships: list[Leadership] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    fenced_writes: int = 0
    """Transactions of leaders that led at that moment."""
    owners: list[tuple[float, str, int]] = field(default_factory=list)
    """When each topology was claimed by which process."""
    assignments: list[tuple[float, str]] = field(default_factory=list)
    """When each topology was assigned."""
    keys: dict[str, str] = field(default_factory=dict)
    """Key of a submission -> id of its topology."""
    half: dict[str, str] = field(default_factory=dict)
    """Key of a submission that is neither completed nor cleaned up -> its topology's id."""
    problems: list[str] = field(default_factory=list)


def examine(history: Iterable[Transaction], root: str, trusted: Iterable[int] = ()) -> Findings:
    """Replays the history of the cluster below `root`.

    Args:
        history: all transactions, in order.
        root: of the cluster.
        trusted: sessions that wrote in place of a leader, on purpose.
    """
    examiner = _Examiner(root, frozenset(trusted))
    for transaction in history:
        examiner.step(transaction)
    return examiner.finish()


class _Examiner:
    def __init__(self, root: str, trusted: frozenset[int]) -> None:
        self._root = root
        self._trusted = trusted
        self._nodes: dict[str, Node] = {}
        #: The nodes in the queue for leadership.
        self._locks: set[str] = set()
        self._sessions: set[int] = set()
        """Sessions that had a node here at any time: a refused transaction does not name its nodes."""
        self.found = Findings()

    def step(self, transaction: Transaction) -> None:
        if transaction.refused:
            # A leader's write begins with two checks. -101: the node does not exist, such as the lock node of a paused
            # leader; -103: it has another version.
            first = [operation.error for operation in transaction.operations[:2]]
            if len(transaction.operations) > 2 and {-101, -103} & set(first):
                self.found.refusals.append(Refusal(transaction.time, transaction.session))
            return
        ours = [operation for operation in transaction.operations if self._parts(operation.path) is not None]
        checked = {
            operation.path
            for operation in ours
            if operation.kind == "check"
            and (node := self._nodes.get(operation.path)) is not None
            and node.version == operation.version
        }
        for operation in ours:
            self._judge(operation, transaction, checked)
        for operation in transaction.operations:
            self._apply(operation, transaction)

    def finish(self) -> Findings:
        self.found.refusals = [refusal for refusal in self.found.refusals if refusal.session in self._sessions]
        half = self.found.half
        for path, node in self._nodes.items():
            parts = self._parts(path)
            if parts is not None and parts[0] == "submissions" and len(parts) == 2:
                half[parts[1]] = _json(node.data).get("topology_id", "")
        if half:
            self._complain(f"submissions neither completed nor cleaned up: {dict(half)}")
        return self.found

    def _parts(self, path: str) -> list[str] | None:
        """Returns the names below the root; None for a path elsewhere."""
        return path[len(self._root) + 1 :].split("/") if path.startswith(self._root + "/") else None

    def _complain(self, sentence: str) -> None:
        if len(self.found.problems) < 10 * _SHOWN:
            self.found.problems.append(sentence)

    def _queue(self) -> list[str]:
        return sorted(self._locks)

    def _fence(self, checked: set[str]) -> str | None:
        """Returns the problem with the fence of a leader's write; None if the writer leads at this moment."""
        queue = self._queue()
        if not queue:
            return "nobody is in the queue for leadership"
        if queue[0] not in checked:
            return "without a check of the first node of the queue"
        info = self._nodes.get(f"{self._root}/leader-info")
        if info is None or f"{self._root}/leader-info" not in checked:
            return "without a check of leader-info"
        if _json(info.data).get("epoch") != self._nodes[queue[0]].created:
            return "by one that is first in the queue but has not claimed leadership"
        return None

    def _judge(self, operation: Operation, transaction: Transaction, checked: set[str]) -> None:
        parts = self._parts(operation.path)
        assert parts is not None
        if operation.kind == "check" or transaction.session in self._trusted:
            return
        what = f"{operation.kind} of {operation.path} by session {transaction.session:x}"
        if parts == ["leader-info"] and operation.kind == "set":
            self._judge_leader(operation, transaction, checked)
        elif parts[0] == "owners" and len(parts) == 2 and operation.kind == "create":
            self.found.owners.append((transaction.time, parts[1], int(_json(operation.data).get("pid", 0))))
            if f"{self._root}/assignments/{parts[1]}" not in checked:
                self._complain(f"{what}: without a check of its assignment")
        elif parts[0] == "checkpoints" and len(parts) == 2 and operation.kind != "delete":
            driver = {f"{self._root}/assignments/{parts[1]}", f"{self._root}/owners/{parts[1]}"}
            wrong = self._fence(checked)
            if not driver <= checked and wrong is not None:
                self._complain(f"{what}: neither by the topology's driver nor by a leader: {wrong}")
        elif parts[0] in _LEADERS_FOLDERS and not operation.ephemeral:
            first = operation.kind == "create" and (len(parts) == 1)
            replica = parts[0] == "code" and len(parts) == 3
            if first or replica:
                return
            wrong = self._fence(checked)
            if wrong is not None:
                self._complain(f"{what}: {wrong}")
            else:
                self.found.fenced_writes += 1
            if parts[0] == "assignments" and operation.kind in ("create", "set"):
                self.found.assignments.append((transaction.time, parts[1]))
            if parts[0] == "storms" and operation.kind == "create":
                self._judge_storm(operation, parts[1])

    def _judge_leader(self, operation: Operation, transaction: Transaction, checked: set[str]) -> None:
        info, queue = _json(operation.data), self._queue()
        what = f"leadership of {info.get('address')}, epoch {info.get('epoch')}"
        if not queue or queue[0] not in checked or self._nodes[queue[0]].created != info.get("epoch"):
            self._complain(f"{what}: claimed without being first in the queue")
        before = self.found.leaderships[-1].epoch if self.found.leaderships else 0
        if info.get("epoch", 0) <= before:
            self._complain(f"{what}: follows epoch {before}")
        leadership = Leadership(transaction.time, str(info.get("address")), info.get("epoch", 0), transaction.session)
        self.found.leaderships.append(leadership)

    def _judge_storm(self, operation: Operation, topology_id: str) -> None:
        key = _json(operation.data).get("submission_key")
        if key in self.found.keys:
            self._complain(f"submission {key} became {self.found.keys[key]} and {topology_id}")
        if key:
            self.found.keys[key] = topology_id

    def _apply(self, operation: Operation, transaction: Transaction) -> None:
        if operation.kind == "close":
            for path in [path for path, node in self._nodes.items() if node.owner == transaction.session]:
                self._remove(path)
        if self._parts(operation.path) is None:
            return
        if operation.kind == "create":
            self._sessions.add(transaction.session)
            owner = transaction.session if operation.ephemeral else 0
            self._nodes[operation.path] = Node(operation.data, transaction.zxid, owner)
            if operation.path.startswith(f"{self._root}/leader-lock/"):
                self._locks.add(operation.path)
        elif operation.kind == "set":
            self._sessions.add(transaction.session)
            node = self._nodes[operation.path]
            node.data, node.version = operation.data, operation.version
        elif operation.kind == "delete":
            self._remove(operation.path)

    def _remove(self, path: str) -> None:
        self._nodes.pop(path, None)
        self._locks.discard(path)


def check_writers(name: str, writes: Sequence[tuple[int, int]]) -> list[str]:
    """Returns the problem with the order in which drivers wrote to a topology's checkpoint.

    Each must have finished before the next one begins.
    """
    problems: list[str] = []
    done: set[int] = set()
    current: int | None = None
    for pid, _ in writes:
        if pid == current:
            continue
        if pid in done:
            problems.append(f"driver {pid} of {name} wrote to the checkpoint after driver {current} had begun to")
        if current is not None:
            done.add(current)
        current = pid
    return problems[:_SHOWN]


def _json(data: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(data or b"{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
