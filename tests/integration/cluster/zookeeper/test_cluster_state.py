from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from cluster_records import assignment, beat, ownership, storm
from fences import lead
from lengths import PATIENCE_SECS
from waiting import eventually

from storm_on_spark.cluster.errors import (
    ClusterError,
    ConflictError,
    FencedError,
    OwnershipLostError,
    RecordError,
    UnavailableError,
)
from storm_on_spark.cluster.paths import (
    ASSIGNMENTS,
    CODE,
    COUNTER,
    ERRORS,
    LEADER_LOCK,
    NIMBUSES,
    OWNERS,
    STORMS,
    SUPERVISORS,
    WORKERBEATS,
)
from storm_on_spark.cluster.records import (
    ChangeRecord,
    ErrorRecord,
    NimbusSummary,
    Ownership,
    StormBase,
    WorkerBeat,
)
from storm_on_spark.cluster.state import Check, ClusterState, Create, Delete, Put
from storm_on_spark.cluster.zookeeper.kept_nodes import KeptNodes
from storm_on_spark.testing.faults.connections import TcpProxy, expire_session

TOPOLOGY = "words-1-1700000000"


def test_all_changes_or_none(connect) -> None:
    state = ClusterState(connect())
    fence = lead(state.session)
    assert state.get(StormBase, STORMS, TOPOLOGY) is None
    assert state.commit(fence, Create((STORMS, TOPOLOGY), storm(TOPOLOGY)), Put((COUNTER,), b"1")) == (0, 1)
    assert state.get(StormBase, STORMS, TOPOLOGY) == (storm(TOPOLOGY), 0)
    assert state.get_bytes(COUNTER) == (b"1", 1)
    with pytest.raises(ConflictError, match=f"Create {state.session.paths.of(STORMS, TOPOLOGY)}: NodeExistsError"):
        state.commit(fence, Put((COUNTER,), b"2"), Create((STORMS, TOPOLOGY), storm(TOPOLOGY)))
    with pytest.raises(ConflictError, match=r"Put .*: BadVersionError"):
        state.commit(fence, Put((STORMS, TOPOLOGY), storm(TOPOLOGY, launch=2), version=7), Put((COUNTER,), b"2"))
    with pytest.raises(ConflictError, match=r"Check .*: NoNodeError"):
        state.commit(fence, Put((COUNTER,), b"2"), Check((STORMS, "other")))
    assert state.get_bytes(COUNTER) == (b"1", 1)
    assert state.commit(fence, Check((COUNTER,), 1), Put((STORMS, TOPOLOGY), storm(TOPOLOGY, launch=2), 0)) == (1, 1)
    assert state.commit(fence, Delete((STORMS, TOPOLOGY), 1)) == (-1,)
    assert state.children(STORMS) == []


@pytest.mark.representative
def test_the_write_of_a_former_leader_is_refused(connect) -> None:
    zombie, leader = ClusterState(connect()), ClusterState(connect())
    old = lead(zombie.session, "a:1")
    new = lead(leader.session, "b:1")
    assert new.epoch > old.epoch
    # Its node is still in the queue, but somebody else has written `leader-info`.
    with pytest.raises(FencedError, match=rf"leadership {old.epoch} is over; refused: Create storms/{TOPOLOGY}"):
        zombie.commit(old, Create((STORMS, TOPOLOGY), storm(TOPOLOGY)))
    leader.commit(new, Put((COUNTER,), b"5"))
    # And without its node nobody else is needed.
    leader.session.client.delete(new.lock_path)
    with pytest.raises(FencedError):
        leader.commit(new, Put((COUNTER,), b"6"))
    # It is fenced, whatever else is wrong with its changes.
    with pytest.raises(FencedError):
        leader.commit(new, Create((COUNTER,), b"6"))
    assert leader.get_bytes(COUNTER) == (b"5", 1)
    assert leader.children(STORMS) == []


def test_too_much_for_one_transaction(connect) -> None:
    state = ClusterState(connect())
    fence = lead(state.session)
    with pytest.raises(RecordError, match=r"2 changes of 1,2.* bytes; one transaction takes 1,000,000"):
        state.commit(fence, Put((COUNTER,), b"0" * 600_000), Put((COUNTER,), b"0" * 600_000))
    # And what it takes does fit.
    state.commit(fence, Put((COUNTER,), b"0" * 990_000))


@pytest.mark.parametrize("data", [b'{"format":1,"name":7}', b""])
def test_a_damaged_record_is_named(connect, data: bytes) -> None:
    state = ClusterState(connect())
    state.session.ensure_folders()
    path = state.session.paths.of(STORMS, TOPOLOGY)
    state.session.client.create(path, data)
    with pytest.raises(RecordError, match=f"{path}: no StormBase"):
        state.get(StormBase, STORMS, TOPOLOGY)


