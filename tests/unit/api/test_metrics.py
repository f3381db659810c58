from __future__ import annotations

import pickle

import numpy as np
import pytest

from storm_on_spark.api import (
    AssignableMetric,
    BaseBasicBolt,
    CombinedMetric,
    CountMetric,
    ICombiner,
    InvalidTopologyError,
    MeanReducer,
    MultiCountMetric,
    MultiReducedMetric,
    ReducedMetric,
)
from storm_on_spark.api.metrics.rates import Rates, Snapshot
from storm_on_spark.api.metrics.registry import MOST_METRICS, MetricRegistry, plain
from storm_on_spark.testing import make_context


class Nothing(BaseBasicBolt):
    def execute(self, tup, collector):
        pass


def registry() -> MetricRegistry:
    return make_context(Nothing()).metrics


def said(metrics: MetricRegistry) -> dict[str, tuple[str, object]]:
    def fail(name: str, error: Exception) -> None:
        raise AssertionError(name) from error

    return {reading.name: (reading.kind, reading.value) for reading in metrics.readings(fail)}


def test_instruments_say_what_is_new() -> None:
    context = make_context(Nothing())
    hits, calls = context.register_counter("hits"), context.register_meter("calls")
    sizes, waits = context.register_histogram("sizes"), context.register_timer("waits")
    assert said(context.metrics) == {
        "hits": ("counter", 0), "calls": ("meter", 0), "sizes": ("histogram", (0, [])), "waits": ("timer", (0, [])),
    }  # fmt: skip
    hits.inc(5)
    hits.dec()
    calls.mark(3)
    sizes.update(7)
    waits.update(0.5)
    waits.update(1.5)
    assert said(context.metrics) == {
        "hits": ("counter", 4), "calls": ("meter", 3), "sizes": ("histogram", (1, [7])),
        "waits": ("timer", (2, [0.5, 1.5])),
    }  # fmt: skip
    assert said(context.metrics) == {}
    assert (hits.get_count(), calls.get_count(), sizes.get_count(), waits.get_count()) == (4, 3, 1, 2)


def test_a_gauge_is_asked_with_each_report() -> None:
    context = make_context(Nothing())
    values = [1, 2]

    class Size:
        def get_value(self):
            return np.int64(len(values))

    gauge = Size()
    assert context.register_gauge("size", gauge) is gauge
    context.register_metric_set("memory", {"free": lambda: 0.5})
    assert said(context.metrics) == {"size": ("gauge", 2), "memory.free": ("gauge", 0.5)}
    values.append(3)
    assert said(context.metrics)["size"] == ("gauge", 3)
    with pytest.raises(TypeError, match="a gauge takes a function"):
        context.register_gauge("wrong", 7)


def test_a_metric_that_raises_is_named_and_the_others_are_reported() -> None:
    context = make_context(Nothing())
    context.register_gauge("broken", lambda: 1 / 0)
    context.register_counter("hits").inc()
    errors = []
    readings = context.metrics.readings(lambda name, error: errors.append((name, type(error))))
    assert errors == [("broken", ZeroDivisionError)]
    assert [reading.name for reading in readings] == ["hits"]


def test_storms_first_metrics() -> None:
    context = make_context(Nothing())
    count = context.register_metric("count", CountMetric(), 10)
    several = context.register_metric("several", MultiCountMetric(), 10)
    level = context.register_metric("level", AssignableMetric(3), 10)
    mean = context.register_metric("mean", MeanReducer(), 10)
    assert isinstance(mean, ReducedMetric)
    assert context.get_registered_metric_by_name("count") is count
    assert context.get_registered_metric_by_name("other") is None
    count.incr_by(4)
    several.scope("a").incr()
    level.set_value("high")
    mean.update(1)
    mean.update(2)
    assert said(context.metrics) == {
        "count": ("count", 4), "several": ("count", {"a": 1}), "level": ("metric", "high"), "mean": ("metric", 1.5),
    }  # fmt: skip
    # A mean of nothing is no news; a value that is set stays.
    assert said(context.metrics) == {
        "count": ("count", 0), "several": ("count", {"a": 0}), "level": ("metric", "high"),
    }  # fmt: skip


def test_combined_and_reduced_by_name() -> None:
    class Sum(ICombiner):
        def identity(self):
            return 0

        def combine(self, a, b):
            return a + b

    combined = make_context(Nothing()).register_metric("sum", Sum(), 1)
    assert isinstance(combined, CombinedMetric)
    combined.update(2)
    combined.update(3)
    assert combined.get_value_and_reset() == 5
    parts = MultiReducedMetric(MeanReducer())
    parts.scope("a").update(4)
    parts.scope("b")
    assert parts.get_value_and_reset() == {"a": 4.0}


