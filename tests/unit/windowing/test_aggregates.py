"""Windows that keep partial results give what a pass over all tuples of the window gives."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from storm_on_spark import BaseStatefulWindowedBolt, BaseWindowedBolt, Count, Duration, Fields, InvalidTopologyError
from storm_on_spark.testing import BoltTester, make_tuple
from storm_on_spark.windowing import CountOf, DistinctOf, MaxOf, MeanOf, MinOf, SumOf

FIELDS = ["key", "number", "time"]
AGGREGATES = {
    "count": CountOf(),
    "sum": SumOf("number"),
    "least": MinOf("number"),
    "most": MaxOf("number"),
    "mean": MeanOf("number"),
    "distinct": DistinctOf("number"),
}


class OverTuples(BaseWindowedBolt):
    """Goes over the tuples of each window."""

    def prepare(self, conf, context, collector):
        self.collector = collector

    def execute(self, window):
        numbers = defaultdict(list)
        for tup in window:
            numbers[tup["key"]].append(tup["number"])
        self.collector.emit([{key: _results(values) for key, values in numbers.items()}, window.end])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("results", "end"))


class OverResults(OverTuples):
    """Emits the results of each window, all of them and as what changed says."""

    def prepare(self, conf, context, collector):
        self.collector, self.known = collector, {}

    def execute(self, window):
        for key, results in window.changed:
            self.known[key] = results
        known = {key: results for key, results in self.known.items() if results is not None}
        assert dict(window) == known
        assert all(window.get(key) == results for key, results in self.known.items())
        self.collector.emit([known, window.end])


def _results(values: list[int]) -> dict[str, Any]:
    mean = sum(values) / len(values)
    least, most = min(values), max(values)
    kinds = len(set(values))
    return dict(zip(AGGREGATES, [len(values), sum(values), least, most, mean, kinds], strict=True))


def both_of(window: Any) -> list[BoltTester]:
    sources = [make_tuple([0, 0, 0], FIELDS, source) for source in ("a", "b")]
    return [
        BoltTester(window(OverTuples()), sources),
        BoltTester(window(OverResults()).with_aggregate(by="key", aggregates=AGGREGATES), sources),
    ]


def play(both: list[BoltTester], steps: list[Any]) -> None:
    time = 30
    for at, step in enumerate(steps):
        for tester in both:
            if isinstance(step, int):
                tester.advance(step / 1000)
            elif step == "restart":
                tester.restart()
            elif step != "gap":
                key, number, disorder = step
                stamp = max(1, time + disorder)
                tester.execute(make_tuple([key, number, stamp], FIELDS, "ab"[at % 2]))
        time += 1000 if step == "gap" else 3
    tuples, results = both
    assert results.collector.values() == tuples.collector.values()


steps = st.lists(
    st.one_of(
        st.tuples(st.integers(0, 3), st.integers(-9, 9), st.integers(-12, 12)),
        st.tuples(st.integers(0, 3), st.integers(-9, 9), st.integers(-12, 12)),
        st.integers(1, 25),
        st.just("restart"),
        st.just("gap"),
    ),
    max_size=60,
)


@given(st.integers(1, 30), st.integers(1, 30), steps)
@example(1, 1, [(1, 0, 0), 2, (0, 0, 0), 1])  # what leaves amid empty windows is told by the next one
def test_of_time(length: int, slide: int, steps: list[Any]) -> None:
    play(both_of(lambda bolt: bolt.with_window(Duration(length), Duration(slide))), steps)


@given(st.integers(1, 12), st.integers(1, 12), steps)
def test_of_numbers_of_tuples(length: int, slide: int, steps: list[Any]) -> None:
    play(both_of(lambda bolt: bolt.with_window(Count(length), Count(slide))), steps)


@given(st.integers(1, 30), st.integers(1, 30), st.integers(0, 10), steps)
def test_of_the_tuples_time(length: int, slide: int, lag: int, steps: list[Any]) -> None:
    def window(bolt: Any) -> Any:
        bolt = bolt.with_window(Duration(length), Duration(slide)).with_timestamp_field("time")
        return bolt.with_lag(Duration(lag)).with_watermark_interval(Duration(10))

    play(both_of(window), steps)


def test_a_window_without_key_has_one_result_and_its_tuples_are_acked_at_once() -> None:
    class Show(OverTuples):
        def execute(self, window):
            self.collector.emit([window.result, window.end])

    bolt = Show().with_window(Count(3), Count(2)).with_aggregate(sum=SumOf("number"))
    tester = BoltTester(bolt)
    given = [make_tuple([0, number, 0], FIELDS) for number in (1, 2, 3, 4, 5)]
    tester.execute(*given)
    assert [results for results, _ in tester.collector.values()] == [{"sum": 3}, {"sum": 9}]
    assert tester.collector.acked == given
    assert not any(emission.anchors for emission in tester.collector.emitted)


def test_sums_of_floats_do_not_drift() -> None:
    class Show(OverTuples):
        def execute(self, window):
            self.collector.emit([window.result["sum"], window.end])

    tester = BoltTester(Show().with_window(Count(2), Count(1)).with_aggregate(sum=SumOf("number")))
    tester.execute(*(make_tuple([0, number, 0], FIELDS) for number in (1e16, 1.0, 0.1, 0.2)))
    assert [total for total, _ in tester.collector.values()] == [1e16, 1e16 + 1.0, 1.0 + 0.1, 0.1 + 0.2]


@given(st.integers(0, 5000), st.integers(1, 3))
def test_the_sketch_is_off_by_few_per_cent(kinds: int, merged: int) -> None:
    sketch = DistinctOf("value")
    partials = [sketch.of((part, number)) for part in range(merged) for number in range(kinds // merged)]
    if partials:
        total = partials[0]
        for partial in partials[1:]:
            total = sketch.merge(total, partial)
        true = len(partials)
        assert abs(sketch.result(total) - true) <= max(2, 5 * 1.04 / math.sqrt(4096) * true)


@pytest.mark.parametrize("window", [(Count(3), Duration(3)), (Duration(3), Count(3))])
def test_length_and_slide_must_be_of_one_kind(window: Any) -> None:
    with pytest.raises(InvalidTopologyError, match="can't be kept by slides"):
        BoltTester(OverResults().with_window(*window).with_aggregate(number=CountOf()))


def test_a_window_of_numbers_of_tuples_by_their_time_is_refused() -> None:
    bolt = OverResults().with_window(Count(3), Count(3)).with_timestamp_field("time")
    with pytest.raises(InvalidTopologyError, match="can't be kept by slides"):
        BoltTester(bolt.with_aggregate(number=CountOf()))


def test_a_stateful_window_has_no_aggregations() -> None:
    class Stateful(BaseStatefulWindowedBolt):
        def init_state(self, state): ...

        def execute(self, window): ...

    with pytest.raises(InvalidTopologyError, match="has no state of its own"):
        BoltTester(Stateful().with_window(Count(3)).with_aggregate(number=CountOf()))


def test_a_window_with_aggregations_may_be_longer_than_the_message_timeout() -> None:
    BoltTester(OverResults().with_tumbling_window(Duration.hours(1)).with_aggregate(number=CountOf()))
