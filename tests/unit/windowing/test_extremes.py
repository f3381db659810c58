"""Times that can't be, slides of a millisecond, and streams that nobody has declared."""

from __future__ import annotations

import logging
from typing import Any

import pyarrow as pa
import pytest

from storm_on_spark import (
    BaseWindowedBolt,
    Count,
    Duration,
    Fields,
    InvalidTopologyError,
    TopologyBuilder,
    compile_topology,
)
from storm_on_spark.joins import IntervalJoinBolt
from storm_on_spark.testing import BoltTester, ListSpout, make_tuple
from storm_on_spark.windowing import BatchWindowedBolt, CountOf

NOW = 1_700_000_000_000
YEAR_9999 = 253_402_300_799_000


class Sizes(BaseWindowedBolt):
    """Emits the end of each window, and how much it holds."""

    def prepare(self, conf, context, collector):
        self.collector = collector

    def execute(self, window):
        results = window.result if hasattr(window, "result") else None
        self.collector.emit([window.end, len(window) if results is None else results["count"]])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("end", "size"))


class ColumnSizes(BatchWindowedBolt):
    """The same of columns."""

    def execute_window(self, window, collector):
        collector.emit(pa.table({"end": [window.end], "size": [window.table["count"][0].as_py()]}))

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("end", "size"))


def event(time: Any) -> Any:
    return make_tuple([time], ["time"])


def rows(*times: int) -> Any:
    return pa.record_batch({"time": list(times)})


def tuples_of(length: Any, slide: Any) -> BoltTester:
    return BoltTester(Sizes().with_window(length, slide).with_timestamp_field("time"), [event(0)])


def results_of(length: Any, slide: Any) -> BoltTester:
    bolt = Sizes().with_window(length, slide).with_timestamp_field("time")
    return BoltTester(bolt.with_aggregate(count=CountOf()), [event(0)])


def columns_of(length: Any, slide: Any) -> BoltTester:
    bolt = ColumnSizes().with_window(length, slide).with_timestamp_field("time")
    return BoltTester(bolt.with_aggregate(count=CountOf()), [rows(0)])


KINDS = pytest.mark.parametrize("kind", [tuples_of, results_of, columns_of])


def feed(tested: BoltTester, *times: int) -> list[Any]:
    """What is evaluated when tuples of these times have come, and the watermark moves on."""
    before = len(tested.collector.values())
    if isinstance(tested.bolt.bolt, BatchWindowedBolt):
        tested.execute(rows(*times))
    else:
        tested.execute(*map(event, times))
    tested.advance(1)
    return tested.collector.values()[before:]


@KINDS
def test_after_a_tuple_far_ahead_all_are_late_and_the_log_says_why(kind: Any, caplog: pytest.LogCaptureFixture) -> None:
    tested = kind(Duration(20), Duration(1))
    assert feed(tested, NOW, NOW + 2) == [(NOW, 1), (NOW + 1, 1), (NOW + 2, 2)]
    # What the windows held before is evaluated, and the time in between costs nothing.
    ended = feed(tested, YEAR_9999)
    assert ended == [*((NOW + at, 2) for at in range(3, 20)), (NOW + 20, 1), (NOW + 21, 1), (YEAR_9999, 1)]
    with caplog.at_level(logging.WARNING):
        assert feed(tested, NOW + 30, NOW + 31) == []
        assert feed(tested, NOW + 32) == []
    [message] = caplog.messages
    assert f"time of a tuple, {NOW + 30}, is before the watermark, {YEAR_9999}" in message
    assert "brought a time that is too far ahead" in message
    assert tested.context.metrics.living("counter", "late-tuples").get_count() == 3


def test_an_extractor_makes_a_tuple_late_whose_time_cannot_be() -> None:
    bolt = Sizes().with_tumbling_window(Duration(10)).with_late_tuple_stream("late")
    bolt = bolt.with_timestamp_extractor(lambda tup: tup["time"] if tup["time"] < 2 * NOW else -1)
    tested = BoltTester(bolt, [event(0)])
    assert feed(tested, YEAR_9999, NOW + 1) == []
    assert feed(tested, NOW + 2, YEAR_9999, NOW + 10) == [(NOW + 10, 3)]
    assert [late["time"] for (late,) in tested.collector.values("late")] == [YEAR_9999, YEAR_9999]


def test_a_window_of_tuples_is_evaluated_a_thousand_times_in_a_gap_and_not_for_ever() -> None:
    tested = tuples_of(Count(2), Duration.seconds(1))
    assert feed(tested, NOW, NOW + 5000) == [(NOW + 1000 * at, 2 if at == 5 else 1) for at in range(6)]
    found = feed(tested, YEAR_9999, YEAR_9999)
    assert found == [*((NOW + 1000 * at, 2) for at in range(6, 1006)), (YEAR_9999, 2)]


def test_late_interval_joins_are_told_in_the_same_words(caplog: pytest.LogCaptureFixture) -> None:
    join = IntervalJoinBolt("a", "id").join("b", "id", after=Duration(10)).with_timestamp_field("time").select("id")
    a, b, late = (make_tuple([1, time], ["id", "time"], source) for time, source in [(50, "a"), (50, "b"), (3, "a")])
    tested = BoltTester(join, [a, b])
    with caplog.at_level(logging.WARNING):
        tested.execute(a, b, late, late)
    [message] = caplog.messages
    assert "time of a tuple, 3, is before the watermark, 50" in message


@KINDS
def test_gaps_of_an_hour_in_windows_that_slide_by_a_millisecond(kind: Any) -> None:
    hour = 3_600_000
    found = feed(kind(Duration(3), Duration(1)), *(NOW + hour * at for at in range(50)))
    assert found == [(NOW + hour * at + more, 1) for at in range(50) for more in range(3)][: 49 * 3 + 1]


@KINDS
def test_between_windows_that_slide_by_more_than_their_length_tuples_are_in_none(kind: Any) -> None:
    assert feed(kind(Duration(3), Duration(10)), *range(1, 41)) == [(end, 3) for end in (10, 20, 30, 40)]


def test_a_stream_for_late_tuples_that_only_a_configuration_names_is_refused() -> None:
    builder = TopologyBuilder()
    builder.set_spout("events", ListSpout([(1,)], ["time"]))
    bolt = Sizes().with_tumbling_window(Duration(10)).with_timestamp_field("time")
    builder.set_bolt("sizes", bolt).shuffle_grouping("events")
    with pytest.raises(InvalidTopologyError, match=r'stream "late".*call with_late_tuple_stream\("late"\)'):
        compile_topology(builder.create_topology(), {"topology.bolts.late.tuple.stream": "late"})