def test_what_a_component_in_another_language_reports() -> None:
    context = make_context(Nothing())
    count = context.register_metric("count", CountMetric(), 10)
    context.register_metric("names", MultiCountMetric(), 10)
    context.metrics.report("count", None)
    context.metrics.report("count", 4)
    context.metrics.report("free", {"a": [1, 2]})
    assert count.saved() == 5
    assert said(context.metrics)["free"] == ("metric", {"a": [1, 2]})
    with pytest.raises(InvalidTopologyError, match="takes no reports"):
        context.metrics.report("names", 1)


@pytest.mark.parametrize(
    ("register", "message"),
    [
        (lambda context: context.register_counter(""), "1 to 200 characters, given ''"),
        (lambda context: context.register_counter(7), "1 to 200 characters, given 7"),
        (lambda context: context.register_meter("known"), "'known' is a counter already, and can't be a meter"),
        (lambda context: context.register_gauge("known", int), "'known' is a counter already"),
        (lambda context: context.register_metric("known", CountMetric(), 1), "'known' is registered already"),
        (lambda context: context.register_metric("x", CountMetric(), 0), "a time bucket of 1 s or more, not 0"),
        (lambda context: context.register_metric("x", CountMetric(), True), "a time bucket of 1 s or more, not True"),
        (lambda context: context.register_metric("x", None, 1), r"takes an object with get_value_and_reset\(\)"),
    ],
)
def test_what_is_refused(register, message: str) -> None:
    context = make_context(Nothing())
    assert context.register_counter("known") is context.register_counter("known")
    with pytest.raises(InvalidTopologyError, match=message) as caught:
        register(context)
    assert caught.value.component == "component"


def test_names_that_never_end_are_refused() -> None:
    context = make_context(Nothing())
    for number in range(MOST_METRICS):
        context.register_counter(f"user-{number}")
    with pytest.raises(InvalidTopologyError, match="at most 500 metrics"):
        context.register_counter("one more")
    assert context.register_counter("user-0").get_count() == 0


def test_after_prepare_storms_first_metrics_are_refused() -> None:
    context = make_context(Nothing())
    context.metrics.prepared = True
    context.register_counter("late").inc()
    with pytest.raises(InvalidTopologyError, match="must be called in open or prepare"):
        context.register_metric("late too", CountMetric(), 1)


def test_work_that_is_done_again_counts_once() -> None:
    context = make_context(Nothing())
    hits, calls, sizes = (
        context.register_counter("hits"),
        context.register_meter("calls"),
        context.register_histogram("sizes"),
    )
    count, several = (
        context.register_metric("count", CountMetric(), 1),
        context.register_metric("several", MultiCountMetric(), 1),
    )
    part = several.scope("a")

    def work() -> None:
        hits.inc()
        calls.mark()
        sizes.update(2)
        count.incr()
        part.incr()
        context.register_counter("late").inc()

    saved = context.metrics.saved()
    work()
    context.metrics.back_to(saved)
    work()
    assert said(context.metrics) == {
        "hits": ("counter", 1), "calls": ("meter", 1), "sizes": ("histogram", (1, [2])), "late": ("counter", 1),
        "count": ("count", 1), "several": ("count", {"a": 1}),
    }  # fmt: skip


def test_an_instrument_does_not_leave_its_process() -> None:
    with pytest.raises(TypeError, match="the counter 'hits' belongs to one task"):
        pickle.dumps(make_context(Nothing()).register_counter("hits"))


def test_values_become_plain() -> None:
    class Odd:
        def __str__(self) -> str:
            return "odd"

    assert plain(Odd()) == "odd"
    assert plain([np.float32(0.5), 1 << 70, float("inf"), b"x"]) == [0.5, "0x400000000000000000", "inf", "b'x'"]
    assert len(plain({str(number): number for number in range(1000)})) == 100
    deep: list[object] = []
    deep.append(deep)
    assert plain(deep) == [[["[[...]]"]]]


def test_rates_forget() -> None:
    now = [0.0]
    rates = Rates(lambda: now[0])
    rates.mark(300)
    now[0] = 5.0
    assert rates.summary() == {"mean_rate": 60.0, "m1_rate": 60.0, "m5_rate": 60.0, "m15_rate": 60.0}
    now[0] = 65.0
    summary = rates.summary()
    # A minute without events leaves 1/e of the average over one minute, and of the others less is gone.
    assert summary["m1_rate"] == pytest.approx(60 / np.e)
    assert summary["m1_rate"] < summary["m5_rate"] < summary["m15_rate"] < 60
    assert summary["mean_rate"] == pytest.approx(300 / 65)


def test_percentiles() -> None:
    snapshot = Snapshot(range(1, 101))
    assert (snapshot.get_min(), snapshot.get_max(), snapshot.size()) == (1, 100, 100)
    assert snapshot.get_value(0.75) == pytest.approx(75.75)
    assert snapshot.get_std_dev() == pytest.approx(np.std(range(1, 101)))
    assert set(Snapshot([]).summary().values()) == {0.0}
    with pytest.raises(ValueError, match="from 0 to 1"):
        snapshot.get_value(1.5)
