"""Windows that keep partial results: which do, that they give the same, and what they cost."""

from __future__ import annotations

import operator
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from topology_bench import Gather, TopologyBench

from storm_on_spark import compile_topology
from storm_on_spark.api.errors import CheckpointError, FailedException, OperationError, ReportedFailedException
from storm_on_spark.plan.compile import compile_graph, place
from storm_on_spark.plan.fingerprint import compare, fingerprint
from storm_on_spark.streams import (
    CombinerAggregator,
    Count,
    Distinct,
    Duration,
    LongSum,
    Max,
    Mean,
    Min,
    PairValueMapper,
    SlidingWindows,
    StreamBuilder,
    TumblingWindows,
)
from storm_on_spark.testing import BoltTester, ListSpout, make_tuple
from storm_on_spark.windowing import BaseWindowedBolt, CountOf
from storm_on_spark.windowing.aggregates.executor import AggregateExecutor

SLIDING = SlidingWindows.of(Duration.seconds(3), Duration.seconds(1))
TUMBLING = TumblingWindows.of(Duration.seconds(1))


class Chars(CombinerAggregator):
    """The different values, in a list that it changes in place."""

    def init(self):
        return []

    def apply(self, accumulator, value):
        accumulator.append(value)
        return accumulator

    def merge(self, first, second):
        first.extend(second)
        return first

    def result(self, accumulator):
        accumulator.sort()  # so that a slide would notice if this were its own list
        return tuple(accumulator)


class Held(Chars):
    """The same, which has to wait for all values of a window."""

    merge = CombinerAggregator.merge


def pairs(builder: StreamBuilder, parallelism: int = 1) -> Any:
    spout = ListSpout([], fields=["k", "v", "ts"])
    return builder.new_stream(spout, PairValueMapper(0, 1), parallelism)


def keeps_partials(program: Any, window: Any = SLIDING) -> bool:
    builder = StreamBuilder()
    program(pairs(builder).window(window)).map(lambda value: value).print()
    (bolt,) = (
        spec.component
        for spec in builder.build().bolts.values()
        if "in windows" in getattr(spec.component, "title", "")
    )
    return isinstance(bolt, AggregateExecutor)


@pytest.mark.parametrize(
    ("program", "sliding", "tumbling"),
    [
        (lambda s: s.count_by_key(), True, True),
        (lambda s: s.count(), True, True),
        (lambda s: s.aggregate_by_key(LongSum()), True, True),
        (lambda s: s.aggregate_by_key(0, operator.add, operator.add), True, True),
        (lambda s: s.aggregate_by_key(Mean()), True, True),
        (lambda s: s.filter(lambda pair: pair[0]).map_values(abs).count_by_key(), True, True),
        (lambda s: s.count_by_key().reduce(max), True, True),
        (lambda s: s.count_by_key().join(s.aggregate_by_key(LongSum())), True, True),
        # Nobody says how two of them become one.
        (lambda s: s.aggregate_by_key(0, operator.add), False, True),
        (lambda s: s.reduce_by_key(max), False, True),
        # Partial results would be all the values.
        (lambda s: s.group_by_key(), False, False),
        (lambda s: s.join(s), False, False),
        # Each window sees each of its values.
        (lambda s: s.map_values(abs), False, False),
        (lambda s: s.peek(print).count_by_key(), False, False),
    ],
)
def test_partial_results_are_kept_where_an_aggregation_can_merge_them(
    program: Any, sliding: bool, tumbling: bool
) -> None:
    assert keeps_partials(program) is sliding
    assert keeps_partials(program, TUMBLING) is tumbling


def test_length_and_slide_are_both_time_or_both_numbers_of_values() -> None:
    assert keeps_partials(lambda s: s.count(), SlidingWindows.of(Count(3), Count(1)))
    assert not keeps_partials(lambda s: s.count(), SlidingWindows.of(Count(3), Duration(1)))
    assert not keeps_partials(lambda s: s.count(), TumblingWindows.of(Count(3)).with_timestamp_field("ts"))


