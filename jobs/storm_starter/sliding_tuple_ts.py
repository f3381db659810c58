"""storm-starter's SlidingTupleTsTopology: sums over five seconds of the tuples' own time, every three seconds.

What to look for: the time at which a tuple was made counts, not its arrival; and a lag, by which tuples may be out of
order.

    storm-spark run jobs/storm_starter/sliding_tuple_ts.py
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from integers import PrinterBolt, RandomIntegerSpout
from sliding_window import SlidingWindowSumBolt

from storm_on_spark import Duration, Topology, TopologyBuilder

conf: dict[str, Any] = {}


def build(conf: Mapping[str, Any]) -> Topology:
    """Returns the topology."""
    sums = SlidingWindowSumBolt().with_window(Duration.seconds(5), Duration.seconds(3))
    sums = sums.with_timestamp_field("ts").with_lag(Duration.seconds(5))
    builder = TopologyBuilder()
    builder.set_spout("integer", RandomIntegerSpout())
    builder.set_bolt("slidingsum", sums).shuffle_grouping("integer")
    builder.set_bolt("printer", PrinterBolt()).shuffle_grouping("slidingsum")
    return builder.create_topology()


if __name__ == "__main__":
    from storm_on_spark.spark.main import run_main

    run_main(build, conf)
