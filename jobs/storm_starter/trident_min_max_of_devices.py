"""storm-starter's TridentMinMaxOfDevicesTopology: the minimum and the maximum of each batch, by fields.

storm-spark run jobs/storm_starter/trident_min_max_of_devices.py
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from rows import COUNT, DEFAULTS

from storm_on_spark import Topology
from storm_on_spark.trident import Debug, FixedBatchSpout, TridentTopology

DEVICES = 10
conf = {**DEFAULTS, COUNT: 30, "topology.trident.batch.emit.interval.millis": 50}


def devices(count: int) -> list[tuple[str, int]]:
    """Returns ids of devices, and counts."""
    source = random.Random("devices")
    return [(f"device-{source.randrange(1000):03}", source.randrange(1000)) for _ in range(count)]


def build(conf: Mapping[str, Any]) -> Topology:
    """Returns the topology."""
    trident = TridentTopology()
    fields = ["device-id", "count"]
    stream = trident.new_stream(
        "device-gen-spout", FixedBatchSpout(fields, DEVICES, devices(int(conf.get(COUNT, DEFAULTS[COUNT]))))
    )
    stream.min_by("device-id").each(fields, Debug("device with min id"))
    stream.max_by("count").each(fields, Debug("device with max count"))
    return trident.build()


if __name__ == "__main__":
    from storm_on_spark.spark.main import run_main

    run_main(build, conf)