def test_a_tree_is_deleted_while_others_add_to_it(connect) -> None:
    state, other = ClusterState(connect()), ClusterState(connect())
    fence = lead(state.session)
    state.commit(fence, Create((CODE, TOPOLOGY), b"{}"))
    for port in range(600):
        other.session.client.create_async(state.session.paths.of(CODE, TOPOLOGY, f"h:{port}"), ephemeral=True)
    other.create_ephemeral(b"", CODE, TOPOLOGY, "last:1")
    state.delete_tree(fence, CODE, TOPOLOGY)
    assert state.children(CODE) == []
    state.delete_tree(fence, CODE, TOPOLOGY)
    state.session.client.delete(fence.lock_path)
    other.session.client.create(state.session.paths.of(CODE, TOPOLOGY))
    with pytest.raises(FencedError):
        state.delete_tree(fence, CODE, TOPOLOGY)


def test_a_change_is_there_with_the_record_of_who_asked_for_it_or_not_at_all(connect) -> None:
    # What it sees is not to depend on how soon a busy machine answers.
    state = ClusterState(connect(session_timeout_secs=PATIENCE_SECS, connection_timeout_secs=PATIENCE_SECS))
    fence = lead(state.session)

    def record(what: object) -> ChangeRecord:
        return ChangeRecord(topology_id=TOPOLOGY, what=str(what), who="ann", time=0.0)

    def recorded() -> list[str]:
        return [change.what for change in state.changes()]

    assert state.commit_recorded(record("one"), fence, Put((COUNTER,), b"1")) == (1,)
    with pytest.raises(ConflictError, match=r"Put .*: BadVersionError"):
        state.commit_recorded(record("two"), fence, Put((COUNTER,), b"2", 7))
    assert recorded() == ["one"]
    state.commit(fence, Create((CODE, TOPOLOGY), b"{}"), *(Create((CODE, TOPOLOGY, f"h:{n}")) for n in range(600)))
    state.delete_tree(fence, CODE, TOPOLOGY, last=partial(state.commit_recorded, record("gone")))
    assert state.children(CODE) == []
    assert recorded() == ["gone", "one"]
    # Many at the same moment.
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda n: state.commit_recorded(record(n), fence, Put((COUNTER,), b"3")), range(20)))
    assert sorted(recorded()[:-2]) == sorted(map(str, range(20)))
    assert state.get_bytes(COUNTER) == (b"3", 21)
    state.session.client.delete(fence.lock_path)
    with pytest.raises(FencedError):
        state.commit_recorded(record("late"), fence, Put((COUNTER,), b"4"))
    assert "late" not in recorded()
    assert state.get_bytes(COUNTER) == (b"3", 21)


def test_one_owner(connect) -> None:
    first, second = ClusterState(connect()), ClusterState(connect())
    fence = lead(first.session)
    with pytest.raises(OwnershipLostError, match=r"isn't assigned to it any more .NoNodeError") as unassigned:
        first.take_ownership(ownership(TOPOLOGY, pid=1), 0)
    assert unassigned.value.owner is None
    first.commit(fence, Create((ASSIGNMENTS, TOPOLOGY), assignment(TOPOLOGY)))
    first.take_ownership(ownership(TOPOLOGY, pid=1), 0)
    # The answer may have got lost.
    first.take_ownership(ownership(TOPOLOGY, pid=1), 0)
    with pytest.raises(OwnershipLostError, match="driver 2 on h:6700: driver 1 on h:6700 owns words-1") as owned:
        second.take_ownership(ownership(TOPOLOGY, pid=2), 0)
    assert owned.value.owner == ownership(TOPOLOGY, pid=1)
    first.commit(fence, Put((ASSIGNMENTS, TOPOLOGY), assignment(TOPOLOGY, launch=2)))
    assert not second.delete_ephemeral(OWNERS, TOPOLOGY)
    assert first.delete_ephemeral(OWNERS, TOPOLOGY)
    with pytest.raises(OwnershipLostError, match=r"isn't assigned to it any more .BadVersionError"):
        second.take_ownership(ownership(TOPOLOGY, pid=2), 0)
    second.take_ownership(ownership(TOPOLOGY, pid=2), 1)
    assert second.get(Ownership, OWNERS, TOPOLOGY) == (ownership(TOPOLOGY, pid=2), 0)


def test_ownership_goes_with_the_session(connect) -> None:
    first, second = ClusterState(connect()), ClusterState(connect())
    first.commit(lead(second.session), Create((ASSIGNMENTS, TOPOLOGY), assignment(TOPOLOGY)))
    first.take_ownership(ownership(TOPOLOGY, pid=1), 0)
    expire_session(first.session)
    assert second.children(OWNERS) == []
    second.take_ownership(ownership(TOPOLOGY, pid=2), 0)
    eventually(lambda: first.session.state == "CONNECTED")
    with pytest.raises(OwnershipLostError):
        first.take_ownership(ownership(TOPOLOGY, pid=1), 0)