def both(window: Any, parallelism: int) -> tuple[TopologyBench, Gather, Gather]:
    """Returns the same program with partial results and with tuples."""
    builder, results = StreamBuilder(), (Gather(), Gather())
    for aggregator, gather in zip((Chars(), Held()), results, strict=True):
        values = pairs(builder, parallelism).window(window).flat_map_values(lambda n: [n, -n] if n else [])
        values.aggregate_by_key(aggregator).to(gather)
    return TopologyBench(builder.build()), *results


extents = st.tuples(st.integers(1, 6), st.integers(1, 6))
events = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(1, 40)) | st.integers(1, 9) | st.just("restart"),
    max_size=30,
)


@settings(max_examples=25)
@given(extents, st.sampled_from(["time", "count", "event"]), events, st.sampled_from([1, 2]))
@example((3, 1), "time", [(0, 1, 1), 2, (0, 1, 1), 1, "restart", (0, 2, 1)], 1)
def test_they_give_what_windows_with_all_values_give(
    extent: tuple[int, int], kind: str, given_events: list[Any], parallelism: int
) -> None:
    # Without a merge a tumbling window keeps partial results, too.
    length, slide = extent[0] * 2, extent[1] if extent[1] != extent[0] * 2 else 1
    if kind == "count":
        window: Any = SlidingWindows.of(Count(length), Count(slide))
    else:
        window = SlidingWindows.of(Duration(length), Duration(slide))
    if kind == "event":
        window = window.with_timestamp_field("ts").with_lag(Duration(5)).with_watermark_interval(Duration(10))
    bench, partial, held = both(window, parallelism)
    for event in [*given_events, 50]:
        if event == "restart":
            bench.restart()
        elif isinstance(event, int):
            bench.advance(event / 1000)
        else:
            for spout in ("spout1", "spout2"):
                bench.feed(spout, event)
    assert Counter(partial.values) == Counter(held.values)


class Bench:
    """The bolt that has the window of a program."""

    def __init__(self, program: Any, window: Any = SLIDING) -> None:
        builder = StreamBuilder()
        program(pairs(builder).window(window)).to(Gather(), name="gather")
        spec = builder.build()["bolt2"]
        self._source = spec.inputs[0][0]
        self.tester = BoltTester(spec.component, [self.tup(0, 0)])

    def tup(self, key: Any, value: Any, ts: int = 0) -> Any:
        return make_tuple([key, value, ts], ["key", "value", "ts"], self._source.component, self._source.stream)

    def execute(self, *pairs: Any) -> None:
        self.tester.execute(*(self.tup(*pair) for pair in pairs))

    @property
    def emitted(self) -> list[Any]:
        return [tuple(emission.values) for emission in self.tester.collector.emitted]


