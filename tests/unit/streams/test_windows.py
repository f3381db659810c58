"""Windows of streams: what each result is made of, and in which bolt and task."""

from __future__ import annotations

import operator
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from topology_bench import Gather, TopologyBench

from storm_on_spark import InvalidTopologyError, Topology
from storm_on_spark.api.errors import OperationError
from storm_on_spark.streams import (
    Count,
    Duration,
    PairValueMapper,
    SlidingWindows,
    Stream,
    StreamBuilder,
    TumblingWindows,
    ValueMapper,
)
from storm_on_spark.testing import ListSpout

THREE = TumblingWindows.of(Count(3))
SECOND = TumblingWindows.of(Duration.seconds(1))


def values(builder: StreamBuilder, parallelism: int = 1) -> Stream[Any]:
    return builder.new_stream(ListSpout([]), ValueMapper(0), parallelism)


def pairs(builder: StreamBuilder, parallelism: int = 1) -> Any:
    return builder.new_stream(ListSpout([], fields=["k", "v"]), PairValueMapper(0, 1), parallelism)


def bench_of(builder: StreamBuilder, stream: Stream[Any]) -> tuple[TopologyBench, Gather]:
    gather = Gather()
    stream.to(gather, name="gather")
    return TopologyBench(builder.build()), gather


def in_threes(program: Any, items: list[Any]) -> list[Any]:
    builder = StreamBuilder()
    bench, gather = bench_of(builder, program(values(builder).window(THREE)))
    bench.feed("spout1", *([item] for item in items))
    return gather.values


def titles(topology: Topology, but: str = "") -> list[tuple[int, str]]:
    return [(spec.parallelism, spec.component.title) for name, spec in topology.bolts.items() if name != but]


def test_an_aggregate_has_one_result_for_a_window() -> None:
    numbers = list(range(8))
    assert in_threes(lambda s: s.count(), numbers) == [3, 3]
    assert in_threes(lambda s: s.reduce(operator.add), numbers) == [3, 12]
    assert in_threes(lambda s: s.aggregate(1, operator.mul), numbers) == [0, 60]


def test_operations_between_window_and_aggregate_are_part_of_the_window() -> None:
    assert in_threes(lambda s: s.filter(lambda n: n % 2 == 1).count(), list(range(6))) == [1, 2]
    assert in_threes(lambda s: s.map(lambda n: -n), [1, 2, 3, 4]) == [-1, -2, -3]


def test_a_window_in_which_nothing_is_left_has_no_result() -> None:
    assert in_threes(lambda s: s.filter(lambda n: n > 2).count(), [0, 1, 2, 3, 4, 5]) == [3]


def test_each_key_has_one_result_for_a_window() -> None:
    counted = in_threes(lambda s: s.map_to_pair(lambda w: (w, 1)).count_by_key(), ["a", "b", "a", "b", "b", "b"])
    assert counted == [("a", 2), ("b", 1), ("b", 3)]


def test_aggregates_of_aggregates_are_of_the_same_window() -> None:
    def most(s: Any) -> Any:
        return s.map_to_pair(lambda w: (w, 1)).count_by_key().reduce(lambda a, b: max(a, b, key=lambda p: p[1]))

    assert in_threes(most, ["a", "b", "a", "b", "b", "a"]) == [("a", 2), ("b", 2)]


def test_group_by_key_and_window_and_reduce_by_key_and_window() -> None:
    builder = StreamBuilder()
    stream = pairs(builder)
    grouped, reduced = Gather(), Gather()
    stream.group_by_key_and_window(SlidingWindows.of(Count(3), Count(2))).to(grouped)
    stream.reduce_by_key_and_window(operator.add, THREE).to(reduced)
    TopologyBench(builder.build()).feed("spout1", ("a", 1), ("a", 2), ("b", 3), ("a", 4))
    assert grouped.values == [("a", [1, 2]), ("a", [2, 4]), ("b", [3])]
    assert reduced.values == [("a", 3), ("b", 3)]


def test_windows_of_time_end_with_their_time() -> None:
    builder = StreamBuilder()
    bench, gather = bench_of(builder, values(builder).window(SECOND).count())
    bench.feed("spout1", [1], [2])
    assert gather.values == []
    bench.advance(1)
    assert gather.values == [2]
    bench.advance(1)
    bench.feed("spout1", [3])
    bench.restart()
    bench.advance(1)
    assert gather.values == [2, 1]


