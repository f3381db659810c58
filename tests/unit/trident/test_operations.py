"""Each operation on single tuples and each repartitioning, by what it does."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from trident_run import Gathered, results, run

from storm_on_spark import CustomStreamGrouping, Fields, InvalidTopologyError, Values
from storm_on_spark.api.errors import UnknownFieldError
from storm_on_spark.trident import (
    BaseFilter,
    BaseFunction,
    Count,
    Debug,
    Equals,
    FilterNull,
    FixedBatchSpout,
    Negate,
    Stream,
    Sum,
    TridentTopology,
)
from storm_on_spark.trident.state import MemoryMapState, QueryFunction, StateUpdater

NUMBERS = [[number] for number in range(10)]
PEEKED: list[Any] = []


class Twice(BaseFunction):
    def prepare(self, conf: Any, context: Any) -> None:
        self.prepared = True

    def execute(self, tup: Any, collector: Any) -> None:
        assert self.prepared
        collector.emit([tup["value"], "first"])
        collector.emit([tup["value"], "second"])


class Even(BaseFilter):
    def is_keep(self, tup: Any) -> bool:
        return tup[0] % 2 == 0


def test_each_adds_the_fields_that_a_function_emits() -> None:
    found = results([[1], [2]], lambda s: s.each("value", Twice(), ["copy", "which"]))
    assert found == [(1, 1, "first"), (1, 1, "second"), (2, 2, "first"), (2, 2, "second")]


def test_each_with_a_plain_function_adds_each_of_its_results() -> None:
    found = results([["a b"], [""]], lambda s: s.each("value", lambda tup: tup["value"].split(), "word"))
    assert found == [("a b", "a"), ("a b", "b")]


def test_each_with_a_filter_keeps_tuples_as_they_are() -> None:
    assert results(NUMBERS, lambda s: s.each("value", Even())) == [(0,), (2,), (4,), (6,), (8,)]
    assert results(NUMBERS, lambda s: s.each("value", lambda tup: tup[0] > 8)) == [(9,)]


def test_a_function_sees_its_input_fields_only() -> None:
    found = results(
        [[1, 2, 3]], lambda s: s.each(["c", "a"], lambda tup: [(list(tup.fields), list(tup))], "seen"), ["a", "b", "c"]
    )
    assert found == [(1, 2, 3, (["c", "a"], [3, 1]))]


def test_filter_keeps_what_a_function_says() -> None:
    assert results(NUMBERS, lambda s: s.filter(lambda tup: tup["value"] > 7)) == [(8,), (9,)]
    assert results(NUMBERS, lambda s: s.filter("value", Even())) == [(0,), (2,), (4,), (6,), (8,)]


def test_map_replaces_the_values() -> None:
    assert results(NUMBERS[:2], lambda s: s.map(lambda tup: tup[0] + 1)) == [(1,), (2,)]
    assert results(NUMBERS[:2], lambda s: s.map(lambda tup: (tup[0], str(tup[0])), ["n", "s"])) == [(0, "0"), (1, "1")]
    assert results(NUMBERS[:1], lambda s: s.map(lambda tup: Values(7), "n")) == [(7,)]


def test_flat_map_gives_any_number_of_tuples() -> None:
    assert results([["a b"], [""], ["c"]], lambda s: s.flat_map(lambda tup: tup[0].split(), "word")) == [
        ("a",),
        ("b",),
        ("c",),
    ]


def test_peek_sees_tuples_on_their_way() -> None:
    topology = TridentTopology()
    stream = topology.new_stream("numbers", FixedBatchSpout("n", 2, NUMBERS[:3]))
    peeked = Gathered(stream)  # with peek
    doubled = Gathered(stream.map(lambda tup: 2 * tup[0]))
    run(topology)
    assert (peeked.rows, doubled.rows) == ([(0,), (1,), (2,)], [(0,), (2,), (4,)])


def test_a_function_that_keeps_something_is_refused() -> None:
    with pytest.raises(InvalidTopologyError, match="lost; keep it with an aggregation or in a state"):
        results(NUMBERS, lambda s: s.peek(lambda tup: PEEKED.append(tup)))


def test_project_keeps_fields_in_the_asked_order() -> None:
    assert results([[1, 2, 3]], lambda s: s.project(["c", "a"]), ["a", "b", "c"]) == [(3, 1)]


def test_filters_that_come_with_trident(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [[1, 1], [1, 2], [None, 1]]
    fields = ["a", "b"]
    assert results(rows, lambda s: s.each(fields, FilterNull()), fields) == [(1, 1), (1, 2)]
    assert results(rows, lambda s: s.each(fields, Equals()), fields) == [(1, 1)]
    assert results(rows, lambda s: s.each(fields, Negate(Equals())), fields) == [(1, 2), (None, 1)]
    assert len(results(rows, lambda s: s.each(fields, Debug("seen")), fields)) == len(rows)
    assert capsys.readouterr().out.splitlines() == [f"DEBUG(seen): {row}" for row in rows]


class ToLast(CustomStreamGrouping):
    def prepare(self, context: Any, stream: Any, target_tasks: list[int]) -> None:
        self.last = target_tasks[-1]

    def choose_tasks(self, task_id: int, values: Any) -> list[int]:
        return [self.last]


class Where(BaseFunction):
    """Adds the number of the task."""

    def prepare(self, conf: Any, context: Any) -> None:
        self.index = context.this_task_index

    def execute(self, tup: Any, collector: Any) -> None:
        collector.emit([self.index])


def placed(move: Any, size: int = 5) -> list[tuple[int, int]]:
    """Returns numbers and the tasks, of three, to which they came."""
    return results(NUMBERS, lambda s: move(s).each([], Where(), "task").parallelism_hint(3), size=size)  # type: ignore[return-value]


def test_shuffle_spreads_evenly() -> None:
    for move in (Stream.shuffle, Stream.local_or_shuffle):
        assert sorted(Counter(task for _, task in placed(move)).values()) in ([3, 3, 4], [2, 4, 4])


def test_broadcast_sends_to_all_tasks() -> None:
    assert Counter(placed(Stream.broadcast)) == Counter((number, task) for [number] in NUMBERS for task in range(3))


def test_partition_by_sends_equal_values_to_one_task() -> None:
    found = placed(lambda s: s.map(lambda tup: tup[0] % 4).partition_by("value"))
    assert len(found) == len(NUMBERS)
    assert len(set(found)) == 4


def test_global_sends_all_to_one_task() -> None:
    assert {task for _, task in placed(Stream.global_)} == {0}


def test_batch_global_sends_a_batch_to_one_task_and_batches_to_several() -> None:
    found = placed(Stream.batch_global, size=2)
    assert len({task for _, task in found}) == 3
    assert all(len({task for number, task in found if number // 2 == batch}) == 1 for batch in range(5))


def test_partition_takes_a_grouping_of_the_users() -> None:
    assert {task for _, task in placed(lambda s: s.partition(ToLast()))} == {2}


def test_identity_partition_keeps_the_number_of_the_task() -> None:
    found = results(
        NUMBERS,
        lambda s: (
            s.shuffle()
            .each([], Where(), "before")
            .parallelism_hint(3)
            .identity_partition()
            .each([], Where(), "after")
            .project(["before", "after"])
        ),
    )
    assert len(found) == len(NUMBERS)
    assert {before == after for before, after in found} == {True}
    assert {before for before, _ in found} == {0, 1, 2}


def test_merge_has_the_tuples_of_all_streams() -> None:
    topology = TridentTopology()
    first = topology.new_stream("first", FixedBatchSpout("a", 2, [[1], [2], [3]]))
    second = topology.new_stream("second", FixedBatchSpout("b", 1, [[10], [20], [30], [40]]))
    merged = topology.merge(first, second)
    assert merged.output_fields == Fields("a")
    gathered, counted = Gathered(merged), Gathered(merged.aggregate(Count(), "count"))
    run(topology)
    assert sorted(gathered.rows) == [(1,), (2,), (3,), (10,), (20,), (30,), (40,)]
    assert counted.rows == [(3,), (2,), (1,), (1,)], "batches of both spouts are one"


def test_a_stream_may_be_used_several_times() -> None:
    topology = TridentTopology()
    numbers = topology.new_stream("numbers", FixedBatchSpout("n", 4, NUMBERS))
    even = Gathered(numbers.filter(lambda tup: tup[0] % 2 == 0))
    large = Gathered(numbers.shuffle().filter(lambda tup: tup[0] > 7))
    run(topology)
    assert even.rows == [(0,), (2,), (4,), (6,), (8,)]
    assert sorted(large.rows) == [(8,), (9,)]


def test_apply_assembly_uses_a_chain_again() -> None:
    def doubled(stream: Stream) -> Stream:
        return stream.map(lambda tup: tup[0] * 2)

    assert results(NUMBERS[:3], lambda s: s.apply_assembly(doubled).apply_assembly(doubled)) == [(0,), (4,), (8,)]


def test_names_are_of_the_operations_that_follow_and_parallelism_hints_of_the_bolt() -> None:
    topology = TridentTopology()
    lines = topology.new_stream("lines", FixedBatchSpout("line", 2, [["a"]])).parallelism_hint(2)
    upper = lines.shuffle().name("upper").map(lambda tup: tup[0]).parallelism_hint(4).filter(bool).parallelism_hint(3)
    counted = upper.name("words").group_by("line").name("count").aggregate(Count(), "n")
    topology.merge(lines, counted.project("n")).shuffle().filter(bool)
    built = topology.build()
    assert built["b-0-spout-lines"].parallelism == 1, "each task would emit the whole of a batch"
    assert built["b-1-upper-count"].parallelism == 4
    assert list(built.bolts)[2:] == ["b-2-count", "b-3-count", "b-4-count"]


def test_input_fields_may_be_left_out() -> None:
    topology = TridentTopology()
    numbers = topology.new_stream("numbers", FixedBatchSpout("n", 2, [[1], [2]]))
    numbers = numbers.each(lambda tup: [tup["n"] * 10], "ten").each(lambda tup: tup["n"] > 1)
    state = numbers.partition_persist(MemoryMapState.Factory(), Keeps(), ["n", "ten"])
    answered = Gathered(state.new_values_stream().state_query(state, Knows(), "known"))
    run(topology)
    assert answered.rows == [(2, 20, [2, 20])]
    with pytest.raises(InvalidTopologyError, match=r"partition_persist \(.*\) takes a StateUpdater, not 3"):
        numbers.partition_persist(MemoryMapState.Factory(), "n", 3)
    with pytest.raises(InvalidTopologyError, match=r"state_query \(.*\) takes a QueryFunction, not 3"):
        numbers.state_query(state, "n", 3, "known")


class Keeps(StateUpdater[Any]):
    def update_state(self, state: Any, tuples: Any, collector: Any) -> None:
        state.multi_put([[tup[0]] for tup in tuples], [list(tup) for tup in tuples])
        for tup in tuples:
            collector.emit(list(tup))


class Knows(QueryFunction[Any]):
    def batch_retrieve(self, state: Any, tuples: Any) -> Any:
        return state.multi_get([[tup[0]] for tup in tuples])

    def execute(self, tup: Any, result: Any, collector: Any) -> None:
        collector.emit([result])


def test_a_grouped_stream_stays_grouped_over_each_and_partition_aggregate() -> None:
    rows = [["a", 1], ["b", 2], ["a", 3]]

    def program(stream: Stream) -> Stream:
        tens = stream.group_by("key").each("value", lambda tup: [tup["value"] * 10], "ten")
        sums = tens.partition_aggregate("ten", Sum(), "sum")
        assert (sums.group_fields, sums.output_fields) == (Fields("key"), Fields("key", "sum"))
        assert sums.to_stream().to_stream().output_fields == Fields("key", "sum")
        return sums.aggregate("sum", Sum(), "total")

    assert sorted(results(rows, program, ["key", "value"], size=2)) == [("a", 10), ("a", 30), ("b", 20)]


def test_messages_name_operation_and_place() -> None:
    stream = TridentTopology().new_stream("lines", FixedBatchSpout("line", 2, [["a"]]))
    with pytest.raises(UnknownFieldError, match=r'each \(test_operations.py:\d+\): no field "word"; there are: "line"'):
        stream.each("word", Even())
    with pytest.raises(InvalidTopologyError, match=r'the stream has a field "line" already'):
        stream.each("line", lambda tup: [1], "line")
    with pytest.raises(InvalidTopologyError, match=r"takes an Aggregator, a ReducerAggregator or a CombinerAggregator"):
        stream.aggregate("line", len, "count")
    with pytest.raises(InvalidTopologyError, match=r"new_stream \(test_operations.py:\d+\) takes an IBatchSpout"):
        TridentTopology().new_stream("lines", 3)
