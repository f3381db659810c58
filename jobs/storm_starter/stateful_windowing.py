"""storm-starter's StatefulWindowingTopology: a sum over all windows, in a state that outlives the topology.

What to look for: a windowed bolt with a `KeyValueState`. Storm evaluates windows again after a crash, and uses message
ids to find out which; here the windows are in the checkpoint with the state, so none is evaluated twice.

    storm-spark run jobs/storm_starter/stateful_windowing.py
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from integers import PrinterBolt, RandomIntegerSpout

from storm_on_spark import (
    BaseStatefulWindowedBolt,
    Count,
    Fields,
    KeyValueState,
    OutputCollector,
    OutputFieldsDeclarer,
    Topology,
    TopologyBuilder,
    TopologyContext,
    TupleWindow,
)

conf: dict[str, Any] = {}


class WindowSumBolt(BaseStatefulWindowedBolt):
    """Adds up the sums of all windows."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        self._collector = collector

    def init_state(self, state: KeyValueState) -> None:
        self._state = state

    def execute(self, window: TupleWindow) -> None:
        total = self._state.get("sum", 0) + sum(tup["value"] for tup in window)
        self._state.put("sum", total)
        self._collector.emit([total])

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("sum"))


def build(conf: Mapping[str, Any]) -> Topology:
    """Returns the topology."""
    sums = WindowSumBolt().with_window(Count(5), Count(3)).with_message_id_field("msgid")
    builder = TopologyBuilder()
    builder.set_spout("spout", RandomIntegerSpout())
    builder.set_bolt("sumbolt", sums).shuffle_grouping("spout")
    builder.set_bolt("printer", PrinterBolt()).shuffle_grouping("sumbolt")
    return builder.create_topology()


if __name__ == "__main__":
    from storm_on_spark.spark.main import run_main

    run_main(build, conf)
