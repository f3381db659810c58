"""Storm's rules of windows, each under its name."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from storm_on_spark import BaseStatefulWindowedBolt, BaseWindowedBolt, Count, Duration, Fields, TupleError
from storm_on_spark.testing import BoltTester, make_tuple
from storm_on_spark.windowing.rules.watermark import WatermarkGenerator


class Show(BaseWindowedBolt):
    """Emits the times of each window's tuples, and its end."""

    def prepare(self, conf, context, collector):
        self.collector = collector

    def execute(self, window):
        self.collector.emit([[tup["time"] for tup in window], window.get_end_timestamp()])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("times", "end"))


def event(time: Any, source: str = "source") -> Any:
    return make_tuple([time], ["time"], source)


def bolt_of(length: Any, slide: Any, sources: tuple[str, ...] = ("source",), **options: Any) -> BoltTester:
    bolt = Show().with_window(length, slide).with_timestamp_field("time")
    for name, value in options.items():
        getattr(bolt, f"with_{name}")(value)
    return BoltTester(bolt, [event(0, source) for source in sources])


def windows(tested: BoltTester, *times: int, source: str = "source") -> list[Any]:
    """What is evaluated when tuples of these times have come, and the watermark moves on."""
    before = len(tested.collector.values())
    tested.execute(*(event(time, source) for time in times))
    tested.advance(1)
    return tested.collector.values()[before:]


# --- the watermark ----------------------------------------------------------------------------------------------


def test_the_watermark_is_the_least_of_the_latest_times_less_the_lag() -> None:
    watermark = WatermarkGenerator(["a", "b"], lag_ms=5)
    for stream, stamp in [("a", 90), ("a", 100), ("a", 95), ("b", 50), ("b", 70)]:
        watermark.track(stream, stamp, 0)
    assert watermark.advance(0) == 65


def test_there_is_no_watermark_before_each_stream_has_delivered() -> None:
    watermark = WatermarkGenerator(["a", "b"])
    watermark.track("a", 100, 0)
    assert watermark.advance(1_000_000) is None
    watermark.track("b", 100, 0)
    assert watermark.advance(0) == 100


def test_the_watermark_never_goes_back() -> None:
    watermark = WatermarkGenerator(["a"])
    watermark.track("a", 100, 0)
    assert watermark.advance(0) == 100
    assert not watermark.track("a", 50, 0)
    assert watermark.advance(0) is None


def test_a_tuple_at_the_watermark_is_not_late() -> None:
    watermark = WatermarkGenerator(["a"])
    watermark.track("a", 100, 0)
    watermark.advance(0)
    assert watermark.track("a", 100, 0)
    assert not watermark.track("a", 99, 0)


def test_an_idle_stream_holds_back_the_watermark_only_if_nothing_else_was_said() -> None:
    for idle_ms, expected in [(None, None), (1000, 200)]:
        watermark = WatermarkGenerator(["a", "b"], idle_ms=idle_ms)
        watermark.track("b", 150, 500)
        watermark.track("a", 100, 900)
        assert watermark.advance(1000) == 100
        watermark.track("a", 200, 1900)
        assert watermark.advance(1400) == 150
        watermark.track("a", 200, 1900)
        assert watermark.advance(2000) == expected


def test_without_any_stream_the_watermark_stays() -> None:
    watermark = WatermarkGenerator(["a"], idle_ms=10)
    assert watermark.advance(1000) is None


# --- windows by the tuples' time --------------------------------------------------------------------------------


def test_the_first_window_ends_at_the_earliest_time_rounded_up_to_the_slide() -> None:
    tested = bolt_of(Duration(20), Duration(10))
    assert windows(tested, 735, 742, 746, 748, 750) == [
        ([735], 740),
        ([735, 742, 746, 748, 750], 750),
    ]


def test_gaps_without_tuples_are_skipped() -> None:
    tested = bolt_of(Duration(10), Duration(10))
    assert windows(tested, 5, 100_000, 100_003) == [([5], 10), ([100_000], 100_000)]


def test_a_window_excludes_its_start_and_includes_its_end() -> None:
    tested = bolt_of(Duration(10), Duration(10))
    assert windows(tested, 10, 11, 20, 21) == [([10], 10), ([11, 20], 20)]


def test_tuples_out_of_order_within_the_lag_are_in_their_window() -> None:
    tested = bolt_of(Duration(10), Duration(10), lag=Duration(5))
    assert windows(tested, 8, 13, 9, 15, 10) == [([8, 9, 10], 10)]


def test_a_slower_stream_keeps_its_tuples() -> None:
    # Storm's scan stops at what is further ahead than the lag, and loses `11` of the slower stream.
    tested = bolt_of(Duration(10), Duration(10), ("fast", "slow"))
    assert windows(tested, 1000, source="fast") == []
    assert windows(tested, 11, 25, source="slow") == [([11], 20)]


