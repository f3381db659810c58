"""The oracles of `make failover` find what they are there to find: histories written by hand."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from lab.failover.history import Operation, Transaction, read
from lab.failover.oracles import Findings, check_writers, examine

ROOT = "/storm"
LOCK = "/storm/leader-lock/n-1"
A, B = 10, 20


class History:
    """Transactions, one after the other."""

    def __init__(self) -> None:
        self.transactions: list[Transaction] = []
        self.run(A, *(Operation("create", f"{ROOT}/{name}") for name in ("leader-lock", "leader-info", "assignments")))

    def run(self, session: int, *operations: Operation) -> int:
        zxid = len(self.transactions) + 1
        self.transactions.append(Transaction(zxid, session, float(zxid), operations))
        return zxid

    def lead(self, session: int, lock: str, info: int) -> None:
        """Has a session queue and lead; `info` is the version that leader-info gets."""
        epoch = self.run(session, Operation("create", lock, ephemeral=True))
        self.run(session, Operation("check", lock, version=0), leader_info(str(session), epoch, info))

    def write(self, session: int, lock: str, info: int, *operations: Operation) -> None:
        """Writes as a leader does."""
        fence = Operation("check", lock, version=0), Operation("check", f"{ROOT}/leader-info", version=info)
        self.run(session, *fence, *operations)

    def examined(self) -> Findings:
        return examine(self.transactions, ROOT)


def leader_info(address: str, epoch: int, version: int) -> Operation:
    data = json.dumps({"address": address, "epoch": epoch}).encode()
    return Operation("set", f"{ROOT}/leader-info", data, version=version)


def assignment(topology_id: str = "t-1-1") -> Operation:
    return Operation("create", f"{ROOT}/assignments/{topology_id}", b"{}")


@pytest.fixture
def history() -> History:
    made = History()
    made.lead(A, LOCK, 1)
    return made


def test_a_leader_that_fences_its_writes_is_fine(history: History) -> None:
    history.write(A, LOCK, 1, assignment())
    history.run(A, Operation("close"))
    history.lead(B, "/storm/leader-lock/n-2", 2)
    history.write(B, "/storm/leader-lock/n-2", 2, Operation("set", f"{ROOT}/assignments/t-1-1", b"{}", version=1))
    found = history.examined()
    assert found.problems == []
    assert [leadership.address for leadership in found.leaderships] == ["10", "20"]
    assert (found.fenced_writes, len(found.assignments)) == (2, 2)


def test_a_write_without_a_fence(history: History) -> None:
    history.run(A, assignment())
    assert history.examined().problems == [
        "create of /storm/assignments/t-1-1 by session a: without a check of the first node of the queue"
    ]


def test_a_write_with_half_a_fence(history: History) -> None:
    history.run(A, Operation("check", LOCK, version=0), assignment())
    [problem] = history.examined().problems
    assert problem.endswith("without a check of leader-info")


def test_a_write_under_the_fence_of_one_that_leads_no_longer(history: History) -> None:
    history.run(A, Operation("close"))
    history.lead(B, "/storm/leader-lock/n-2", 2)
    history.write(A, LOCK, 1, assignment())
    [problem] = history.examined().problems
    assert "without a check of the first node" in problem


def test_a_leader_that_was_not_first(history: History) -> None:
    history.lead(B, "/storm/leader-lock/n-2", 2)
    [problem] = history.examined().problems
    assert "claimed without being first in the queue" in problem


def test_one_that_is_first_and_writes_before_it_leads(history: History) -> None:
    history.run(B, Operation("create", "/storm/leader-lock/n-2", ephemeral=True))
    history.run(A, Operation("close"))
    history.write(B, "/storm/leader-lock/n-2", 1, assignment())
    [problem] = history.examined().problems
    assert "has not claimed leadership" in problem


def test_a_refused_write_is_counted(history: History) -> None:
    history.run(A, Operation("error", error=-101), *[Operation("error", error=-2)] * 2)
    found = history.examined()
    assert (found.problems, [refusal.session for refusal in found.refusals]) == ([], [A])


def test_a_refused_write_is_counted_though_it_comes_before_the_first_node_of_its_session(history: History) -> None:
    for session in (B, 30):
        history.run(session, Operation("error", error=-101), *[Operation("error", error=-2)] * 2)
    history.run(B, Operation("create", f"{ROOT}/nimbuses/b:1", ephemeral=True))
    assert [refusal.session for refusal in history.examined().refusals] == [B], "the other is somebody else's"


def test_a_driver_that_owns_without_looking_at_its_assignment(history: History) -> None:
    history.write(A, LOCK, 1, assignment())
    check = Operation("check", f"{ROOT}/assignments/t-1-1", version=0)
    history.run(B, check, Operation("create", f"{ROOT}/owners/t-1-1", b'{"pid": 5}', ephemeral=True))
    assert history.examined().problems == []
    history.run(B, Operation("create", f"{ROOT}/owners/t-1-1", b'{"pid": 6}', ephemeral=True))
    found = history.examined()
    assert [pid for _, _, pid in found.owners] == [5, 6]
    [problem] = found.problems
    assert problem.endswith("without a check of its assignment")


def test_a_submission_that_became_two_topologies_and_one_that_became_none(history: History) -> None:
    for topology_id in ("t-1-1", "t-2-1"):
        storm = Operation("create", f"{ROOT}/storms/{topology_id}", b'{"submission_key": "k"}')
        history.write(A, LOCK, 1, storm)
    history.write(A, LOCK, 1, Operation("create", f"{ROOT}/submissions/half", b'{"topology_id": "t-3-1"}'))
    found = history.examined()
    assert found.problems == [
        "submission k became t-1-1 and t-2-1",
        "submissions neither completed nor cleaned up: {'half': 't-3-1'}",
    ]


def test_drivers_that_take_turns_on_a_checkpoint() -> None:
    assert check_writers("t", [(1, 0), (1, 1), (2, 2), (2, 3), (3, 4)]) == []
    assert check_writers("t", [(1, 0), (2, 1), (1, 2)]) == [
        "driver 1 of t wrote to the checkpoint after driver 2 had begun to"
    ]


def test_a_servers_log_is_read(tmp_path: Path) -> None:
    def text(content: str) -> bytes:
        return struct.pack(">i", len(content)) + content.encode()

    def entry(zxid: int, kind: int, record: bytes) -> bytes:
        body = struct.pack(">qiqqi", 7, 1, zxid, 1500, kind) + record
        return struct.pack(">qi", 0, len(body)) + body + b"B"

    acl = struct.pack(">i", 1) + struct.pack(">i", 31) + text("world") + text("anyone")
    made = text("/storm/a") + text("data") + acl + struct.pack(">?i", True, 1)
    check = text("/storm/a") + struct.pack(">i", 4)
    parts = struct.pack(">ii", 1, 13) + struct.pack(">i", len(check)) + check
    (tmp_path / "version-2").mkdir()
    content = b"ZKLG" + struct.pack(">iq", 2, 0) + entry(1, 1, made) + entry(2, 14, parts) + b"\0" * 100
    (tmp_path / "version-2" / "log.1").write_bytes(content)
    assert read([tmp_path]) == [
        Transaction(1, 7, 1.5, (Operation("create", "/storm/a", b"data", ephemeral=True),)),
        Transaction(2, 7, 1.5, (Operation("check", "/storm/a", version=3),)),
    ]
