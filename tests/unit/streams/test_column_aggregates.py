"""Aggregations of columns, in windows and without: where there are any, and that they give what tuples give."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from topology_bench import Gather, TopologyBench

from storm_on_spark.api.config import effective_conf
from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.plan.compile import compile_graph
from storm_on_spark.runtime.in_process import InProcessTopology
from storm_on_spark.streams import (
    Count,
    Distinct,
    Duration,
    LongSum,
    Max,
    Mean,
    Min,
    SlidingWindows,
    StreamBuilder,
    TumblingWindows,
)
from storm_on_spark.testing import BoltTester, ListSpout
from storm_on_spark.windowing import BatchWindowedBolt, CountOf, SumOf
from storm_on_spark.windowing.columnar.executor import BatchWindowExecutor
from storm_on_spark.windowing.columnar.reduction import Reduction

SECOND = TumblingWindows.of(Duration.seconds(1))
KEY, VALUE = pc.field("word"), pc.field("n")


def tuples(builder: StreamBuilder, rows: Any = (), parallelism: int = 1) -> Any:
    return builder.new_stream(ListSpout(list(rows), fields=["word", "n", "ts"]), None, parallelism)


def windows_of(program: Any) -> list[tuple[str, bool]]:
    """Returns titles of the bolts with windows, and whether these have columns."""
    builder = StreamBuilder()
    program(tuples(builder))
    bolts = [spec.component for spec in builder.build().bolts.values()]
    found = [(getattr(bolt, "title", ""), isinstance(bolt, BatchWindowExecutor)) for bolt in bolts]
    return [each for each in found if "in windows" in each[0]]


def test_aggregations_that_arrow_has_are_of_columns() -> None:
    pairs: Any = lambda s: s.map_to_pair(KEY, VALUE).window(SECOND)  # noqa: E731
    columnar = [("count_by_key, in windows, on columns", True)]
    assert windows_of(lambda s: pairs(s).count_by_key().print()) == columnar
    assert (
        windows_of(lambda s: s.map_to_pair(KEY, VALUE).repartition(3).window(SECOND).count_by_key().print()) == columnar
    )
    assert windows_of(lambda s: s.filter(VALUE > 1).window(SECOND).count().print()) == [
        ("count, in windows, on columns", True)
    ]
    # What follows on columns is in the same bolt, and what follows on values is not.
    assert windows_of(
        lambda s: pairs(s).aggregate_by_key(LongSum()).filter(pc.field("value") > 3).map(str).print()
    ) == [("aggregate_by_key → filter, in windows, on columns", True)]


@pytest.mark.parametrize(
    "program",
    [
        # Arrow has no such aggregation.
        lambda s: s.map_to_pair(KEY, VALUE).window(SECOND).aggregate_by_key(0, lambda a, b: a - b).print(),
        lambda s: s.map_to_pair(KEY, VALUE).window(SECOND).reduce_by_key(max).print(),
        # The values are tuples, and no numbers.
        lambda s: s.filter(VALUE > 1).window(SECOND).aggregate(LongSum()).print(),
        # Values of functions come one by one.
        lambda s: s.map_to_pair(KEY, VALUE).map_values(abs).window(SECOND).count_by_key().print(),
        # Only a bolt that has all results of a window can aggregate them.
        lambda s: s.map_to_pair(KEY, VALUE).window(SECOND).count_by_key().reduce(max).print(),
        lambda s: s.map_to_pair(KEY, VALUE).window(SlidingWindows.of(Count(2), Duration(1))).count_by_key().print(),
        lambda s: (
            s.map_to_pair(KEY, VALUE)
            .window(SECOND.with_timestamp_field("ts").with_late_tuple_stream("late"))
            .count_by_key()
            .print()
        ),
    ],
)
def test_other_windows_are_of_tuples(program: Any) -> None:
    assert [columns for _, columns in windows_of(program)] == [False]


extents = st.integers(1, 6)
events = st.lists(
    st.tuples(st.sampled_from(["a", "b", None]), st.integers(-5, 5), st.integers(1, 40))
    | st.integers(1, 9)
    | st.just("restart"),
    max_size=14,
)


@settings(max_examples=10)
@given(
    st.integers(1, 6), st.integers(1, 6), st.sampled_from(["time", "count", "event"]), events, st.sampled_from([1, 2])
)
def test_they_give_what_windows_of_tuples_give(
    length: int, slide: int, kind: str, given_events: list[Any], parallelism: int
) -> None:
    extent: Any = Count if kind == "count" else Duration
    window = SlidingWindows.of(extent(length), extent(slide))
    if kind == "event":
        window = window.with_timestamp_field("ts").with_lag(Duration(5)).with_watermark_interval(Duration(10))
    builder, gathers = StreamBuilder(), [Gather() for _ in range(12)]
    # Each in turn: a bolt that gets a stream twice would take a tuple from one task and a row from another.
    pairs = tuples(builder, parallelism=parallelism).map_to_pair(KEY, VALUE)
    for stream, aggregates in ((pairs, gathers[:6]), (pairs.map_values(lambda value: value), gathers[6:])):
        windowed = stream.window(window)
        windowed.count_by_key().to(aggregates[0])
        windowed.aggregate_by_key(LongSum()).to(aggregates[1])
        for aggregator, gather in zip((Min(), Max(), Mean()), aggregates[3:], strict=True):
            windowed.aggregate_by_key(aggregator).to(gather)
        if kind != "count":  # several tasks count differently, as each has a number of its own
            windowed.count().to(aggregates[2])
    topology = builder.build()
    bench = TopologyBench(topology)
    for event in [*given_events, 50]:
        if event == "restart":
            bench.restart()
        elif isinstance(event, int):
            bench.advance(event / 1000)
        else:
            bench.feed("spout1", event)
    for columns, values in zip(gathers[:6], gathers[6:], strict=True):
        assert Counter(columns.values) == Counter(values.values)


def test_results_have_the_time_of_their_window() -> None:
    builder, gather = StreamBuilder(), Gather()
    window = TumblingWindows.of(Duration(10)).with_timestamp_field("ts").with_watermark_interval(Duration(10))
    counts = tuples(builder).map_to_pair(KEY, VALUE).window(window).count_by_key()
    counts.map_values(lambda value: value).window(window).count().to(gather)
    bench = TopologyBench(builder.build())
    bench.feed("spout1", ("a", 1, 3), ("b", 1, 4), ("a", 1, 15), ("a", 1, 25), ("a", 1, 99))
    bench.advance(1)
    bench.advance(1)
    assert gather.values == [2, 1, 1]


def test_types_of_record_batches_may_differ() -> None:
    builder, gather = StreamBuilder(), Gather()
    tuples(builder).map_to_pair(KEY, VALUE).window(TumblingWindows.of(Count(4))).aggregate_by_key(LongSum()).to(gather)
    bench = TopologyBench(builder.build())
    bench.feed("spout1", (None, 1, 0), ("a", None, 0), ("a", 2, 0), ("a", 0.5, 0))
    assert gather.values == [(None, 1.0), ("a", 2.5)]


def test_sums_that_do_not_fit_are_errors_and_large_ones_that_fit_are_exact() -> None:
    sums = Reduction(["k"], {"sum": SumOf("v")})
    large = pa.table({"k": ["a", "b", "b"], "v": [2**62, -(2**62), 2**61]})
    assert sums.result(sums.partial(large))["sum"].to_pylist() == [2**62, -(2**61)]
    with pytest.raises(OverflowError, match="does not fit into 64 bits"):
        sums.partial(pa.table({"k": ["a", "a"], "v": [2**62, 2**62]}))
    with pytest.raises(OverflowError, match="does not fit into 64 bits"):
        sums.merged(pa.concat_tables([sums.partial(large)] * 2))


def test_a_topology_with_windows_of_columns_ends() -> None:
    builder, gather = StreamBuilder(), Gather()
    rows = [("a", n, n) for n in range(6)]
    pairs = tuples(builder, rows).map_to_pair(KEY, VALUE)
    pairs.window(TumblingWindows.of(Count(3))).aggregate_by_key(LongSum()).map(lambda pair: pair[1]).to(gather)
    info = InProcessTopology(compile_graph(builder.build(), effective_conf({})), "test").run()
    assert (info.status, info.acked, info.failed) == ("COMPLETED", 6, 0)
    assert gather.values == [3, 12]


class Sums(BatchWindowedBolt):
    """Emits nothing."""

    def execute_window(self, window, collector):
        """Emits nothing."""


def test_a_checkpoint_with_other_aggregations_is_refused() -> None:
    window = Sums().with_window(Count(4)).with_aggregate(sum=SumOf("n"))
    tester = BoltTester(window)
    tester.execute(pa.record_batch({"n": [1]}))
    other = BoltTester(Sums().with_window(Count(4)).with_aggregate(number=CountOf()))
    with pytest.raises(CheckpointError, match="or other aggregations"):
        other.bolt.init_state(tester.state)


# --- without a window -------------------------------------------------------------------------------------------------


def test_aggregations_without_a_window_are_of_columns_too() -> None:
    def titles(program: Any, parallelism: int = 1) -> list[str]:
        builder = StreamBuilder()
        program(tuples(builder, parallelism=parallelism).map_to_pair(KEY, VALUE))
        return [getattr(spec.component, "title", "") for spec in builder.build().bolts.values()]

    assert titles(lambda s: s.count_by_key().filter(pc.field("value") > 1).print()) == [
        "map_to_pair → count_by_key → filter, on columns",
        "print",
    ]
    assert titles(lambda s: s.aggregate_by_key(Mean()).print(), 2) == [
        "map_to_pair, on columns",
        "aggregate_by_key, on columns",
        "print",
    ]
    # Arrow has no sketch of different values, and values of functions come one by one.
    assert titles(lambda s: s.aggregate_by_key(Distinct()).print())[-1] == "aggregate_by_key → print"
    assert titles(lambda s: s.map_values(abs).count_by_key().print())[-1] == "map_values → count_by_key → print"


values = st.lists(
    st.tuples(st.sampled_from(["a", "b", None]), st.integers(-5, 5) | st.sampled_from([2**62, 0.5, 1e300]), st.just(0)),
    max_size=12,
)


@settings(max_examples=12)
@given(st.lists(values | st.just("restart"), max_size=6), st.sampled_from([1, 2]))
def test_without_a_window_they_give_what_single_values_give(fed: list[Any], parallelism: int) -> None:
    builder, gathers = StreamBuilder(), [Gather() for _ in range(12)]
    pairs = tuples(builder, parallelism=parallelism).map_to_pair(KEY, VALUE)
    # Python's integers know no limit, Arrow's do.
    small = pairs.filter((pc.field("value") < 100) & (pc.field("value") > -100))
    for first, half in ((0, lambda s: s), (6, lambda s: s.map_values(lambda value: value))):
        half(pairs).count_by_key().to(gathers[first])
        half(pairs).count().to(gathers[first + 1])
        for at, aggregator in enumerate((LongSum(), Min(), Max(), Mean()), first + 2):
            half(small).aggregate_by_key(aggregator).to(gathers[at])
    bench = TopologyBench(builder.build())
    for each in fed:
        if each == "restart":
            bench.restart()
        elif each:
            bench.feed("spout1", *each)
    for columns, single in zip(gathers[:6], gathers[6:], strict=True):
        assert Counter(columns.values) == Counter(single.values)


def test_nulls_are_not_added_and_sums_may_be_large() -> None:
    builder, gathers = StreamBuilder(), [Gather() for _ in range(3)]
    pairs = tuples(builder).map_to_pair(KEY, VALUE)
    for aggregator, gather in zip((LongSum(), Min(), Mean()), gathers, strict=True):
        pairs.aggregate_by_key(aggregator).to(gather)
    bench = TopologyBench(builder.build())
    bench.feed("spout1", ("a", None, 0), ("a", 2**62, 0), ("b", 1, 0), ("a", None, 0), ("a", -1, 0))
    bench.feed("spout1", ("b", -(2**62), 0), ("b", 0, 0))
    big = 2**62
    assert gathers[0].values == [
        *(("a", None), ("a", big), ("b", 1), ("a", big), ("a", big - 1)),
        *(("b", 1 - big), ("b", 1 - big)),
    ]
    assert gathers[1].values[-3:] == [("a", -1), ("b", -big), ("b", -big)]
    assert gathers[2].values[0] == ("a", None)


def test_running_results_are_anchored_to_their_rows_and_survive_with_the_engine() -> None:
    builder, gather = StreamBuilder(), Gather()
    rows = [(word, n, 0) for n, word in enumerate("abcab" * 20)]
    pairs = tuples(builder, rows, 2).filter(VALUE > 9).map_to_pair(KEY, VALUE)
    pairs.aggregate_by_key(LongSum()).map(lambda pair: pair).to(gather)
    info = InProcessTopology(compile_graph(builder.build(), effective_conf({})), "test").run()
    assert (info.status, info.acked, info.failed) == ("COMPLETED", 100, 0)
    largest = {key: max(value for of, value in gather.values if of == key) for key in "abc"}
    assert largest == {key: sum(n for word, n, _ in rows if word == key and n > 9) for key in "abc"}
