"""storm-starter's DebugMemoryMapState: a state that shows what is written to it, and lets some batches fail.

What to look for: a batch that fails as it is written comes again, and each word is counted once all the same.

    storm-spark run jobs/storm_starter/trident_debug_state.py
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rows import COUNT, DEFAULTS, sentence

from storm_on_spark import FailedException, Topology
from storm_on_spark.trident import Count, FixedBatchSpout, TridentTopology
from storm_on_spark.trident.state import MemoryMapState, StoredStateFactory, ValueUpdater

EVERY = 5
FAILS = "the state lets this batch fail"
conf = {**DEFAULTS, "topology.max.spout.pending": 20, "topology.trident.batch.emit.interval.millis": 50}


class DebugMapState(MemoryMapState[int]):
    """Shows what each batch changes; one update of five fails its batch."""

    def __init__(self, store: Any) -> None:
        super().__init__(store)
        self._updates = 0

    def multi_update(self, keys: Sequence[Sequence[Any]], updaters: Sequence[ValueUpdater[int]]) -> list[int]:
        self._updates += 1
        if self._updates % EVERY == 1:
            print(FAILS)
            raise FailedException(FAILS)
        values = super().multi_update(keys, updaters)
        for (word,), value in zip(keys, values, strict=True):
            print(f"{word} => {value}")
        return values


class DebugFactory(StoredStateFactory):
    """Makes states that show what is written to them."""

    def make_state_in(self, store: Any, partition_index: int, num_partitions: int) -> DebugMapState:
        return DebugMapState(store)


def build(conf: Mapping[str, Any]) -> Topology:
    """Returns the topology."""
    trident = TridentTopology()
    sentences = [sentence(number) for number in range(int(conf.get(COUNT, DEFAULTS[COUNT])))]
    (
        trident.new_stream("spout1", FixedBatchSpout("sentence", 3, sentences))
        .each("sentence", lambda tup: tup["sentence"].split(), "word")
        .group_by("word")
        .persistent_aggregate(DebugFactory(), Count(), "count")
        .parallelism_hint(2)
    )
    return trident.build()


if __name__ == "__main__":
    from storm_on_spark.spark.main import run_main

    run_main(build, conf)
