"""The windows that are measured beside those of others."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from lab.benchmarks.cases import WINDOW_KEYS
from lab.benchmarks.workloads.windows import CountColumns, CountResults, CountTuples, EventBatches, counted
from storm_on_spark.testing import BoltTester, make_tuple

_NUMBERS = range(0, 20_500, 7)
"""Of events."""


@pytest.mark.parametrize("count", [CountColumns, CountResults, CountTuples])
def test_each_kind_counts_the_same(count: Any) -> None:
    tester = BoltTester(counted(count, aggregate=count is not CountTuples))
    if count is CountColumns:
        keys = [number % WINDOW_KEYS for number in _NUMBERS]
        tester.execute(pa.record_batch({"key": keys, "time": list(_NUMBERS)}))
    else:
        tester.execute(*(make_tuple([number % WINDOW_KEYS, number], ["key", "time"]) for number in _NUMBERS))
    tester.advance(seconds=1)
    # A window holds what came after its beginning, and not after its end, as Storm's do.
    windows = Counter((-(-number // 10_000), number % WINDOW_KEYS) for number in _NUMBERS if number <= 20_000)
    assert Counter(tester.collector.values()) == Counter((key, times) for (_, key), times in windows.items())


def test_events_are_the_same_in_columns() -> None:
    batch = EventBatches("control.json", "sentences.txt").batch(99, 3)
    assert batch.to_pydict() == {"key": [99, 0, 1], "time": [99, 100, 101]}
