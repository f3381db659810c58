"""storm-starter's SlidingWindowTopology: the mean of three sums over the last thirty integers.

What to look for: a window that slides by a number of tuples, with its new and its expired tuples, and a tumbling one
over the output of the first.

    storm-spark run jobs/storm_starter/sliding_window.py
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from integers import PrinterBolt, RandomIntegerSpout

from storm_on_spark import (
    BaseWindowedBolt,
    Count,
    Fields,
    OutputCollector,
    OutputFieldsDeclarer,
    Topology,
    TopologyBuilder,
    TopologyContext,
    TupleWindow,
)

conf: dict[str, Any] = {}


class SlidingWindowSumBolt(BaseWindowedBolt):
    """Keeps the sum of a window: new values are added, and expired ones are subtracted."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        self._collector = collector
        self.sum = 0

    def execute(self, window: TupleWindow) -> None:
        self.sum += sum(tup["value"] for tup in window.new)
        self.sum -= sum(tup["value"] for tup in window.expired)
        self._collector.emit([self.sum])

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("sum"))


class TumblingWindowAvgBolt(BaseWindowedBolt):
    """Emits the mean of each window, rounded down."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        self._collector = collector

    def execute(self, window: TupleWindow) -> None:
        self._collector.emit([sum(tup["sum"] for tup in window) // len(window)])

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("avg"))


def build(conf: Mapping[str, Any]) -> Topology:
    """Returns the topology."""
    builder = TopologyBuilder()
    builder.set_spout("integer", RandomIntegerSpout())
    sums = SlidingWindowSumBolt().with_window(Count(30), Count(10))
    builder.set_bolt("slidingsum", sums).shuffle_grouping("integer")
    builder.set_bolt("tumblingavg", TumblingWindowAvgBolt().with_tumbling_window(Count(3))).shuffle_grouping(
        "slidingsum"
    )
    builder.set_bolt("printer", PrinterBolt()).shuffle_grouping("tumblingavg")
    return builder.create_topology()


if __name__ == "__main__":
    from storm_on_spark.spark.main import run_main

    run_main(build, conf)
