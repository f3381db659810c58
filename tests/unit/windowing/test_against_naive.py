"""Windows hold what a naive implementation of Storm's rules finds, over random streams and restarts."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from naive import Evaluated, Naive

from storm_on_spark import BaseWindowedBolt, Count, Duration, Fields
from storm_on_spark.testing import BoltTester, make_tuple

counts = st.integers(1, 7).map(Count)
durations = st.integers(1, 40).map(Duration)
extents = st.one_of(counts, durations)


class Show(BaseWindowedBolt):
    def prepare(self, conf, context, collector):
        self.collector = collector

    def execute(self, window):
        self.collector.emit(
            [*([tup["number"] for tup in part] for part in (window, window.new, window.expired)), window.end]
        )

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("all", "new", "expired", "end"))


class Twins:
    """A tester, and what the naive implementation says."""

    def __init__(self, length: Any, slide: Any, streams: int = 0, lag: int = 0) -> None:
        bolt = Show().with_window(length, slide)
        if streams:
            bolt = bolt.with_timestamp_field("time").with_lag(Duration(lag)).with_watermark_interval(Duration(10))
        self.sources = [f"source{stream}" for stream in range(max(1, streams))]
        self.tester = BoltTester(bolt, [self.tuple(-1, 0, stream) for stream in range(max(1, streams))])
        self.naive = Naive(length, slide, streams, lag)
        self.number = 0

    def tuple(self, number: int, time: int, stream: int = 0) -> Any:
        return make_tuple([number, time], ["number", "time"], self.sources[stream])

    def check(self) -> None:
        shown = [Evaluated(*values) for values in self.tester.collector.values()]
        if shown and shown[0].end is None:
            shown = [window._replace(end=0) for window in shown]
        assert shown == self.naive.done
        assert [tup["number"] for tup in self.tester.collector.acked] == sorted_as(
            self.naive.gone + self.naive.late, self.tester.collector.acked
        )


def sorted_as(numbers: list[int], acked: list[Any]) -> list[int]:
    """The numbers in the order in which they were acked, if they are the same ones."""
    order = {tup["number"]: at for at, tup in enumerate(acked)}
    assert len(order) == len(acked), "a tuple was acked twice"
    return sorted(numbers, key=lambda number: order.get(number, -1))


@given(extents, extents, st.lists(st.tuples(st.integers(0, 15), st.integers(0, 9)), max_size=40))
@example(Duration(10), Duration(10), [(0, 1), (10, 1), (10, 1), (10, 0), (10, 0)])
def test_windows_by_the_time_at_which_tuples_come(length: Any, slide: Any, steps: list[tuple[int, int]]) -> None:
    tested = Twins(length, slide)
    now = 0
    for wait, size in steps:
        for _ in range(wait):
            now += 1
            tested.tester.advance(0.001)
            tested.naive.time(now)
        tuples = [tested.tuple(tested.number + at, 0) for at in range(size)]
        tested.tester.execute(*tuples)
        for _ in tuples:
            tested.naive.add(tested.number, now if tested.tester.context.clock_ms is not None else 0)
            tested.number += 1
        if size == 9:
            tested.tester.restart()
    tested.check()


@given(
    extents,
    extents,
    st.integers(1, 3),
    st.integers(0, 20),
    st.lists(
        st.one_of(
            st.tuples(st.integers(0, 2), st.integers(-25, 25)), st.just("watermark"), st.just("restart"), st.just("gap")
        ),
        max_size=80,
    ),
)
def test_windows_by_the_tuples_own_time(length: Any, slide: Any, streams: int, lag: int, steps: list[Any]) -> None:
    tested = Twins(length, slide, streams, lag)
    time = 30
    for step in steps:
        if step == "watermark":
            tested.tester.advance(0.01)
            tested.naive.move_on()
        elif step == "restart":
            tested.tester.restart()
        elif step == "gap":
            time += 500
        else:
            stream, disorder = step
            time += 5
            stamp = max(1, time + disorder)
            tested.tester.execute(tested.tuple(tested.number, stamp, stream % streams))
            tested.naive.add_event(tested.number, stream % streams, stamp)
            tested.number += 1
    tested.check()
