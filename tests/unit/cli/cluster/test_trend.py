"""Rates on `storm-spark status --watch`."""

from __future__ import annotations

from storm_on_spark.cli.cluster.watching.trend import Trend, rate_rows

SPOUT = {"spoutId": "lines", "emitted": 60, "completeLatency": "3.000"}
BOLT = {"boltId": "split", "executed": 120, "emitted": 7, "capacity": "0.500", "processLatency": "2.000"}
PAGE = {"windowSecs": 60.0, "spouts": [SPOUT], "bolts": [BOLT]}


def trend_of(*looks: tuple[float, int]) -> list[float]:
    times = iter([time for time, _ in looks])
    trend, rates = Trend(lambda: next(times)), {}
    for _, count in looks:
        rates = trend.look({"split": count})
    return rates.get("split", [])


def test_rates_are_those_between_looks() -> None:
    assert trend_of((0.0, 10), (2.0, 30), (4.0, 30)) == [10.0, 0.0]


def test_a_count_that_begins_anew_makes_no_negative_rate() -> None:
    assert trend_of((0.0, 100), (2.0, 5), (4.0, 9)) == [2.0]


def test_two_looks_at_once_divide_by_no_zero() -> None:
    assert trend_of((1.0, 5), (1.0, 9)) == []


def test_memory_of_looks_is_bounded() -> None:
    assert len(trend_of(*[(float(at), at) for at in range(100)])) == 30


def test_rows_have_rates_of_the_window_and_the_trend_of_those_who_watch() -> None:
    spout, bolt = rate_rows(PAGE, {})
    assert (spout["a second"], bolt["a second"], bolt["capacity"]) == ("1.0", "2.0", "0.500")
    _, watched = rate_rows(PAGE, {"split": [1.0, 8.0]})
    assert (watched["now"], watched["trend"]) == ("8", "▂█")


def test_a_topology_without_heartbeats_has_no_rates() -> None:
    assert rate_rows({**PAGE, "windowSecs": 0.0}, {})[0]["a second"] == "n/a"
