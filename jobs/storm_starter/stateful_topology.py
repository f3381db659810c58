"""storm-starter's StatefulTopology: sums in a key-value state.

What to look for: `init_state` gets the state as of the last micro-batch. In Storm the state is in memory or in Redis,
and counts at least once; here it is in the checkpoint, and exact.

    storm-spark run jobs/storm_starter/stateful_topology.py
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rows import DEFAULTS, RowSpout, integer

from storm_on_spark import (
    BaseBasicBolt,
    BaseStatefulBolt,
    BasicOutputCollector,
    Fields,
    KeyValueState,
    OutputCollector,
    OutputFieldsDeclarer,
    Topology,
    TopologyBuilder,
    TopologyContext,
    Tuple,
)

conf = dict(DEFAULTS)


class StatefulSumBolt(BaseStatefulBolt):
    """Emits the sum of all values so far."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        self._collector = collector

    def init_state(self, state: KeyValueState) -> None:
        self._state = state

    def execute(self, tup: Tuple) -> None:
        total = self._state.get("sum", 0) + tup["value"]
        self._state.put("sum", total)
        self._collector.emit([total], anchors=tup)
        self._collector.ack(tup)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("value"))


class PrintAndPass(BaseBasicBolt):
    """Prints a value, and passes it on."""

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        print(tup["value"])
        collector.emit([tup["value"]])

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("value"))


def build(conf: Mapping[str, Any]) -> Topology:
    """Returns the topology."""
    builder = TopologyBuilder()
    builder.set_spout("spout", RowSpout(["value", "ts", "msgid"], integer))
    builder.set_bolt("partialsum", StatefulSumBolt()).shuffle_grouping("spout")
    builder.set_bolt("printer", PrintAndPass(), 2).shuffle_grouping("partialsum")
    builder.set_bolt("total", StatefulSumBolt()).shuffle_grouping("printer")
    return builder.create_topology()


if __name__ == "__main__":
    from storm_on_spark.spark.main import run_main

    run_main(build, conf)