def test_if_all_streams_are_silent_the_latest_time_counts() -> None:
    watermark = WatermarkGenerator(["a", "b", "c"], lag_ms=5, idle_ms=10)
    watermark.track("a", 100, 0)
    watermark.track("b", 200, 3)
    assert watermark.advance(9) is None, "c may still come"
    assert watermark.advance(12) == 195
    assert watermark.advance(20) is None
    assert WatermarkGenerator(["a"], idle_ms=10).advance(20) is None, "nothing has ever come"


def test_an_idle_stream_no_longer_stops_windows_after_its_timeout() -> None:
    tested = bolt_of(Duration(10), Duration(10), ("busy", "idle"), idle_timeout=Duration.seconds(3))
    assert [windows(tested, 5 + 10 * step, source="busy") for step in range(4)] == [
        [],
        [],
        [([5], 10), ([15], 20)],
        [([25], 30)],
    ]


def test_count_windows_by_time_slide_with_the_tuples_up_to_the_watermark() -> None:
    tested = bolt_of(Count(3), Count(2))
    assert windows(tested, 1, 2, 3, 4, 5) == [([1, 2], 2), ([2, 3, 4], 4)]
    assert windows(tested, 6, 7) == [([4, 5, 6], 6)]


def test_count_windows_tell_tuples_of_the_same_time_apart() -> None:
    tested = bolt_of(Count(2), Count(2))
    assert windows(tested, 10, 10, 10, 11, 12, 12, 12) == [([10, 10], 10), ([10, 11], 11), ([12, 12], 12)]


def test_a_count_window_that_slides_by_time_holds_the_last_ones() -> None:
    tested = bolt_of(Count(3), Duration(10))
    assert windows(tested, 1, 2, 3, 4, 5, 12, 20) == [([3, 4, 5], 10), ([5, 12, 20], 20)]


def test_a_timestamp_must_be_an_int() -> None:
    for wrong in (1.5, True, "1", None):
        with pytest.raises(TupleError, match="in milliseconds"):
            bolt_of(Duration(10), Duration(10)).execute(event(wrong))


def test_a_timestamp_may_be_extracted() -> None:
    class Extractor:
        def extract_timestamp(self, tup: Any) -> int:
            return tup["time"] * 1000

    for extractor in (Extractor(), lambda tup: tup["time"] * 1000):
        bolt = Show().with_tumbling_window(Duration.seconds(2)).with_timestamp_extractor(extractor)
        assert windows(BoltTester(bolt, [event(0)]), 1, 2, 3) == [([1, 2], 2000)]


# --- late tuples ------------------------------------------------------------------------------------------------


def test_late_tuples_are_logged_acked_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    tested = bolt_of(Duration(10), Duration(10))
    windows(tested, 25)
    late = event(24)
    with caplog.at_level(logging.INFO, logger="storm_on_spark.windowing.late"):
        tested.execute(late)
    assert tested.collector.acked == [late]
    assert "late" in caplog.text
    assert tested.context.metrics.living("counter", "late-tuples").get_count() == 1


def test_late_tuples_go_to_their_stream() -> None:
    tested = bolt_of(Duration(10), Duration(10), late_tuple_stream="late")
    windows(tested, 25)
    late = event(24)
    tested.execute(late)
    [(sent,)] = tested.collector.values("late")
    assert (sent["time"], sent.source_component, sent.message_id) == (24, "source", {})
    assert [emission.anchors for emission in tested.collector.emitted if emission.stream == "late"] == [(late,)]
    assert tested.collector.acked == [late]


# --- windows by the time at which tuples come -------------------------------------------------------------------


def test_windows_of_time_are_evaluated_to_the_millisecond() -> None:
    tested = BoltTester(Show().with_tumbling_window(Duration(250)), [event(0)])
    for time in range(10):
        tested.execute(event(time))
        tested.advance(0.1)
    assert tested.collector.values() == [
        ([0, 1, 2], 250),
        ([3, 4], 500),
        ([5, 6, 7], 750),
        ([8, 9], 1000),
    ]


def test_empty_windows_are_not_evaluated() -> None:
    tested = BoltTester(Show().with_tumbling_window(Duration(250)), [event(0)])
    tested.advance(10)
    tested.execute(event(1))
    tested.advance(10)
    assert tested.collector.values() == [([1], 10_250)]


# --- windows with state -----------------------------------------------------------------------------------------


class Sum(BaseStatefulWindowedBolt):
    def prepare(self, conf, context, collector):
        self.collector = collector

    def init_state(self, state):
        self.state = state

    def execute(self, window):
        self.state.put("sum", self.state.get("sum", 0) + sum(tup["time"] for tup in window.new))
        self.collector.emit([self.state.get("sum"), len(self.state), dict(self.state.items())])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("sum", "size", "items"))


def test_a_stateful_window_has_a_state_of_its_own_that_survives() -> None:
    bolt = Sum().with_window(Count(3), Count(2)).with_message_id_field("time").with_persistence()
    tested = BoltTester(bolt, [event(0)])
    for start in range(0, 200, 50):
        tested.execute(*(event(time) for time in range(start, start + 50)))
        tested.restart()
    sums = [sum(range(at)) for at in range(2, 201, 2)]
    assert tested.collector.values() == [(total, 1, {"sum": total}) for total in sums]
