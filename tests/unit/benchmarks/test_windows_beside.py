"""The windows that are measured beside those of others."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from lab.benchmarks.cases import WINDOW_KEYS
from lab.benchmarks.workloads.windows import CountColumns, CountResults, CountTuples, EventBatches, counted
from storm_on_spark.testing import BoltTester, make_tuple

_EVENTS = 10_500


@pytest.mark.parametrize("count", [CountColumns, CountResults, CountTuples])
def test_each_kind_counts_the_same(count: Any) -> None:
    tester = BoltTester(counted(count, aggregate=count is not CountTuples))
    if count is CountColumns:
        spout = EventBatches("control.json", "sentences.txt")
        tester.execute(spout.batch(0, 500), spout.batch(500, _EVENTS - 500))
    else:
        tester.execute(*(make_tuple([at % WINDOW_KEYS, at], ["key", "time"]) for at in range(_EVENTS)))
    tester.advance(seconds=1)
    # A window holds what came after its beginning, and not after its end, as Storm's do.
    expected = Counter((at % WINDOW_KEYS, (at + 9999) // 10_000) for at in range(10_001))
    assert Counter(tester.collector.values()) == Counter((key, number) for (key, _), number in expected.items())


def test_events_are_the_same_in_columns() -> None:
    batch = EventBatches("control.json", "sentences.txt").batch(99, 3)
    assert batch.to_pydict() == {"key": [99, 0, 1], "time": [99, 100, 101]}