def test_ephemeral_nodes(connect) -> None:
    state, restarted = ClusterState(connect()), ClusterState(connect())
    # The first of a new cluster needs no folders.
    state.create_ephemeral(b"1", SUPERVISORS, "s1")
    state.create_ephemeral(b"2", SUPERVISORS, "s1")
    assert state.get_bytes(SUPERVISORS, "s1") == (b"2", 1)
    # A process that comes back before its old session has expired.
    restarted.create_ephemeral(b"3", SUPERVISORS, "s1")
    state.session.close()
    assert restarted.get_bytes(SUPERVISORS, "s1") == (b"3", 0)
    with pytest.raises(ConflictError, match="its parent does not exist"):
        restarted.create_ephemeral(b"", CODE, TOPOLOGY, "h:1")


def test_kept_nodes_come_back(connect) -> None:
    state, other = ClusterState(connect()), ClusterState(connect())
    summary = NimbusSummary(host="h", port=1, started_at=0.0, version="1")
    with KeptNodes(state) as kept:
        kept.keep(summary, NIMBUSES, "h:1")
        kept.keep(b"", SUPERVISORS, "s1")
        eventually(lambda: other.children(NIMBUSES) == ["h:1"] and other.children(SUPERVISORS) == ["s1"])
        kept.drop(SUPERVISORS, "s1")
        eventually(lambda: other.children(SUPERVISORS) == [])
        expire_session(state.session)
        eventually(lambda: other.get(NimbusSummary, NIMBUSES, "h:1") == (summary, 0))
        assert other.children(SUPERVISORS) == []
    assert other.children(NIMBUSES) == []


def test_heartbeats_and_errors(connect) -> None:
    state = ClusterState(connect())
    state.session.ensure_folders()
    for time in (1.0, 2.0):
        state.put_beat(beat(TOPOLOGY, time))
        assert state.get(WorkerBeat, WORKERBEATS, TOPOLOGY) == (beat(TOPOLOGY, time), int(time) - 1)
    for number in range(23):
        for component in ("count", "a/b"):
            error = ErrorRecord(component=component, task=1, message=str(number), time=0.0, host="h", port=1)
            state.add_error(TOPOLOGY, error)
    found = state.errors(TOPOLOGY)
    assert sorted(found) == ["a/b", "count"]
    assert [error.message for error in found["a/b"]] == [str(number) for number in range(3, 23)]
    assert len(state.children(ERRORS, TOPOLOGY, "count")) == 20
    assert state.errors("other") == {}


def test_equal_errors_of_any_task_and_driver_are_one(connect) -> None:
    one, other = ClusterState(connect()), ClusterState(connect())
    one.session.ensure_folders()

    def add(state: ClusterState, task: int, text: str, time: float, **more: object) -> None:
        message = f'component "count" (task {task}) failed in execute: {text}'
        error = ErrorRecord(component="count", task=task, message=message, time=time, host="h", port=task, **more)
        state.add_error(TOPOLOGY, error)

    trace = 'Traceback (most recent call last):\n  File "/home/u/jobs.py", line {}, in execute\nKeyError: 1\n'
    add(one, 1, "KeyError: 1", 20.0, first_time=10.0, count=4, input="(1,)", trace=trace.format(7))
    add(one, 1, "KeyError: 2", 30.0)
    elsewhere = trace.format(7).replace("/home/u/", "/slots/6701/code/")
    add(other, 2, "KeyError: 1", 40.0, count=2, input="(2,)", trace=elsewhere)
    add(other, 3, "KeyError: 1", 50.0, trace=trace.format(8))
    found = one.errors(TOPOLOGY)["count"]
    assert [(e.time, e.first_time, e.count, e.task, e.input) for e in found] == [
        (30.0, None, 1, 1, ""),
        (40.0, 10.0, 6, 2, "(2,)"),
        (50.0, None, 1, 3, ""),
    ]


def test_away(zookeeper, connect) -> None:
    with TcpProxy(zookeeper.connect_string) as proxy:
        session = connect(proxy.address, retry_times=1, retry_interval_secs=0.1, connection_timeout_secs=0.5)
        state = ClusterState(session)
        fence = lead(session)
        proxy.cut()
        proxy.drop()
        eventually(lambda: session.state == "SUSPENDED")
        with pytest.raises(UnavailableError, match="nothing was written"):
            state.commit(fence, Put((COUNTER,), b"7"))
        with pytest.raises(UnavailableError):
            state.children(LEADER_LOCK)
        proxy.mend()
        eventually(lambda: session.state == "CONNECTED")
        assert state.get_bytes(COUNTER) == (b"0", 0)
        session.close()
        with pytest.raises(UnavailableError):
            state.children(LEADER_LOCK)


def test_what_the_acl_forbids(connect) -> None:
    connect(auth_scheme="digest", auth_payload="storm:sesame").ensure_folders()
    with pytest.raises(ClusterError, match="ZooKeeper refused: NoAuthError"):
        ClusterState(connect()).children(LEADER_LOCK)
