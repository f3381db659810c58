"""The kinds of spouts, and the rules by which batches begin and are committed."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trident_run import Gathered, run

from storm_on_spark import FailedException, Fields
from storm_on_spark.testing import ListSpout, SpoutTester
from storm_on_spark.trident import (
    BatchCoordinator,
    CommitterEmitter,
    Count,
    FixedBatchSpout,
    ICommitterTridentSpout,
    IOpaquePartitionedTridentSpout,
    IPartitionedTridentSpout,
    OpaquePartitionedEmitter,
    PartitionCoordinator,
    PartitionedEmitter,
    TransactionAttempt,
    TridentTopology,
)
from storm_on_spark.trident.spouts.coordinator import MasterBatchCoordinator
from storm_on_spark.trident.spouts.kinds import as_trident
from storm_on_spark.trident.spouts.partitioned import Partitions as PartitionsOfTask
from storm_on_spark.trident.spouts.transactions import Transactions
from storm_on_spark.trident.state import MemoryMapState

PARTITIONS = 3
LENGTH = 20
"""Tuples in each partition."""
SIZE = 4


class Partitions(PartitionCoordinator):
    def get_partitions_for_batch(self) -> int:
        return PARTITIONS

    def exhausted(self, txid: int) -> bool:
        return (txid - 1) * SIZE > LENGTH + 4 * SIZE


class Positions(PartitionedEmitter):
    """Reads a partition from a position on; transactional."""

    def get_ordered_partitions(self, all_partitions: int) -> Sequence[int]:
        return range(all_partitions)

    def emit_partition_batch_new(self, attempt: Any, collector: Any, partition: int, last_metadata: Any) -> Any:
        start = 0 if last_metadata is None else last_metadata[1]
        bounds = start, min(start + SIZE, LENGTH)
        self.emit_partition_batch(attempt, collector, partition, bounds)
        return bounds

    def emit_partition_batch(self, attempt: Any, collector: Any, partition: int, metadata: Any) -> None:
        for position in range(*metadata):
            collector.emit([partition, position])


class Transactional(IPartitionedTridentSpout):
    def get_coordinator(self, conf: Any, context: Any) -> PartitionCoordinator:
        return Partitions()

    def get_emitter(self, conf: Any, context: Any) -> PartitionedEmitter:
        return Positions()

    def get_output_fields(self) -> Fields:
        return Fields("partition", "position")


class Less(OpaquePartitionedEmitter):
    """Reads as much as the number of the attempt lets it; opaque."""

    def get_ordered_partitions(self, all_partitions: int) -> Sequence[int]:
        return range(all_partitions)

    def emit_partition_batch(self, attempt: Any, collector: Any, partition: int, last_metadata: Any) -> int:
        start = last_metadata or 0
        end = min(start + max(1, SIZE - attempt.attempt), LENGTH)
        for position in range(start, end):
            collector.emit([partition, position])
        return end


class Opaque(IOpaquePartitionedTridentSpout):
    def get_coordinator(self, conf: Any, context: Any) -> PartitionCoordinator:
        return Partitions()

    def get_emitter(self, conf: Any, context: Any) -> OpaquePartitionedEmitter:
        return Less()

    def get_output_fields(self) -> Fields:
        return Fields("partition", "position")


class FailsSome:
    """Fails batches with some positions, some times."""

    def __init__(self) -> None:
        self.left = {(0, 2): 1, (1, 9): 2, (2, 13): 1}

    def __call__(self, tup: Any) -> Any:
        where = tuple(tup)
        if self.left.get(where, 0):
            self.left[where] -= 1
            raise FailedException(f"not {where} yet")
        return where


@pytest.mark.parametrize("spout", [Transactional, Opaque])
@pytest.mark.parametrize(("tasks", "pending"), [(1, 1), (2, 3), (3, 2)])
def test_each_tuple_of_a_partitioned_spout_is_counted_once_though_batches_fail(
    spout: Any, tasks: int, pending: int
) -> None:
    counted_once(spout(), tasks, pending)


class ComingAndGoing(Partitions):
    """Partition 0 is away for some batches, and then there again."""

    def __init__(self) -> None:
        self.listed = list(range(PARTITIONS))
        self.calls = 0

    def get_partitions_for_batch(self) -> Any:
        self.calls += 1
        self.listed[:] = [1, 2] if self.calls in (3, 4) else [0, 1, 2]
        return self.listed  # the same object, changed

    def exhausted(self, txid: int) -> bool:
        return super().exhausted(txid - 4)


class Listed(Less):
    def get_ordered_partitions(self, all_partitions: Any) -> Sequence[int]:
        return list(all_partitions)


class ListedPositions(Positions):
    def get_ordered_partitions(self, all_partitions: Any) -> Sequence[int]:
        return list(all_partitions)


class OpaqueComingAndGoing(Opaque):
    def get_coordinator(self, conf: Any, context: Any) -> PartitionCoordinator:
        return ComingAndGoing()

    def get_emitter(self, conf: Any, context: Any) -> OpaquePartitionedEmitter:
        return Listed()


class TransactionalComingAndGoing(Transactional):
    def get_coordinator(self, conf: Any, context: Any) -> PartitionCoordinator:
        return ComingAndGoing()

    def get_emitter(self, conf: Any, context: Any) -> PartitionedEmitter:
        return ListedPositions()


def counted_once(spout: Any, tasks: int, pending: int) -> None:
    """Counts the tuples of a partitioned spout while batches fail."""
    topology = TridentTopology()
    stream = topology.new_stream("partitions", spout).parallelism_hint(tasks)
    checked = stream.shuffle().map(FailsSome()).parallelism_hint(2)
    counts = checked.group_by(["partition", "position"]).persistent_aggregate(
        MemoryMapState.Factory(), Count(), "count"
    )
    gathered = Gathered(counts.new_values_stream())
    info = run(topology, {"topology.max.spout.pending": pending})
    assert info.components["$mastercoord-bg0"].failed > 0
    assert sorted(gathered.rows) == [(p, at, 1) for p in range(PARTITIONS) for at in range(LENGTH)]


@pytest.mark.parametrize("spout", [TransactionalComingAndGoing, OpaqueComingAndGoing])
def test_a_partition_that_vanishes_and_comes_back_continues_and_the_others_keep_their_tasks(spout: Any) -> None:
    counted_once(spout(), tasks=2, pending=2)


def test_an_emitter_that_takes_the_place_of_another_is_told_its_partitions() -> None:
    refreshed: list[Any] = []

    class Refreshed(Less):
        def refresh_partitions(self, partitions: Sequence[Any]) -> None:
            refreshed.append(list(partitions))

    context = SimpleNamespace(this_task_index=1, this_component_id="b", component_tasks=lambda _: [4, 5])
    known, told = PartitionsOfTask(context), [(1, pickle.dumps(4))]  # type: ignore[arg-type]
    assert known.mine(Refreshed(), told) == known.mine(Refreshed(), told) == [1, 3]
    assert refreshed == [[1, 3]]
    assert pickle.loads(pickle.dumps(known)).mine(Refreshed(), told) == [1, 3]
    assert refreshed == [[1, 3], [1, 3]]


class Waking(ListSpout):
    """A spout whose own threads can wake it."""

    def __init__(self, name: str) -> None:
        super().__init__([["a"]], Fields("value"))
        self.name = name

    def woken_by(self, wake: Any) -> None:
        wakes[self.name] = wake


wakes: dict[str, Any] = {}


def test_each_plain_spout_of_a_coordinator_can_wake_it() -> None:
    wakes.clear()
    spouts: dict[int, Any] = {}
    for number, name in enumerate(["first", "second"]):
        spouts[number] = (name, as_trident(Waking(name), name))
    spouts[2] = ("third", as_trident(FixedBatchSpout("value", 1, [["a"]]), "third"))
    tester = SpoutTester(MasterBatchCoordinator(spouts, commits=False))
    woken: list[str] = []
    tester.spout.woken_by(lambda: woken.append("the executor"))
    assert list(wakes) == ["first", "second"]
    wakes["second"]()
    assert woken == ["the executor"]
    tester.close()


def test_a_plain_spout_is_put_into_batches_and_acked_when_they_are_committed() -> None:
    topology = TridentTopology()
    lines = topology.new_stream("lines", ListSpout([str(n) for n in range(10)], fields=["n"]))
    counted = Gathered(lines.aggregate(Count(), "count"))
    rows = Gathered(lines)
    run(topology, {"topology.spout.max.batch.size": 4})
    assert rows.rows == [(str(n),) for n in range(10)]
    assert counted.rows == [(4,), (4,), (2,)]


def test_a_plain_spouts_batch_that_fails_has_the_same_tuples_again() -> None:
    topology = TridentTopology()
    lines = topology.new_stream("lines", ListSpout([(0, n) for n in range(10)], fields=["p", "n"]))
    counts = lines.shuffle().map(FailsSome()).group_by("n").persistent_aggregate(MemoryMapState.Factory(), Count(), "c")
    gathered = Gathered(counts.new_values_stream())
    run(topology, {"topology.spout.max.batch.size": 3})
    assert sorted(gathered.rows) == [(n, 1) for n in range(10)]


class Doubling(BatchCoordinator):
    """Each batch is twice as long as the one before."""

    def initialize_transaction(self, txid: int, previous: Any, current: Any) -> int:
        if current is not None:
            return int(current)
        return 1 if previous is None else 2 * int(previous)

    def exhausted(self, txid: int) -> bool:
        return txid > 4


class Committed(CommitterEmitter):
    def __init__(self) -> None:
        self.commits: list[int] = []
        self.successes: list[int] = []

    def emit_batch(self, attempt: TransactionAttempt, metadata: int, collector: Any) -> None:
        for number in range(metadata):
            collector.emit([attempt.txid, number, list(self.commits), list(self.successes)])

    def commit(self, attempt: TransactionAttempt) -> None:
        self.commits.append(attempt.txid)

    def success(self, attempt: TransactionAttempt) -> None:
        self.successes.append(attempt.txid)


class Coordinated(ICommitterTridentSpout):
    def get_coordinator(self, tx_state_id: str, conf: Any, context: Any) -> BatchCoordinator:
        return Doubling()

    def get_emitter(self, tx_state_id: str, conf: Any, context: Any) -> CommitterEmitter:
        return Committed()

    def get_output_fields(self) -> Fields:
        return Fields("txid", "n", "commits", "successes")


def test_a_trident_spouts_coordinator_decides_and_its_emitter_hears_of_commits() -> None:
    topology = TridentTopology()
    gathered = Gathered(topology.new_stream("doubling", Coordinated()))
    run(topology, {"topology.max.spout.pending": 1})
    assert [(txid, n) for txid, n, _, _ in gathered.rows] == [(t, n) for t in range(1, 5) for n in range(2 ** (t - 1))]
    commits, successes = gathered.rows[-1][2:]
    assert commits == [1, 2, 3]
    assert successes in ([1, 2, 3], [1, 2]), "the last success may be told after the next batch has begun"


@given(
    st.integers(1, 4), st.lists(st.tuples(st.sampled_from(["begin", "ack", "fail"]), st.integers(0, 9)), max_size=60)
)
def test_batches_are_committed_once_each_and_in_order(most: int, events: list[tuple[str, int]]) -> None:
    batches, pending, committed, ever = Transactions(), [], [], set()
    for event, which in events:
        if event == "begin":
            txid = batches.due(most)
            if txid is not None:
                attempt = batches.begin(txid)
                assert attempt not in ever, "an attempt has a number of its own"
                ever.add(attempt)
                pending.append(attempt)
        elif pending:
            attempt = pending.pop(which % len(pending))
            if event == "ack":
                done = batches.acked(attempt)
                committed += [] if done is None else [done]
            else:
                batches.failed(attempt)
        pending += batches.commits()
        assert len(batches.active) <= most
    assert committed == list(range(1, len(committed) + 1))
    assert batches.current == len(committed) + 1
