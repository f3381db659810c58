"""storm-starter's TridentWindowingInmemoryStoreTopology: words are counted in windows that span batches.

Storm keeps windows in memory, or in HBase; here they are in the checkpoint, and exact.

    storm-spark run jobs/storm_starter/trident_windowing.py
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rows import COUNT, DEFAULTS, sentence

from storm_on_spark import Topology
from storm_on_spark.streams import SlidingWindows
from storm_on_spark.trident import Count, Debug, FixedBatchSpout, TridentTopology
from storm_on_spark.windowing import Count as Tuples

LENGTH, SLIDE = 1000, 100
conf = {**DEFAULTS, "topology.max.spout.pending": 20, "topology.trident.batch.emit.interval.millis": 50}


def build(conf: Mapping[str, Any]) -> Topology:
    """Returns the topology."""
    trident = TridentTopology()
    sentences = [sentence(number) for number in range(int(conf.get(COUNT, DEFAULTS[COUNT])))]
    (
        trident.new_stream("spout1", FixedBatchSpout("sentence", 3, sentences))
        .each("sentence", lambda tup: tup["sentence"].split(), "word")
        .window(SlidingWindows.of(Tuples(LENGTH), Tuples(SLIDE)), "word", Count(), "count")
        .each("count", Debug("words in the window"))
    )
    return trident.build()


if __name__ == "__main__":
    from storm_on_spark.spark.main import run_main

    run_main(build, conf)
