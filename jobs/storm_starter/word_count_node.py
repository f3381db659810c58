"""storm-starter's WordCountTopologyNode: sentences come from Node.js, and are split there.

What to look for: spouts and bolts in JavaScript, over Storm's multilang protocol, with the included library `storm`;
each task has its own child process. It needs `node`.

    storm-spark run jobs/storm_starter/word_count_node.py
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from anchored_word_count import WordCount
from rows import DEFAULTS, PrinterBolt

from storm_on_spark import Fields, Topology, TopologyBuilder
from storm_on_spark.multilang import ShellBolt, ShellSpout

conf = dict(DEFAULTS)

SCRIPTS = Path(__file__).parent / "node"


def build(conf: Mapping[str, Any]) -> Topology:
    """Returns the topology."""
    builder = TopologyBuilder()
    spout = ShellSpout(["node", str(SCRIPTS / "random_sentence.js")], ["sentence"])
    split = ShellBolt(["node", str(SCRIPTS / "split_sentence.js")], ["word"])
    builder.set_spout("spout", spout)
    builder.set_bolt("split", split, 2).shuffle_grouping("spout")
    builder.set_bolt("count", WordCount(), 2).fields_grouping("split", Fields("word"))
    builder.set_bolt("printer", PrinterBolt()).shuffle_grouping("count")
    return builder.create_topology()


if __name__ == "__main__":
    from storm_on_spark.spark.main import run_main

    run_main(build, conf)
