"""Joins within an interval around each tuple."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_on_spark import Duration, IntervalJoinBolt, InvalidTopologyError, TupleError
from storm_on_spark.testing import BoltTester, make_tuple


def left(key: Any, time: Any, name: str = "l") -> Any:
    return make_tuple([key, time, name], ["k", "ts", "l"], "left")


def right(key: Any, time: Any, name: str = "r") -> Any:
    return make_tuple([key, time, name], ["key", "ts", "r"], "right")


def joining(kind: str = "join", before: int = 10, after: int = 20, lag: int = 0) -> BoltTester:
    bolt = IntervalJoinBolt("left", "k")
    getattr(bolt, kind)("right", "key", before=Duration(before), after=Duration(after))
    bolt.with_timestamp_field("ts").with_lag(Duration(lag)).select("l, r")
    return BoltTester(bolt, [left(0, 0), right(0, 0)])


def test_partners_are_within_the_interval_ends_included() -> None:
    bench = joining(lag=1000)
    bench.execute(left(1, 100), *(right(1, time, str(time)) for time in (89, 90, 120, 121)), right(2, 100))
    assert bench.collector.values() == [("l", "90"), ("l", "120")]
    assert len(bench.collector.acked) == 6


def test_a_tuple_is_forgotten_once_no_partner_can_come() -> None:
    bench = joining()
    bench.execute(left(1, 100), right(1, 100), left(2, 5000), right(2, 5000))
    bench.restart()
    kept = [key for key, _ in bench.state.items() if key[0] == "rows"]
    assert sorted((side, key) for _, side, _, key in kept) == [(0, 2), (1, 2)]


@pytest.mark.parametrize(
    ("kind", "alone"),
    [
        ("join", []),
        ("left_join", [("a", None)]),
        ("right_join", [(None, "z")]),
        ("full_join", [("a", None), (None, "z")]),
    ],
)
def test_what_has_no_partner_is_a_result_when_none_can_come(kind: str, alone: list[Any]) -> None:
    bench = joining(kind)
    bench.execute(left(1, 100, "a"), right(9, 100, "z"), left(2, 110, "b"), right(2, 115, "y"))
    assert bench.collector.values() == [("b", "y")]
    bench.restart()
    bench.execute(left(3, 1000), right(3, 2000))
    assert Counter(bench.collector.values()) == Counter([("b", "y"), *alone])
    assert bench.collector.emitted[-1].anchors != ()


def test_a_late_tuple_is_acked_and_not_joined() -> None:
    bench = joining()
    bench.execute(left(1, 100), right(1, 100), left(1, 300), right(1, 300), right(1, 99))
    assert bench.collector.values() == [("l", "r"), ("l", "r")]
    assert len(bench.collector.acked) == 5


def test_late_tuples_have_a_stream_if_one_is_named() -> None:
    bolt = IntervalJoinBolt("left", "k").join("right", "key").with_timestamp_field("ts").select("l, r")
    bench = BoltTester(bolt.with_late_tuple_stream("late"), [left(0, 0), right(0, 0)])
    bench.execute(left(1, 100), right(1, 100), right(1, 99, "x"))
    [late] = [emission for emission in bench.collector.emitted if emission.stream == "late"]
    assert (list(late.values[0]), len(bench.collector.acked)) == ([1, 99, "x"], 3)


def test_an_idle_stream_keeps_nothing_after_its_timeout() -> None:
    bolt = IntervalJoinBolt("left", "k").left_join("right", "key").with_timestamp_field("ts").select("l, r")
    bench = BoltTester(bolt.with_idle_timeout(Duration.seconds(2)), [left(0, 0), right(0, 0)])
    bench.execute(left(1, 100, "a"), right(1, 100), left(2, 200, "b"))
    assert bench.collector.values() == [("a", "r")]
    bench.advance(seconds=1)
    bench.execute(left(3, 300, "c"))
    bench.advance(seconds=1.5)
    assert bench.collector.values() == [("a", "r"), ("b", None)], "the right stream is idle, the left one is not"
    bench.restart()
    bench.execute(right(2, 200), left(4, 400, "d"))
    assert bench.collector.values() == [("a", "r"), ("b", None)], "late: nobody is left to join it with"
    bench.advance(seconds=4)
    assert bench.collector.values() == [("a", "r"), ("b", None), ("c", None)], "both are idle: what is over is over"


def test_another_lag_holds_over_a_checkpoint() -> None:
    bench = joining(lag=0)
    bench.execute(left(1, 100), right(1, 100))
    again = joining(lag=100)
    again.bolt.init_state(bench.state)
    again.execute(left(1, 300), right(1, 300), right(1, 250, "in time"), left(1, 240, "l"))
    assert ("l", "in time") in again.collector.values()


def test_one_stream_that_is_ahead_waits_for_the_other() -> None:
    bench = joining()
    bench.execute(*(left(1, time, str(time)) for time in range(0, 10_000, 100)), right(1, 5), right(1, 9800))
    assert bench.collector.values() == [("0", "r"), ("9800", "r")]


def test_a_time_must_be_a_number() -> None:
    with pytest.raises(TupleError, match="must be an int, in milliseconds, not 'noon'"):
        joining().execute(left(1, "noon"))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: IntervalJoinBolt("a"), "takes a stream and the field"),
        (lambda: IntervalJoinBolt("a", "k").join("a", "k"), "two different streams"),
        (lambda: IntervalJoinBolt("a", "k").join("b", ["k", "l"]), "2 and 1 fields"),
        (lambda: IntervalJoinBolt("a", "k").join("b", "k", after=10), "must be a Duration"),
        (lambda: IntervalJoinBolt("a", "k").with_idle_timeout(Duration(0)), "must be positive"),
        (lambda: IntervalJoinBolt("a", "k").with_late_tuple_stream(""), "the stream for late tuples"),
        (lambda: BoltTester(IntervalJoinBolt("a", "k")), "has no right stream"),
        (lambda: BoltTester(IntervalJoinBolt("a", "k").join("b", "k")), "has no output fields"),
        (lambda: BoltTester(IntervalJoinBolt("a", "k").join("b", "k").select("k")), "has no times"),
    ],
)
def test_what_makes_no_sense_is_refused(make: Any, message: str) -> None:
    with pytest.raises(InvalidTopologyError, match=message):
        make()


@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, 60)) | st.just("restart"), max_size=40),
    st.integers(0, 15),
    st.integers(0, 15),
    st.sampled_from(["join", "left_join", "right_join", "full_join"]),
)
def test_random_disorder_and_restarts_give_what_a_naive_join_gives(
    events: list[Any], before: int, after: int, kind: str
) -> None:
    # The lag is as large as the disorder, so nothing is late.
    sides: tuple[list[Any], list[Any]] = ([], [])
    with joining(kind, before, after, lag=60) as bench:
        for number, event in enumerate([*events, (0, 8, 10_000), (1, 9, 10_000)]):
            if event == "restart":
                bench.restart()
                continue
            side, key, time = event
            sides[side].append((key, time, str(number)))
            bench.execute((left, right)[side](key, time, str(number)))
        results = Counter(bench.collector.values())
    pairs = [(a[2], b[2]) for a in sides[0] for b in sides[1] if a[0] == b[0] and a[1] - before <= b[1] <= a[1] + after]
    expected = Counter(pairs)
    if kind in ("left_join", "full_join"):
        expected.update((row[2], None) for row in sides[0][:-1] if row[2] not in {pair[0] for pair in pairs})
    if kind in ("right_join", "full_join"):
        expected.update((None, row[2]) for row in sides[1][:-1] if row[2] not in {pair[1] for pair in pairs})
    assert results == expected
