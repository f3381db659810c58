"""Trident over kills: 30,000 messages, counted exactly, though workers die amid batches and amid commits."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from storm_on_spark.testing import crash, crashes, run_topology
from storm_on_spark.trident import Count, FixedBatchSpout, TridentTopology
from storm_on_spark.trident.state import MemoryMapState

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MESSAGES, BATCH, KEYS = 30_000, 1_000, 97
AMID_BATCH, AMID_COMMIT = (5_500, 17_300), (41, 226)
"""The message, and the count of a key, at which a process dies."""


class DiesAt:
    """Lets the process die once at some values."""

    def __init__(self, folder: str, field: str, values: tuple[int, ...]) -> None:
        self.folder, self.field, self.values = folder, field, values

    def __call__(self, tup: Any) -> None:
        value = tup[self.field]
        if value in self.values:
            crash(Path(self.folder) / f"crash-{self.field}-{value}")


@pytest.mark.parametrize("profile", ["latency", "realtime"])
def test_30_000_messages_are_counted_once_each_over_kills(
    profile: str, spark_session: SparkSession, tmp_path: Path
) -> None:
    topology = TridentTopology()
    rows = [[number, number % KEYS] for number in range(MESSAGES)]
    numbers = topology.new_stream("numbers", FixedBatchSpout(["number", "key"], BATCH, rows))
    counts = (
        numbers.peek(DiesAt(str(tmp_path), "number", AMID_BATCH))
        .group_by("key")
        .persistent_aggregate(MemoryMapState.Factory(), Count(), "count")
        .parallelism_hint(2)
    )
    # In the commit: the state has the batch, and what comes behind it dies.
    counts.new_values_stream().peek(DiesAt(str(tmp_path), "count", AMID_COMMIT)).shuffle().name("sink").filter(bool)
    conf = {
        "topology.profile": profile,
        "topology.trident.batch.emit.interval.millis": 1,
        "topology.max.spout.pending": 4,
    }
    captured = run_topology(topology.build(), conf=conf, spark=spark_session, timeout=200)
    for field, values in (("number", AMID_BATCH), ("count", AMID_COMMIT)):
        died = [crashes(tmp_path / f"crash-{field}-{value}") for value in values]
        assert died == [1] * len(values), f"no process died at {field}: {died}"
    found = [tup.values[1:] for tup in captured.tuples if tup.component == "b-1" and not tup.stream.startswith("$")]
    last: dict[int, int] = {}
    for key, count in found:
        last[key] = max(count, last.get(key, 0))
    assert last == Counter(number % KEYS for number in range(MESSAGES))
    # In real time what a live process has executed is captured again when another one executes the same rounds.
    assert len(set(found)) == KEYS * MESSAGES // BATCH, "each batch is in the state once"
    assert profile == "realtime" or len(found) == len(set(found))
