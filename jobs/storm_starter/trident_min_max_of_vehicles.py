"""storm-starter's TridentMinMaxOfVehiclesTopology: the minimum and the maximum of each batch, by functions of objects.

Storm takes comparators; here a key function, as for `sorted`, says what to compare.

    storm-spark run jobs/storm_starter/trident_min_max_of_vehicles.py
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rows import COUNT, DEFAULTS

from storm_on_spark import Topology
from storm_on_spark.trident import Debug, FixedBatchSpout, TridentTopology

BATCH = 10
conf = {**DEFAULTS, COUNT: 30, "topology.trident.batch.emit.interval.millis": 50}


@dataclass(frozen=True)
class Vehicle:
    """A vehicle, with the greatest speed in km/h and the efficiency in km/l."""

    name: str
    max_speed: int
    efficiency: float


@dataclass(frozen=True)
class Driver:
    """A driver."""

    name: str
    id: int


def rows(count: int) -> list[tuple[Vehicle, Driver]]:
    """Returns vehicles and their drivers."""
    source = random.Random("vehicles")
    return [
        (
            Vehicle(f"vehicle-{n}", source.randrange(50, 250), source.randrange(50, 300) / 10),
            Driver(f"driver-{n}", n),
        )
        for n in range(count)
    ]


def build(conf: Mapping[str, Any]) -> Topology:
    """Returns the topology."""
    trident = TridentTopology()
    fields = ["vehicle", "driver"]
    given = rows(int(conf.get(COUNT, DEFAULTS[COUNT])))
    stream = trident.new_stream("vehicles", FixedBatchSpout(fields, BATCH, given))
    stream.min(lambda tup: tup["vehicle"].max_speed).each("vehicle", Debug("slowest vehicle"))
    stream.max(lambda tup: tup["vehicle"].max_speed).project("driver").each("driver", Debug("fastest driver"))
    stream.min_by("vehicle", lambda vehicle: vehicle.efficiency).each("vehicle", Debug("least efficient"))
    stream.max_by("vehicle", lambda vehicle: vehicle.efficiency).each("vehicle", Debug("most efficient"))
    return trident.build()


if __name__ == "__main__":
    from storm_on_spark.spark.main import run_main

    run_main(build, conf)
