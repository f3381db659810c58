"""Aggregations: each kind in each place, and against plain Python for random batches."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trident_run import Gathered, results, run

from storm_on_spark.trident import (
    Aggregator,
    CombinerAggregator,
    Count,
    FirstN,
    FixedBatchSpout,
    ReducerAggregator,
    Sum,
    TridentTopology,
)

FIELDS = ["key", "value"]
ROWS = [["a", 1], ["b", 2], ["a", 3], ["b", 4], ["a", 5]]


class Longest(CombinerAggregator):
    def init(self, tup: Any) -> str:
        return str(tup[0])

    def combine(self, first: str, second: str) -> str:
        return max(first, second, key=lambda word: (len(word), word))

    def zero(self) -> str:
        return ""


class Total(ReducerAggregator):
    def init(self) -> int:
        return 0

    def reduce(self, current: int, tup: Any) -> int:
        return current + tup["value"]  # type: ignore[no-any-return]


class Both(Aggregator):
    """Emits the least and the greatest at the end, and each value at once."""

    def init(self, batch_id: Any, collector: Any) -> list[int]:
        self.batch = batch_id.txid
        return []

    def aggregate(self, accumulator: list[int], tup: Any, collector: Any) -> None:
        accumulator.append(tup["value"])
        collector.emit(["seen", tup["value"]])

    def complete(self, accumulator: list[int], collector: Any) -> None:
        if accumulator:
            collector.emit(["min", min(accumulator)])
            collector.emit(["max", max(accumulator)])


def batches(rows: list[Any], size: int) -> list[list[Any]]:
    return [rows[at : at + size] for at in range(0, len(rows), size)]


def test_aggregate_gives_one_result_for_each_batch() -> None:
    assert results(ROWS, lambda s: s.aggregate("value", Sum(), "sum"), FIELDS) == [(6,), (9,)]
    assert results(ROWS, lambda s: s.aggregate("value", Total(), "sum"), FIELDS) == [(6,), (9,)]
    assert results(ROWS, lambda s: s.aggregate(Count(), "count"), FIELDS) == [(3,), (2,)]


def test_aggregate_of_a_batch_without_tuples_is_zero_once() -> None:
    def program(stream: Any) -> Any:
        return stream.filter(lambda tup: tup["value"] > 3).shuffle().map(tuple).parallelism_hint(3)

    assert results(ROWS, lambda s: program(s).aggregate(Count(), "n").parallelism_hint(2), FIELDS) == [(0,), (2,)]
    assert results(ROWS, lambda s: program(s).aggregate(Total(), "n").parallelism_hint(2), FIELDS) == [(0,), (9,)]


def test_partition_aggregate_gives_a_result_for_each_task() -> None:
    def program(stream: Any) -> Any:
        return stream.partition_by("key").map(tuple).parallelism_hint(3).partition_aggregate("value", Sum(), "sum")

    found = results(ROWS, program, FIELDS, size=5)
    assert len(found) == 3
    assert sum(value for (value,) in found) == 15


def test_an_aggregator_emits_any_number_of_results() -> None:
    found = results(ROWS[:2], lambda s: s.aggregate(FIELDS, Both(), ["what", "number"]), FIELDS)
    assert found == [("seen", 1), ("seen", 2), ("min", 1), ("max", 2)]


def test_groups_are_aggregated_by_themselves() -> None:
    found = results(ROWS, lambda s: s.group_by("key").aggregate("value", Sum(), "sum"), FIELDS, size=5)
    assert sorted(found) == [("a", 9), ("b", 6)]
    found = results(ROWS, lambda s: s.group_by("key").aggregate("value", Both(), ["w", "n"]), FIELDS, size=2)
    least = [("a", 1), ("b", 2), ("a", 3), ("b", 4), ("a", 5)]
    assert [(key, number) for key, what, number in found if what == "min"] == least


def test_a_chain_joins_each_result_of_one_aggregation_with_each_of_the_others() -> None:
    found = results(
        ROWS,
        lambda s: s.chained_agg().aggregate(Count(), "count").aggregate("value", Sum(), "sum").chain_end(),
        FIELDS,
        size=5,
    )
    assert found == [(5, 15)]
    found = results(
        ROWS,
        lambda s: (
            s.group_by("key")
            .chained_agg()
            .partition_aggregate("value", FirstN(2), "first")
            .partition_aggregate("value", Total(), "total")
            .chain_end()
        ),
        FIELDS,
        size=5,
    )
    assert sorted(found) == [("a", 1, 9), ("a", 3, 9), ("b", 2, 6), ("b", 4, 6)]


def test_min_and_max_give_whole_tuples_of_each_batch() -> None:
    assert results(ROWS, lambda s: s.min_by("value"), FIELDS) == [("a", 1), ("b", 4)]
    assert results(ROWS, lambda s: s.max_by("value"), FIELDS) == [("a", 3), ("a", 5)]
    assert results(ROWS, lambda s: s.max_by("value", lambda value: -value), FIELDS) == [("a", 1), ("b", 4)]
    assert results(ROWS, lambda s: s.min(lambda tup: -tup["value"]), FIELDS) == [("a", 3), ("a", 5)]
    assert results(ROWS, lambda s: s.max(lambda tup: (tup["key"], tup["value"])), FIELDS) == [("b", 2), ("b", 4)]


def test_first_n_takes_the_first_or_those_first_by_a_field() -> None:
    assert results(ROWS, lambda s: s.aggregate(FIELDS, FirstN(2), ["k", "v"]), FIELDS, size=5) == [("a", 1), ("b", 2)]
    best = results(ROWS, lambda s: s.aggregate(FIELDS, FirstN(2, "value", True), ["k", "v"]), FIELDS, size=5)
    assert best == [("a", 5), ("b", 4)]


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=15, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9)), min_size=1, max_size=20),
    st.integers(1, 6),
    st.integers(1, 3),
    st.integers(1, 3),
)
def test_aggregations_of_random_batches_are_those_of_plain_python(
    rows: list[tuple[str, int]], size: int, tasks: int, pending: int
) -> None:
    topology = TridentTopology()
    stream = topology.new_stream("rows", FixedBatchSpout(FIELDS, size, rows))
    spread = stream.shuffle().map(tuple).parallelism_hint(tasks)
    whole = Gathered(
        spread.chained_agg()
        .aggregate(Count(), "count")
        .aggregate("value", Sum(), "sum")
        .aggregate("key", Longest(), "key")
        .chain_end()
    )
    grouped = Gathered(spread.group_by("key").aggregate("value", Sum(), "sum").parallelism_hint(tasks))
    run(topology, {"topology.max.spout.pending": pending})
    expected = batches(rows, size)
    assert sorted(whole.rows) == sorted(
        (len(batch), sum(value for _, value in batch), max(key for key, _ in batch)) for batch in expected
    )
    sums: list[tuple[str, int]] = []
    for batch in expected:
        of: defaultdict[str, int] = defaultdict(int)
        for key, value in batch:
            of[key] += value
        sums += of.items()
    assert sorted(grouped.rows) == sorted(sums)