def test_windows_by_the_time_of_events_take_it_from_the_spouts_tuples() -> None:
    builder = StreamBuilder()
    window = TumblingWindows.of(Duration.seconds(10)).with_timestamp_field("ts").with_lag(Duration.seconds(5))
    words = builder.new_stream(ListSpout([], fields=["word", "ts"]), ValueMapper("word"))
    lower = words.map(str.lower).repartition(2).map_to_pair(lambda w: (w, 1)).repartition(1)
    bench, gather = bench_of(builder, lower.window(window).count_by_key())
    bench.feed("spout1", ("A", 1000), ("b", 11_000), ("a", 9000), ("b", 26_000), ("c", 27_000))
    bench.advance(1)
    assert gather.values == [("a", 2), ("b", 1)]


def test_a_result_has_the_time_at_which_its_window_ends() -> None:
    builder = StreamBuilder()
    window = TumblingWindows.of(Duration.seconds(10)).with_timestamp_field("ts")
    numbers = builder.new_stream(ListSpout([], fields=["n", "ts"]), ValueMapper("n")).window(window).count()
    bench, gather = bench_of(
        builder, numbers.repartition(2).window(replace(window, length=Duration.seconds(20))).count()
    )
    bench.feed("spout1", (1, 1000), (2, 2000), (3, 11_000), (4, 50_000))
    bench.advance(2)
    # 20 s that slide by 10 s, over counts at 10, 20 and 50 s.
    assert gather.values == [1, 2, 1, 1]


LEFT, RIGHT = [(1, "a"), (1, "b"), (2, "c")], [(1, "x"), (1, "y"), (3, "z")]
INNER = [(1, (left, right)) for left in "ab" for right in "xy"]


@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize(
    ("method", "alone"),
    [
        ("join", []),
        ("left_outer_join", [(2, ("c", None))]),
        ("right_outer_join", [(3, (None, "z"))]),
        ("full_outer_join", [(2, ("c", None)), (3, (None, "z"))]),
    ],
)
def test_joins_in_a_window_are_those_of_sql(method: str, alone: list[Any], parallelism: int) -> None:
    # As in Storm the window of one side holds for both. There a second value of a key finds no partner (STORM-2153).
    builder = StreamBuilder()
    left, right = pairs(builder, parallelism), pairs(builder, parallelism)
    bench, gather = bench_of(builder, getattr(left.window(SECOND), method)(right))
    for _ in range(2):
        bench.feed("spout1", *LEFT)
        bench.feed("spout2", *RIGHT)
        bench.advance(1)
    assert Counter(gather.values) == Counter([*INNER, *alone] * 2)


def test_co_group_by_key_in_a_window() -> None:
    builder = StreamBuilder()
    bench, gather = bench_of(builder, pairs(builder).window(SECOND).co_group_by_key(pairs(builder)))
    bench.feed("spout1", *LEFT)
    bench.feed("spout2", *RIGHT)
    bench.advance(1)
    assert gather.values == [(1, (["a", "b"], ["x", "y"])), (2, (["c"], [])), (3, ([], ["z"]))]


@pytest.mark.parametrize("parallelism", [1, 2])
def test_results_for_the_same_window_meet_in_it(parallelism: int) -> None:
    builder = StreamBuilder()
    left = pairs(builder, parallelism).window(SECOND).count_by_key()
    right = pairs(builder, parallelism).window(SECOND).count_by_key()
    bench, gather = bench_of(builder, left.join(right))
    for expected in ([(1, (2, 2))], [(1, (2, 2))] * 2):
        bench.feed("spout1", *LEFT)
        bench.feed("spout2", *RIGHT)
        bench.advance(1)
        assert gather.values == expected


def test_a_windowed_stream_updates_state_value_by_value() -> None:
    builder = StreamBuilder()
    state = pairs(builder).window(THREE).reduce_by_key(operator.add).update_state_by_key(0, operator.add)
    bench, gather = bench_of(builder, state.to_pair_stream())
    bench.feed("spout1", ("a", 1), ("a", 2), ("b", 3), ("a", 4), ("b", 5), ("b", 6))
    assert gather.values == [("a", 3), ("b", 3), ("a", 7), ("b", 14)]


