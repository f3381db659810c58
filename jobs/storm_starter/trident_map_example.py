"""storm-starter's TridentMapExample: `map`, `flat_map`, `filter` and `peek`, before words are counted.

What to look for: plain functions; all of them before the counting run in one bolt.

    storm-spark run jobs/storm_starter/trident_map_example.py
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rows import COUNT, DEFAULTS, sentence

from storm_on_spark import LocalDRPC, Topology
from storm_on_spark.trident import Count, FilterNull, FixedBatchSpout, Sum, TridentTopology
from storm_on_spark.trident.state import MapGet, MemoryMapState

FUNCTION = "words"
SHORT = frozenset(["the", "a", "of", "and", "at", "in", "with", "i", "am"])
conf = {**DEFAULTS, "topology.max.spout.pending": 20, "topology.trident.batch.emit.interval.millis": 50}


def topology(conf: Mapping[str, Any], drpc: LocalDRPC | None = None) -> Topology:
    """Returns the topology; without a DRPC server it only counts and prints."""
    trident = TridentTopology()
    sentences = [sentence(number) for number in range(int(conf.get(COUNT, DEFAULTS[COUNT])))]
    counts = (
        trident.new_stream("spout1", FixedBatchSpout("word", 3, sentences))
        .flat_map(lambda tup: tup["word"].split())
        .map(lambda tup: tup["word"].upper())
        .filter(lambda tup: tup["word"].lower() not in SHORT)
        .peek(lambda tup: print(tup["word"]))
        .group_by("word")
        .persistent_aggregate(MemoryMapState.Factory(), Count(), "count")
        .parallelism_hint(2)
    )
    if drpc is not None:
        (
            trident.new_drpc_stream(FUNCTION, drpc)
            .flat_map(lambda tup: tup["args"].split(), "word")
            .map(lambda tup: tup["word"].upper())
            .group_by("word")
            .state_query(counts, "word", MapGet(), "count")
            .filter(["count"], FilterNull())
            .aggregate("count", Sum(), "sum")
        )
    return trident.build()


def build(conf: Mapping[str, Any]) -> Topology:
    """Returns the topology without questions."""
    return topology(conf)


if __name__ == "__main__":
    from storm_on_spark.spark.main import run_main

    run_main(build, conf)
