"""Rates and loads over the last moments."""

from __future__ import annotations

import pytest
from sample_site import word_count

from storm_on_spark.api.info import ComponentInfo, TopologyInfo
from storm_on_spark.web.model import TopologyView
from storm_on_spark.web.rates import Rates


def seen(at: float, uptime: float, executed: int, mean_ms: float | None) -> TopologyView:
    part = ComponentInfo("b", "bolt", 2, executed=executed, execute_latency_ms=mean_ms)
    info = TopologyInfo("t", "ACTIVE", uptime, acked=executed, components={"b": part})
    return TopologyView("t", "t", "ACTIVE", uptime, info, at)


def test_the_first_look_says_what_was_since_the_start() -> None:
    pace = Rates().look(seen(100.0, 10.0, 1000, 4.0))
    assert (pace.acked, pace.components["b"], pace.seconds) == (100.0, 100.0, 0.0)
    # Two executors were busy for four of ten seconds together.
    assert pace.capacity["b"] == pytest.approx(0.2)


def test_later_looks_say_what_was_since_then() -> None:
    rates = Rates()
    rates.look(seen(100.0, 10.0, 1000, 4.0))
    pace = rates.look(seen(110.0, 20.0, 3000, 6.0))
    assert (pace.components["b"], pace.seconds) == (200.0, 10.0)
    # 14 s of 20: 3000 x 6 ms less 1000 x 4 ms.
    assert pace.capacity["b"] == pytest.approx(0.7)
    assert pace.latency_ms["b"] == pytest.approx(7.0)


def test_a_topology_that_was_started_again_begins_anew() -> None:
    rates = Rates()
    rates.look(seen(100.0, 1000.0, 100_000, 1.0))
    pace = rates.look(seen(110.0, 5.0, 50, 1.0))
    assert (pace.components["b"], pace.seconds) == (10.0, 0.0)


def test_the_same_look_twice_counts_once() -> None:
    rates = Rates()
    for at in (100.0, 110.0, 110.0, 110.0):
        pace = rates.look(seen(at, at - 90.0, int(at), 1.0))
    assert len(pace.history) == 1


def test_a_topology_that_said_nothing_has_no_pace() -> None:
    view = word_count()
    assert Rates().look(TopologyView(view.id, view.name, "ACTIVE", 1.0)).components == {}
