"""storm-starter's LambdaTopology: a spout and bolts that are functions.

What to look for: a function may use variables around it, as long as these can't change. The spout has no end.

    storm-spark run jobs/storm_starter/lambda_topology.py --seconds 5
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from storm_on_spark import Topology, TopologyBuilder

conf: dict[str, Any] = {}


def build(conf: Mapping[str, Any]) -> Topology:
    """Returns the topology."""
    prefix, suffix, tag = "Hello lambda:", ":so cool!", 999
    builder = TopologyBuilder()
    builder.set_spout("spout1", lambda: str(uuid.uuid4()))
    builder.set_bolt(
        "bolt1",
        lambda tup, out: out.emit([prefix + tup["lambda"].split("-")[0] + suffix, tag]),
        fields=("strValue", "intValue"),
    ).shuffle_grouping("spout1")
    builder.set_bolt("bolt2", lambda tup: print(tuple(tup))).shuffle_grouping("bolt1")
    return builder.create_topology()


if __name__ == "__main__":
    from storm_on_spark.spark.main import run_main

    run_main(build, conf)
