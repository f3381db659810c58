"""Operations with a state, and batches that fail."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from trident_run import Gathered, results, run

from storm_on_spark import FailedException, InvalidTopologyError
from storm_on_spark.trident import (
    Count,
    FixedBatchSpout,
    IBatchSpout,
    ReducerAggregator,
    Sum,
    TridentTopology,
)
from storm_on_spark.trident.state import (
    MapGet,
    MemoryMapState,
    QueryFunction,
    ReadOnlyState,
    SnapshotGet,
    StateFactory,
    StateUpdater,
    TupleCollectionGet,
)

ROWS = [["a", 1], ["b", 2], ["a", 3], ["b", 4], ["a", 5]]
FIELDS = ["key", "value"]


class Total(ReducerAggregator):
    def init(self) -> int:
        return 100

    def reduce(self, current: int, tup: Any) -> int:
        return current + tup["value"]  # type: ignore[no-any-return]


def test_persistent_aggregate_of_groups_gives_each_new_value() -> None:
    def program(aggregator: Any) -> Any:
        return lambda s: (
            s.group_by("key")
            .persistent_aggregate(MemoryMapState.Factory(), "value", aggregator, "sum")
            .new_values_stream()
        )

    assert results(ROWS, program(Sum()), FIELDS) == [("a", 4), ("b", 2), ("b", 6), ("a", 9)]
    assert results(ROWS, program(Total()), FIELDS) == [("a", 104), ("b", 102), ("b", 106), ("a", 109)]


def test_persistent_aggregate_of_all_gives_the_new_value() -> None:
    def program(aggregator: Any) -> Any:
        return lambda s: s.persistent_aggregate(
            MemoryMapState.Factory(), "value", aggregator, "sum"
        ).new_values_stream()

    assert results(ROWS, program(Sum()), FIELDS) == [(6,), (15,)]
    assert results(ROWS, program(Total()), FIELDS) == [(106,), (115,)]


class SetValues(StateUpdater[Any]):
    def update_state(self, state: Any, tuples: Any, collector: Any) -> None:
        state.multi_put([[tup["key"]] for tup in tuples], [tup["value"] for tup in tuples])
        collector.emit([len(tuples)])


def test_partition_persist_calls_the_updater_once_for_each_batch() -> None:
    factory = MemoryMapState.Factory()
    found = results(
        ROWS, lambda s: s.partition_persist(factory, FIELDS, SetValues(), "written").new_values_stream(), FIELDS
    )
    assert found == [(3,), (2,)]


def asked(query: Any, inputs: Any, fields: Any, tasks: int = 2) -> list[tuple[Any, ...]]:
    """Returns what a query answers in a stream of its own, once all is counted."""
    topology = TridentTopology()
    counts = (
        topology.new_stream("rows", FixedBatchSpout(FIELDS, 5, ROWS))
        .group_by("key")
        .persistent_aggregate(MemoryMapState.Factory(), Count(), "count")
        .parallelism_hint(tasks)
    )
    # The state answers with what was committed before; after enough batches that is all.
    questions = topology.new_stream("questions", FixedBatchSpout("key", 1, [["a"], ["b"], ["c"]] * 8))
    gathered = Gathered(questions.group_by("key").state_query(counts, inputs, query, fields))
    run(topology)
    return gathered.rows


def test_state_query_of_a_map_gives_the_value_of_each_key() -> None:
    found = asked(MapGet(), "key", "count")
    assert len(found) == 24
    assert set(found[-3:]) == {("a", 3), ("b", 2), ("c", None)}


def test_state_query_of_a_collection_gives_all_entries() -> None:
    found = asked(TupleCollectionGet(), [], ["word", "count"], tasks=1)
    assert {row[1:] for row in found if row[0] == "c"} == {("a", 3), ("b", 2)}


def test_state_query_of_one_value() -> None:
    topology = TridentTopology()
    rows = topology.new_stream("rows", FixedBatchSpout(FIELDS, 5, ROWS))
    total = rows.persistent_aggregate(MemoryMapState.Factory(), "value", Sum(), "sum")
    questions = topology.new_stream("questions", FixedBatchSpout("n", 1, [[n] for n in range(8)]))
    gathered = Gathered(questions.state_query(total, [], SnapshotGet(), "sum"))
    run(topology)
    assert gathered.rows[-1] == (7, 15)


class Squares(ReadOnlyState):
    def __init__(self, index: int) -> None:
        self.index = index


class SquaresFactory(StateFactory):
    def make_state(self, conf: Any, metrics: Any, partition_index: int, num_partitions: int) -> Squares:
        return Squares(partition_index)


class Square(QueryFunction[Squares]):
    def batch_retrieve(self, state: Squares, tuples: Any) -> list[int]:
        return [tup[0] ** 2 for tup in tuples]

    def execute(self, tup: Any, result: int, collector: Any) -> None:
        collector.emit([result])


def test_a_static_state_is_only_asked() -> None:
    topology = TridentTopology()
    squares = topology.new_static_state(SquaresFactory())
    numbers = topology.new_stream("n", FixedBatchSpout("n", 2, [[n] for n in range(4)]))
    first = Gathered(numbers.state_query(squares, "n", Square(), "square"))
    second = Gathered(numbers.shuffle().state_query(squares, "n", Square(), "square"))
    run(topology)
    assert first.rows == second.rows == [(n, n * n) for n in range(4)]
    with pytest.raises(InvalidTopologyError, match="nothing is written to a static state"):
        squares.new_values_stream()


class Fails:
    """A function that fails the batch the first times that it gets a value; each task has one."""

    def __init__(self, values: dict[int, int]) -> None:
        self.values = values

    def __call__(self, tup: Any) -> Any:
        if self.values.get(tup[0], 0) > 0:
            self.values[tup[0]] -= 1
            raise FailedException(f"not {tup[0]} yet")
        return tuple(tup)


@pytest.mark.parametrize("pending", [1, 4])
def test_a_batch_that_fails_is_attempted_again_and_counted_once(pending: int) -> None:
    topology = TridentTopology()
    numbers = topology.new_stream("n", FixedBatchSpout("n", 2, [[n] for n in range(20)]))
    checked = numbers.shuffle().map(Fails({5: 2, 6: 1, 13: 3}))
    total = Gathered(checked.persistent_aggregate(MemoryMapState.Factory(), Count(), "count").new_values_stream())
    info = run(topology, {"topology.max.spout.pending": pending})
    assert total.rows == [(count,) for count in range(2, 21, 2)]
    assert info.components["$mastercoord-bg0"].failed > 0


def test_a_commit_that_fails_is_attempted_again_and_counted_once() -> None:
    topology = TridentTopology()
    numbers = topology.new_stream("n", FixedBatchSpout("n", 2, [[n % 3] for n in range(20)]))
    counts = numbers.group_by("n").persistent_aggregate(MemoryMapState.Factory(), Count(), "count").parallelism_hint(2)
    # What comes behind the state fails in the commit, when the state has the batch already.
    late = counts.new_values_stream().map(FailsAt({2: 2, 5: 1}))
    gathered = Gathered(late)
    run(topology)
    last: dict[int, int] = {}
    for key, count in gathered.rows:
        last[key] = max(count, last.get(key, 0))
    assert last == Counter(n % 3 for n in range(20))


class FailsAt(Fails):
    """Fails by the second value."""

    def __call__(self, tup: Any) -> Any:
        if self.values.get(tup[1], 0) > 0:
            self.values[tup[1]] -= 1
            raise FailedException(f"not {tup[1]} yet")
        return tuple(tup)


class Changing(IBatchSpout):
    """Emits other tuples each time that a batch is attempted again."""

    def __init__(self) -> None:
        self.attempts: Counter[int] = Counter()
        self.acked: list[int] = []

    def emit_batch(self, batch_id: int, collector: Any) -> None:
        self.attempts[batch_id] += 1
        collector.emit([batch_id, self.attempts[batch_id]])

    def ack(self, batch_id: int) -> None:
        self.acked.append(batch_id)
        assert self.acked == list(range(1, batch_id + 1))

    def exhausted(self, batch_id: int) -> bool:
        return batch_id > 6

    def get_output_fields(self) -> Any:
        from storm_on_spark import Fields

        return Fields("batch", "attempt")


def test_when_a_batch_fails_all_later_ones_are_attempted_again() -> None:
    topology = TridentTopology()
    batches = topology.new_stream("batches", Changing()).map(Fails({2: 1}))
    state = batches.partition_persist(MemoryMapState.Factory(), ["batch", "attempt"], Emits(), ["batch", "attempt"])
    committed = Gathered(state.new_values_stream())
    run(topology, {"topology.max.spout.pending": 3})
    assert [batch for batch, _ in committed.rows] == [1, 2, 3, 4, 5, 6]
    attempts = dict(committed.rows)
    assert attempts[1] == 1
    assert attempts[2] > 1


class Emits(StateUpdater[Any]):
    def update_state(self, state: Any, tuples: Any, collector: Any) -> None:
        for tup in tuples:
            collector.emit(list(tup))


def test_a_state_that_is_asked_by_what_comes_from_it_in_the_same_batch_is_refused() -> None:
    topology = TridentTopology()
    rows = topology.new_stream("rows", FixedBatchSpout(FIELDS, 5, ROWS))
    counts = rows.group_by("key").persistent_aggregate(MemoryMapState.Factory(), Count(), "count")
    counts.new_values_stream().shuffle().map(tuple).group_by("key").state_query(counts, "key", MapGet(), "again")
    with pytest.raises(InvalidTopologyError, match="a batch goes from a bolt with a state to another one and back"):
        topology.build()
