"""storm-starter's ResourceAwareExampleTopology: components say how much of a core and of memory they need.

What to look for: a cache that all tasks of a process share. The loads are kept with the topology, for Storm's clients
that read them; Spark's own settings decide where tasks run.

    storm-spark run jobs/storm_starter/resource_aware.py -c rows.count=10
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rows import DEFAULTS, PrinterBolt, RowSpout, word

from storm_on_spark import (
    BaseBasicBolt,
    BasicOutputCollector,
    Config,
    Fields,
    OutputFieldsDeclarer,
    Topology,
    TopologyBuilder,
    Tuple,
)

conf = {**DEFAULTS, Config.TOPOLOGY_PRIORITY: 29}

CACHE: dict[str, str] = {}
"""Of this process. If it is lost, the words are made again."""

MOST = 100_000


class ExclamationBolt(BaseBasicBolt):
    """Adds exclamation marks, unless another task has already done so."""

    stateless = True

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        given = tup["word"]
        if given not in CACHE:
            if len(CACHE) >= MOST:
                CACHE.clear()
            CACHE[given] = given + "!!!"
        collector.emit([CACHE[given]])

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("word"))


def build(conf: Mapping[str, Any]) -> Topology:
    """Returns the topology."""
    builder = TopologyBuilder()
    builder.set_spout("word", RowSpout(["word"], word), 10).set_cpu_load(20).set_memory_load(64, 16)
    builder.set_bolt("exclaim1", ExclamationBolt(), 3).shuffle_grouping("word")
    builder.set_bolt("exclaim2", ExclamationBolt(), 2).shuffle_grouping("exclaim1").set_memory_load(100)
    builder.set_bolt("printer", PrinterBolt()).shuffle_grouping("exclaim2")
    return builder.create_topology()


if __name__ == "__main__":
    from storm_on_spark.spark.main import run_main

    run_main(build, conf)
