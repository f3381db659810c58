"""Loading the topology that a driver is to run: the first moment at which the user's code runs."""

from __future__ import annotations

import sys

from storm_on_spark.cluster.driver.files import DriverSpec
from storm_on_spark.launch.loader import load
from storm_on_spark.spark.compiled import CompiledTopology, compile_topology


def set_paths(spec: DriverSpec) -> None:
    """Lets the code, and what it requires, be imported, here and in the workers."""
    sys.path[:0] = spec.paths
    sys.path.extend(spec.packages)


def load_topology(spec: DriverSpec) -> CompiledTopology:
    """Imports the code and compiles the topology.

    Raises:
        LoadError: the code can't be imported, or makes no topology.
        StormError: the topology or its configuration is wrong.
    """
    target = load(spec.target)
    conf = {**target.conf, **spec.conf}
    return compile_topology(target.topology(conf), conf).with_executors(spec.executors)