def test_a_window_keeps_a_record_for_each_key_and_no_values() -> None:
    sizes = []
    for number in (3, 300):
        bench = Bench(lambda s: s.count_by_key())
        bench.execute(*((value % 3, value) for value in range(number)))
        bench.tester.advance(1)
        assert bench.emitted == [(key, number // 3) for key in range(3)]
        assert len(bench.tester.collector.acked) == number
        sizes.append(len(bench.tester.state))
    assert sizes[0] == sizes[1]


def test_values_are_acked_at_once_so_a_window_may_be_longer_than_the_message_timeout() -> None:
    def program(aggregate: str) -> Any:
        builder = StreamBuilder()
        stream = pairs(builder).window(SlidingWindows.of(Duration.hours(1), Duration.seconds(1)))
        getattr(stream, aggregate)().print()
        return builder.build()

    assert compile_topology(program("count_by_key"), {})
    with pytest.raises(ValueError, match=r"more than topology\.message\.timeout\.secs"):
        compile_topology(program("group_by_key"), {})


@pytest.mark.parametrize("event_time", [False, True])
def test_an_operation_before_the_aggregation_may_fail_its_tuple(event_time: bool) -> None:
    def refuse(value: int) -> int:
        if value < 0:
            raise FailedException
        if value == 0:
            raise ReportedFailedException("nothing")
        return value

    window = TUMBLING.with_timestamp_field("ts") if event_time else TUMBLING
    bench = Bench(lambda s: s.map_values(refuse).aggregate_by_key(LongSum()), window)
    bench.execute(("a", 3), ("a", -1), ("a", 0), ("a", 4), ("b", 1, 5000))
    bench.tester.advance(1)
    assert bench.emitted[0][:2] == ("a", 7)
    assert [failed["value"] for failed in bench.tester.collector.failed] == [-1, 0]
    assert [str(error) for error in bench.tester.collector.errors] == ["nothing"]


def test_an_exception_before_the_aggregation_concerns_one_tuple_and_one_after_it_a_window() -> None:
    bench = Bench(lambda s: s.map_values(lambda n: 6 // n).aggregate_by_key(LongSum()))
    bench.execute(("a", 2))
    with pytest.raises(OperationError, match=r"map_values \(test_partial_results.py:\d+\): ZeroDivisionError"):
        bench.execute(("a", 0))
    bench.execute(("a", 3))
    bench.tester.advance(1)
    assert bench.emitted == [("a", 5)]

    bench = Bench(lambda s: s.count_by_key().map(lambda pair: 1 // (pair[1] - 2)))
    bench.execute(("a", 0), ("a", 0))
    with pytest.raises(OperationError, match="ZeroDivisionError"):
        bench.tester.advance(1)
    bench.execute(("a", 0))
    bench.tester.advance(1)
    assert bench.emitted == [(1,)]


def test_several_aggregations_of_one_window_keep_their_results_apart() -> None:
    builder, gather = StreamBuilder(), Gather()
    stream = pairs(builder).window(SLIDING)
    stream.count_by_key().join(stream.aggregate_by_key(LongSum())).to(gather)
    bench = TopologyBench(builder.build())
    bench.feed("spout1", ("a", 5, 0), ("b", 1, 0), ("a", 2, 0))
    bench.advance(1)
    assert sorted(gather.values) == [("a", (2, 7)), ("b", (1, 1))]


def test_a_checkpoint_with_other_windows_is_refused() -> None:
    def printed(program: Any) -> dict[str, Any]:
        builder = StreamBuilder()
        program(pairs(builder).window(SLIDING)).print()
        return fingerprint(place(compile_graph(builder.build()), 1))

    counted = printed(lambda s: s.count_by_key())
    assert compare(counted, printed(lambda s: s.map_values(abs).count_by_key())) == []
    (why,) = compare(counted, printed(lambda s: s.aggregate_by_key(LongSum())))
    assert why == 'bolt "bolt2" kept the state of windows of count_by_key and now of windows of aggregate_by_key'
    (why,) = compare(printed(lambda s: s.group_by_key()), counted)
    assert why == 'bolt "bolt2" kept the state of code of its own and now of windows of count_by_key'


class Counting(BaseWindowedBolt):
    """Does nothing."""

    def execute(self, window):
        """Does nothing."""


@pytest.mark.parametrize("first", [True, False])
def test_a_bolt_that_begins_or_ends_to_aggregate_over_a_checkpoint_is_refused(first: bool) -> None:
    plain = Counting().with_window(Count(3))
    counting = Counting().with_window(Count(3)).with_aggregate(number=CountOf())
    before, after = (counting, plain) if first else (plain, counting)
    tester = BoltTester(before, [make_tuple([1], ["n"])])
    tester.execute(make_tuple([1], ["n"]))
    other = BoltTester(after, [make_tuple([1], ["n"])])
    with pytest.raises(CheckpointError, match="hold something else than now"):
        other.bolt.init_state(tester.state)


@pytest.mark.parametrize(
    ("aggregator", "function"),
    [
        (Min(), min),
        (Max(), max),
        (Mean(), lambda values: sum(values) / len(values)),
        (Distinct(), lambda values: len(set(values))),
    ],
)
def test_aggregators_of_numbers_are_those_of_the_window(aggregator: CombinerAggregator, function: Any) -> None:
    builder, gather = StreamBuilder(), Gather()
    window = SlidingWindows.of(Duration.seconds(2), Duration.seconds(1))
    pairs(builder).window(window).aggregate_by_key(aggregator).to(gather)
    bench = TopologyBench(builder.build())
    slides = [[3, 5, 3, 5], [4], [1, 4], [4]]
    for slide in slides:
        bench.feed("spout1", *(("a", value, 0) for value in slide))
        bench.advance(1)
    held = [slides[0], *([*first, *second] for first, second in pairwise(slides))]
    assert gather.values == [("a", function(values)) for values in held]
