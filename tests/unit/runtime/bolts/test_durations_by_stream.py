"""Counters of an execution by stream, and its latencies."""

from __future__ import annotations

import time

import pytest

from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.tuple import Delivery
from storm_on_spark.metrics import amounts as names
from storm_on_spark.metrics.amounts import Name
from storm_on_spark.metrics.latency import quantiles
from storm_on_spark.runtime.bolts.collectors import Held, Ledger
from storm_on_spark.runtime.bolts.durations import Durations
from storm_on_spark.runtime.bolts.inputs import Input, taken_in

FIELDS = Fields("x")


def of(component: str, size: int) -> Input:
    return Input(Delivery(component, "default", 1, FIELDS), [(n,) for n in range(size)], size)


def execute(durations: Durations, inputs: list[Input], ledger: Ledger, pause: float = 0.0) -> dict[Name, int]:
    """Executes tuples as a bolt's task does: the first of every four takes a pause, the others a tenth of it."""
    taken_in(inputs, ledger)
    durations.begin()
    call = durations.each(lambda tup: time.sleep(pause if tup[0] % 4 == 0 else pause / 10) if pause else None)
    for _, _, rows in durations.timed([(part.delivery, 0, part.rows) for part in inputs]):
        for row in rows:
            call(row)
    return durations.amounts(inputs, ledger, all_acked=False)


def counts(found: dict[Name, int], name: str) -> dict[str, int]:
    return {str(first): amount for (kind, first, _), amount in found.items() if kind == name}


def bins(found: dict[Name, int], name: str) -> dict[int, int]:
    return {int(first): amount for (kind, first, _), amount in found.items() if kind == name}


@pytest.mark.parametrize("sizes", [{"a": 5}, {"a": 5, "b": 3, "c": 1}])
def test_executed_and_acked_tuples_count_for_the_stream_they_came_on(sizes: dict[str, int]) -> None:
    inputs = [of(component, size) for component, size in sizes.items()]
    ledger = Ledger()
    ledger.acked = list(range(sum(sizes.values())))[1:]
    found = execute(Durations(), inputs, ledger)
    assert counts(found, names.EXECUTED) == sizes
    assert counts(found, names.ACKED) == {**sizes, "a": 4}
    assert sum(bins(found, names.EXECUTE_BIN).values()) == sum(sizes.values())
    assert sum(bins(found, names.PROCESS_BIN).values()) == sum(sizes.values()) - 1


def test_failed_tuples_and_those_of_earlier_executions_count() -> None:
    ledger = Ledger()
    ledger.failed, ledger.acked = [0, 5], [1]
    ledger.acked_held = [Held((1,), 2, ("old", "default"), 2.5)]
    ledger.failed_held = [Held((1,), 3, ("old", "default"), 1.0)]
    found = execute(Durations(), [of("a", 5), of("b", 3)], ledger)
    assert counts(found, names.FAILED) == {"a": 1, "b": 1, "old": 1}
    assert counts(found, names.ACKED) == {"a": 1, "old": 1}
    assert found[names.PROCESS_NS, "old", "default"] == 2_500_000_000
    assert (quantiles(bins(found, names.PROCESS_BIN)) or {})["p99"] == pytest.approx(2500, rel=0.02)


def test_calls_that_are_slow_are_timed_one_by_one_from_the_next_execution_on() -> None:
    durations = Durations()
    first = execute(durations, [of("a", 3)], Ledger(), pause=0.02)
    assert len(bins(first, names.EXECUTE_BIN)) == 1
    second = execute(durations, [of("a", 30)], Ledger(), pause=0.02)
    assert len(bins(second, names.EXECUTE_BIN)) > 1
    assert sum(bins(second, names.EXECUTE_BIN).values()) == 30


def test_what_is_undone_is_not_timed() -> None:
    durations, part = Durations(), of("a", 3)
    durations.begin()
    good = durations.mark()
    for _ in durations.timed([(part.delivery, 0, part.rows)]):
        pass
    durations.truncate(good)
    for _ in durations.timed([(part.delivery, 0, part.rows)]):
        pass
    found = durations.amounts([part], Ledger(), all_acked=True)
    assert sum(bins(found, names.EXECUTE_BIN).values()) == 3
