"""A topology that counts numbers, in batches of random sizes, and is asked for the counts."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from storm_on_spark import Fields, Topology
from storm_on_spark.trident import (
    Count,
    IOpaquePartitionedTridentSpout,
    OpaquePartitionedEmitter,
    PartitionCoordinator,
    ReducerAggregator,
    TridentTopology,
)
from storm_on_spark.trident.state import MapGet, MemoryMapState

COUNT, KEYS, PARTITIONS, MOST = 3_000, 7, 2, 60
FUNCTION = "counts"
conf = {
    "drpc.servers": ["127.0.0.1"],
    "topology.trident.batch.emit.interval.millis": 50,
    "topology.max.spout.pending": 3,
}


class Numbers(PartitionCoordinator, OpaquePartitionedEmitter, IOpaquePartitionedTridentSpout):
    """Numbers from 0 on, dealt out to partitions."""

    def get_coordinator(self, conf: Any, context: Any) -> PartitionCoordinator:
        return self

    def get_emitter(self, conf: Any, context: Any) -> OpaquePartitionedEmitter:
        return self

    def get_output_fields(self) -> Fields:
        return Fields("number", "key")

    def get_partitions_for_batch(self) -> int:
        return PARTITIONS

    def get_ordered_partitions(self, all_partitions: int) -> Sequence[int]:
        return range(all_partitions)

    def emit_partition_batch(self, attempt: Any, collector: Any, partition: int, last_metadata: Any) -> int:
        start: int = last_metadata or 0
        end = min(start + random.randint(1, MOST), COUNT // PARTITIONS)
        for place in range(start, end):
            number = place * PARTITIONS + partition
            collector.emit([number, str(number % KEYS)])
        return end


class Pairs(ReducerAggregator):
    """All pairs of key and count."""

    def init(self) -> list[list[Any]]:
        return []

    def reduce(self, current: list[list[Any]], tup: Any) -> list[list[Any]]:
        return [*current, list(tup)]


def build(conf: Mapping[str, Any]) -> Topology:
    """Returns the topology."""
    topology = TridentTopology()
    numbers = topology.new_stream("numbers", Numbers()).parallelism_hint(2)
    counts = numbers.group_by("key").persistent_aggregate(MemoryMapState.Factory(), Count(), "count")
    (
        topology.new_drpc_stream(FUNCTION)
        .each("args", lambda tup: tup["args"].split(), "key")
        .group_by("key")
        .state_query(counts.parallelism_hint(2), "key", MapGet(), "count")
        .aggregate(["key", "count"], Pairs(), "pairs")
    )
    return topology.build()
