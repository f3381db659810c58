"""storm-starter's PersistentWindowingTopology: the mean of a window of ten seconds, and that of all windows.

What to look for: a window that may be larger than memory. Its tuples are in the bolt's state and are read slice by
slice. Storm wants `withPersistence` for that and a Redis to keep them; here it is always so.

    storm-spark run jobs/storm_starter/persistent_windowing.py
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from integers import PrinterBolt, RandomIntegerSpout

from storm_on_spark import (
    BaseStatefulWindowedBolt,
    Duration,
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


class AvgBolt(BaseStatefulWindowedBolt):
    """Emits the mean of all windows so far, and that of the last one."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        self._collector = collector

    def init_state(self, state: KeyValueState) -> None:
        self._state = state

    def execute(self, window: TupleWindow) -> None:
        total = sum(tup["value"] for tup in window)
        of_all, number = self._state.get("avg", (0, 0))
        of_all, number = of_all + total, number + len(window)
        self._state.put("avg", (of_all, number))
        self._collector.emit([f"global={of_all / number:.2f}", f"window={total / len(window):.2f}"])

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("global", "window"))


def build(conf: Mapping[str, Any]) -> Topology:
    """Returns the topology."""
    means = AvgBolt().with_window(Duration.seconds(10), Duration.seconds(2)).with_persistence()
    builder = TopologyBuilder()
    builder.set_spout("spout", RandomIntegerSpout())
    builder.set_bolt("avgbolt", means.with_max_events_in_memory(25_000)).shuffle_grouping("spout")
    builder.set_bolt("printer", PrinterBolt()).shuffle_grouping("avgbolt")
    return builder.create_topology()


if __name__ == "__main__":
    from storm_on_spark.spark.main import run_main

    run_main(build, conf)
