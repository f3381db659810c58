"""A driver that a test starts, kills and starts again: an opaque spout, and opaque states in Redis and in a database.

`main(SETTINGS.json)` prints one line of JSON with the topology's status at the end.
"""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import redis

from storm_on_spark import Fields, LocalCluster, Topology
from storm_on_spark.connectors.states import JdbcMapState, RedisMapState
from storm_on_spark.spark.session import local_session, stop_session
from storm_on_spark.trident import (
    Count,
    IOpaquePartitionedTridentSpout,
    OpaquePartitionedEmitter,
    PartitionCoordinator,
    TridentTopology,
)

PARTITIONS = 2


class _Partitions(PartitionCoordinator):
    def __init__(self, batches: int) -> None:
        self._batches = batches

    def get_partitions_for_batch(self) -> int:
        return PARTITIONS

    def exhausted(self, txid: int) -> bool:
        return txid > self._batches


class _Numbers(OpaquePartitionedEmitter):
    """Emits the numbers of a partition, in batches of random sizes: another one at each attempt."""

    def __init__(self, count: int, most: int) -> None:
        self._count, self._most = count, most

    def get_ordered_partitions(self, all_partitions: int) -> Sequence[int]:
        return range(all_partitions)

    def emit_partition_batch(self, attempt: Any, collector: Any, partition: int, last_metadata: Any) -> int:
        start: int = last_metadata or 0
        end = min(start + random.randint(self._most // 2, self._most), self._count // PARTITIONS)
        for place in range(start, end):
            collector.emit([place * PARTITIONS + partition])
        return end


class Numbers(IOpaquePartitionedTridentSpout):
    """An opaque spout of `count` numbers."""

    def __init__(self, count: int, most: int) -> None:
        self._count, self._most = count, most

    def get_coordinator(self, conf: Mapping[str, Any], context: Any) -> PartitionCoordinator:
        return _Partitions(self._count // PARTITIONS // (self._most // 2) + 2)

    def get_emitter(self, conf: Mapping[str, Any], context: Any) -> OpaquePartitionedEmitter:
        return _Numbers(self._count, self._most)

    def get_output_fields(self) -> Fields:
        return Fields("number")


def connect(port: int) -> Any:
    """Connects to Redis."""
    return redis.Redis("127.0.0.1", port, socket_timeout=30)


def build(settings: Mapping[str, Any]) -> Topology:
    """Returns the topology."""
    topology = TridentTopology()
    numbers = topology.new_stream("numbers", Numbers(settings["count"], settings["most"])).parallelism_hint(2)
    singly = RedisMapState(partial(connect, settings["port"]), "numbers")
    numbers.group_by("number").persistent_aggregate(singly, Count(), "times").parallelism_hint(2)
    rests = numbers.map(lambda tup: tup["number"] % 7, "rest")
    database = partial(sqlite3.connect, settings["database"], timeout=30)
    rests.group_by("rest").persistent_aggregate(JdbcMapState(database, "rests"), Count(), "count")
    return topology.build()


def main(path: str) -> None:
    """Runs the topology from its checkpoint to its end."""
    settings = json.loads(Path(path).read_text())
    conf = {
        "topology.checkpoint.dir": settings["checkpoint"],
        "topology.trident.batch.emit.interval.millis": 1,
        "topology.max.spout.pending": 4,
        **settings["conf"],
    }
    spark = local_session("local[2]", {}, settings["checkpoint"])
    try:
        with LocalCluster(spark) as cluster:
            cluster.submit_topology("numbers", conf, build(settings))
            cluster.await_completion("numbers")
            info = cluster.get_topology_info("numbers")
        print(json.dumps({"status": info.status}), flush=True)
    finally:
        stop_session(spark)
