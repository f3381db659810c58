"""storm-starter's BasicDRPCTopology: a question is answered with an exclamation mark.

What to look for: a topology that answers requests. As a script it asks itself; on a cluster, a DRPC server does:

    python jobs/storm_starter/basic_drpc.py hello goodbye
    storm-spark submit jobs/storm_starter/basic_drpc.py -c 'drpc.servers=[drpc-host]'
    storm-spark drpc-client exclamation hello
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from storm_on_spark import BaseBasicBolt, BasicOutputCollector, Fields, OutputFieldsDeclarer, Topology, Tuple
from storm_on_spark.drpc import LinearDRPCTopologyBuilder

FUNCTION = "exclamation"
conf: dict[str, Any] = {}


class ExclaimBolt(BaseBasicBolt):
    """Adds an exclamation mark."""

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        collector.emit([tup[0], tup[1] + "!"])

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("id", "result"))


def builder() -> LinearDRPCTopologyBuilder:
    """Returns the chain of bolts."""
    found = LinearDRPCTopologyBuilder(FUNCTION)
    found.add_bolt(ExclaimBolt(), 3)
    return found


def build(conf: Mapping[str, Any]) -> Topology:
    """Returns the topology, for the servers of `drpc.servers`."""
    return builder().create_remote_topology()


if __name__ == "__main__":
    from storm_on_spark import LocalCluster, LocalDRPC

    with LocalDRPC() as drpc, LocalCluster() as cluster:
        cluster.submit_topology("basic-drpc", conf, builder().create_local_topology(drpc))
        for word in sys.argv[1:] or ["hello", "goodbye"]:
            print(f'Result for "{word}": {drpc.execute(FUNCTION, word)}')
