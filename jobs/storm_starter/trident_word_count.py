"""storm-starter's TridentWordCount: words are counted in a state, which can be queried for the counts of some words.

What to look for: each task counts the words of a batch first, so that few tuples change tasks; the state and the
query of it are in one bolt. `storm-spark explain` shows the bolts.

    python jobs/storm_starter/trident_word_count.py "cat dog the man"
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from rows import COUNT, DEFAULTS, sentence

from storm_on_spark import LocalDRPC, Topology
from storm_on_spark.trident import Count, FilterNull, FixedBatchSpout, Sum, TridentTopology
from storm_on_spark.trident.state import MapGet, MemoryMapState

FUNCTION = "words"
conf = {**DEFAULTS, "topology.max.spout.pending": 20, "topology.trident.batch.emit.interval.millis": 50}


def topology(conf: Mapping[str, Any], drpc: LocalDRPC | None = None) -> Topology:
    """Returns the topology; without a DRPC server it only counts."""
    trident = TridentTopology()
    sentences = [sentence(number) for number in range(int(conf.get(COUNT, DEFAULTS[COUNT])))]
    words = (
        trident.new_stream("spout1", FixedBatchSpout("sentence", 3, sentences))
        .name("split")
        .flat_map(lambda tup: tup["sentence"].split(), "word")
    )
    counts = words.group_by("word").persistent_aggregate(MemoryMapState.Factory(), Count(), "count").parallelism_hint(2)
    if drpc is not None:
        (
            trident.new_drpc_stream(FUNCTION, drpc)
            .each("args", lambda tup: tup["args"].split(), "word")
            .group_by("word")
            .state_query(counts, "word", MapGet(), "count")
            .each("count", FilterNull())
            .aggregate("count", Sum(), "sum")
        )
    return trident.build()


def build(conf: Mapping[str, Any]) -> Topology:
    """Returns the topology without questions."""
    return topology(conf)


if __name__ == "__main__":
    from storm_on_spark import LocalCluster

    with LocalDRPC() as drpc, LocalCluster() as cluster:
        cluster.submit_topology("word-count", conf, topology(conf, drpc))
        for words in sys.argv[1:] or ["cow moon", "the and seven"]:
            print(f"{words}: {drpc.execute(FUNCTION, words)}")
