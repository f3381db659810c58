"""Kinds of spouts and of states in whole topologies, in one process, while writes fail when half of them is done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from trident_run import run

from storm_on_spark import FailedException, Fields
from storm_on_spark.trident import (
    Count,
    IOpaquePartitionedTridentSpout,
    IPartitionedTridentSpout,
    OpaquePartitionedEmitter,
    PartitionCoordinator,
    PartitionedEmitter,
    TridentTopology,
)
from storm_on_spark.trident.state import StateType
from storm_on_spark.trident.state.external import ExternalMapState, ExternalMapStateFactory, TextStore

WORDS = list("abcabdacbaabcdda")
SIZE = 4

stored: dict[str, str] = {}
"""What the store of the topology under test has."""
writes: list[int] = []
"""How many entries each write had."""


class FailsHalfway(TextStore):
    """Fails the second and the fifth write when half of it is done."""

    title = "a store"

    def read(self, keys: Sequence[str]) -> Mapping[str, str]:
        return {key: stored[key] for key in keys if key in stored}

    def write(self, entries: Mapping[str, str]) -> None:
        writes.append(len(entries))
        fails = len(writes) in (2, 5)
        stored.update(list(entries.items())[: (len(entries) + 1) // 2 if fails else len(entries)])
        if fails:
            raise FailedException("half of it is written")

    def is_away(self, error: Exception) -> bool:
        return False

    def close(self) -> None: ...


class Factory(ExternalMapStateFactory):
    def open_store(self) -> TextStore:
        return FailsHalfway()


class One(PartitionCoordinator):
    def get_partitions_for_batch(self) -> int:
        return 1

    def exhausted(self, txid: int) -> bool:
        return txid > len(WORDS) // SIZE + 4


class Same(PartitionedEmitter):
    def get_ordered_partitions(self, all_partitions: int) -> Sequence[int]:
        return range(all_partitions)

    def emit_partition_batch_new(self, attempt: Any, collector: Any, partition: int, last_metadata: Any) -> Any:
        start = 0 if last_metadata is None else last_metadata[1]
        bounds = start, min(start + SIZE, len(WORDS))
        self.emit_partition_batch(attempt, collector, partition, bounds)
        return bounds

    def emit_partition_batch(self, attempt: Any, collector: Any, partition: int, metadata: Any) -> None:
        for place in range(*metadata):
            collector.emit([WORDS[place]])


class Other(OpaquePartitionedEmitter):
    def get_ordered_partitions(self, all_partitions: int) -> Sequence[int]:
        return range(all_partitions)

    def emit_partition_batch(self, attempt: Any, collector: Any, partition: int, last_metadata: Any) -> int:
        start: int = last_metadata or 0
        end = min(start + (1 if attempt.attempt else SIZE), len(WORDS))
        for place in range(start, end):
            collector.emit([WORDS[place]])
        return end


class Transactional(IPartitionedTridentSpout):
    def get_coordinator(self, conf: Any, context: Any) -> PartitionCoordinator:
        return One()

    def get_emitter(self, conf: Any, context: Any) -> PartitionedEmitter:
        return Same()

    def get_output_fields(self) -> Fields:
        return Fields("word")


class Opaque(IOpaquePartitionedTridentSpout):
    def get_coordinator(self, conf: Any, context: Any) -> PartitionCoordinator:
        return One()

    def get_emitter(self, conf: Any, context: Any) -> OpaquePartitionedEmitter:
        return Other()

    def get_output_fields(self) -> Fields:
        return Fields("word")


@pytest.mark.parametrize("pending", [1, 3])
@pytest.mark.parametrize(
    ("spout", "kind", "exact"),
    [
        (Transactional, StateType.OPAQUE, True),
        (Transactional, StateType.TRANSACTIONAL, True),
        (Transactional, StateType.NON_TRANSACTIONAL, False),
        (Opaque, StateType.OPAQUE, True),
        (Opaque, StateType.TRANSACTIONAL, False),
        (Opaque, StateType.NON_TRANSACTIONAL, False),
    ],
)
def test_writes_that_fail_halfway(spout: Any, kind: StateType, exact: bool, pending: int) -> None:
    stored.clear()
    writes.clear()
    topology = TridentTopology()
    words = topology.new_stream("words", spout())
    words.group_by("word").persistent_aggregate(Factory(kind), Count(), "count")
    run(topology, {"topology.max.spout.pending": pending})
    assert len(writes) > 5, "both faults happened"
    state = ExternalMapState(FailsHalfway(), kind, "", "0/1")
    found = dict(zip("abcd", state.multi_get([[word] for word in "abcd"]), strict=True))
    assert (found == {word: WORDS.count(word) for word in "abcd"}) is exact, found
