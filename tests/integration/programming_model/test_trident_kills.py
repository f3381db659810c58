"""Trident over kills: 30,000 messages of an opaque spout, counted exactly, though workers die amid batches and commits.

A batch that is attempted again has another random number of tuples.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from storm_on_spark import Fields
from storm_on_spark.testing import crash, crashes, run_topology
from storm_on_spark.trident import (
    Count,
    IOpaquePartitionedTridentSpout,
    OpaquePartitionedEmitter,
    PartitionCoordinator,
    TridentTopology,
)
from storm_on_spark.trident.state import MemoryMapState

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MESSAGES, PARTITIONS, BATCH, KEYS = 30_000, 2, 500, 97
AMID_BATCH, AMID_COMMIT = (5_500, 17_300), (41, 226)
"""The message, and the count of a key, from which on a process dies."""


class Numbers(PartitionCoordinator, OpaquePartitionedEmitter, IOpaquePartitionedTridentSpout):
    """Emits numbers: the even ones are a partition, and the odd ones."""

    def get_coordinator(self, conf: Any, context: Any) -> PartitionCoordinator:
        return self

    def get_emitter(self, conf: Any, context: Any) -> OpaquePartitionedEmitter:
        return self

    def get_output_fields(self) -> Fields:
        return Fields("number", "key")

    def get_partitions_for_batch(self) -> int:
        return PARTITIONS

    def exhausted(self, txid: int) -> bool:
        return txid > 2 * MESSAGES // PARTITIONS // BATCH + 2

    def get_ordered_partitions(self, all_partitions: int) -> Sequence[int]:
        return range(all_partitions)

    def emit_partition_batch(self, attempt: Any, collector: Any, partition: int, last_metadata: Any) -> int:
        start: int = last_metadata or 0
        end = min(start + random.randint(BATCH // 2, BATCH), MESSAGES // PARTITIONS)
        for place in range(start, end):
            number = place * PARTITIONS + partition
            collector.emit([number, number % KEYS])
        return end


class DiesAt:
    """Lets the process die once from some values on."""

    def __init__(self, folder: str, field: str, values: tuple[int, ...]) -> None:
        self.folder, self.field, self.values = folder, field, values

    def __call__(self, tup: Any) -> None:
        for value in self.values:
            if tup[self.field] >= value:
                crash(Path(self.folder) / f"crash-{self.field}-{value}")


# In memory, with each profile, `test_trident_in_profiles.py` does the same.
@pytest.mark.parametrize("profile", [pytest.param("latency", marks=pytest.mark.soak), "realtime"])
def test_30_000_messages_are_counted_once_each_over_kills(
    profile: str, spark_session: SparkSession, tmp_path: Path
) -> None:
    topology = TridentTopology()
    numbers = topology.new_stream("numbers", Numbers()).parallelism_hint(PARTITIONS)
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
    assert profile == "realtime" or len(found) == len(set(found)), "each batch is in the state once"