def test_state_is_queried_with_the_values_of_a_window() -> None:
    builder = StreamBuilder()
    state = pairs(builder).update_state_by_key(0, operator.add)
    bench, gather = bench_of(builder, values(builder).window(TumblingWindows.of(Count(2))).state_query(state))
    bench.feed("spout1", ("a", 1))
    bench.feed("spout2", ["a"])
    assert gather.values == []
    bench.feed("spout2", ["b"])
    assert gather.values == [("a", 1), ("b", None)]


def test_with_several_tasks_values_are_gathered_where_they_are_aggregated() -> None:
    builder = StreamBuilder()
    values(builder, 3).window(SECOND).map_to_pair(lambda w: (w, 1)).count_by_key().print()
    assert titles(builder.build()) == [(3, "map → map_to_pair"), (3, "count_by_key → print, in windows")]
    builder = StreamBuilder()
    values(builder, 3).window(SECOND).count().print()
    assert titles(builder.build()) == [(3, "map"), (1, "count → print, in windows")]


def test_with_several_tasks_aggregates_of_aggregates_are_made_in_one() -> None:
    builder = StreamBuilder()
    counted = values(builder, 3).window(SECOND).map_to_pair(lambda w: (w, 1)).count_by_key()
    bench, gather = bench_of(builder, counted.map(lambda pair: pair[1]).reduce(max))
    assert titles(builder.build(), but="gather") == [
        (3, "map → map_to_pair"),
        (1, "count_by_key → map → reduce, in windows"),
    ]
    bench.feed("spout1", ["a"], ["b"], ["a"], ["c"], ["a"])
    bench.advance(1)
    assert gather.values == [3]


def test_an_exception_in_a_window_leaves_nothing_of_it() -> None:
    builder = StreamBuilder()
    grouped = values(builder).window(THREE).map_to_pair(lambda n: (0, 6 // n)).group_by_key()
    bench, gather = bench_of(builder, grouped)
    with pytest.raises(OperationError, match=r"map_to_pair \(test_windows.py:\d+\): ZeroDivisionError"):
        bench.feed("spout1", [1], [1], [0])
    bench.feed("spout1", [1], [2], [3])
    assert gather.values == [(0, [6, 3, 2])]


def test_what_makes_no_sense_is_refused() -> None:
    builder = StreamBuilder()
    windowed = values(builder).window(THREE)
    with pytest.raises(InvalidTopologyError, match="has a window already"):
        windowed.window(SECOND)
    with pytest.raises(InvalidTopologyError, match="has to come between a window and a bolt"):
        windowed.to(Gather())
    for wrong in (3, Count(0)):
        with pytest.raises(InvalidTopologyError, match="a positive Count or Duration"):
            TumblingWindows.of(wrong)  # type: ignore[arg-type]
    timed = StreamBuilder()
    values(timed).window(SECOND.with_timestamp_field("ts")).count().print()
    with pytest.raises(InvalidTopologyError, match='takes its time from the field "ts", but the tuples of "spout1"'):
        timed.build()
    pairs(builder).window(THREE).join(pairs(builder).window(SECOND)).print()
    with pytest.raises(InvalidTopologyError, match="values of two different windows meet here"):
        builder.build()


@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 3), st.integers(0, 9)) | st.sampled_from(["end", "restart"])),
    st.sampled_from([1, 2]),
)
def test_joins_and_aggregates_of_random_streams_are_those_of_an_oracle(events: list[Any], parallelism: int) -> None:
    builder = StreamBuilder()
    left, right = pairs(builder, parallelism), pairs(builder, parallelism)
    joined, counted = Gather(), Gather()
    left.window(SECOND).full_outer_join(right).to(joined)
    left.union(right).window(SECOND).aggregate_by_key(0, operator.add).to(counted)
    bench = TopologyBench(builder.build())
    rows: tuple[list[Any], list[Any]] = ([], [])
    expected_joined: Counter[Any] = Counter()
    expected_counted: Counter[Any] = Counter()
    for event in [*events, "end"]:
        if event == "restart":
            bench.restart()
        elif event == "end":
            bench.advance(1)
            for key in {key for side in rows for key, _ in side}:
                sides = [[value for found, value in side if found == key] for side in rows]
                expected_joined.update((key, (a, b)) for a in sides[0] or [None] for b in sides[1] or [None])
                expected_counted[key, sum(map(sum, sides))] += 1
            rows = ([], [])
        else:
            side, key, value = event
            bench.feed(f"spout{side + 1}", (key, value))
            rows[side].append((key, value))
    assert Counter(joined.values) == expected_joined
    assert Counter(counted.values) == expected_counted
