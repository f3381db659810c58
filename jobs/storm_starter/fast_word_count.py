"""storm-starter's FastWordCountTopology: the same count without message ids, to see how fast tuples go.

What to look for: without message ids nothing is tracked and nothing is replayed, which takes the least time. Storm
loses tuples of a worker that dies then. Here counts are still exact, because the spout's log is read again.

    storm-spark run jobs/storm_starter/fast_word_count.py
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anchored_word_count import SplitSentence, WordCount
from rows import DEFAULTS, PrinterBolt, RowSpout, sentence

from storm_on_spark import Config, Fields, Topology, TopologyBuilder

conf = {**DEFAULTS, Config.TOPOLOGY_ACKER_EXECUTORS: 0}


class FastSentenceSpout(RowSpout):
    """Emits sentences, without message ids."""

    def __init__(self) -> None:
        super().__init__(["sentence"], sentence, tracked=False)


def build(conf: Mapping[str, Any]) -> Topology:
    """Returns the topology."""
    builder = TopologyBuilder()
    builder.set_spout("spout", FastSentenceSpout(), 4)
    builder.set_bolt("split", SplitSentence(), 4).shuffle_grouping("spout")
    builder.set_bolt("count", WordCount(), 4).fields_grouping("split", Fields("word"))
    builder.set_bolt("printer", PrinterBolt()).shuffle_grouping("count")
    return builder.create_topology()


if __name__ == "__main__":
    from storm_on_spark.spark.main import run_main

    run_main(build, conf)
