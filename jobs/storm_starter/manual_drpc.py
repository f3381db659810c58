"""storm-starter's ManualDRPC: the same as `basic_drpc.py`, wired by hand.

What to look for: a `DRPCSpout` is a spout like any other, and the tuple that reaches `ReturnResults` is the answer.

    python jobs/storm_starter/manual_drpc.py aaa bbb
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from storm_on_spark import (
    BaseBasicBolt,
    BasicOutputCollector,
    Fields,
    OutputFieldsDeclarer,
    Topology,
    TopologyBuilder,
    Tuple,
)
from storm_on_spark.drpc import DRPCSpout, ReturnResults

FUNCTION = "exclamation"
conf: dict[str, Any] = {}


class ExclamationBolt(BaseBasicBolt):
    """Adds exclamation marks, and passes on the return address."""

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        collector.emit([tup["args"] + "!!!", tup["return-info"]])

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("result", "return-info"))


def topology(drpc: Any = None) -> Topology:
    """Returns the topology, for a `LocalDRPC`, or for the servers of `drpc.servers`."""
    builder = TopologyBuilder()
    builder.set_spout("drpc", DRPCSpout(FUNCTION, drpc))
    builder.set_bolt("exclaim", ExclamationBolt(), 3).shuffle_grouping("drpc")
    builder.set_bolt("return", ReturnResults(), 3).shuffle_grouping("exclaim")
    return builder.create_topology()


def build(conf: Mapping[str, Any]) -> Topology:
    """Returns the topology, for the servers of `drpc.servers`."""
    return topology()


if __name__ == "__main__":
    from storm_on_spark import LocalCluster, LocalDRPC

    with LocalDRPC() as drpc, LocalCluster() as cluster:
        cluster.submit_topology("manual-drpc", conf, topology(drpc))
        for word in sys.argv[1:] or ["aaa", "bbb"]:
            print(drpc.execute(FUNCTION, word))
