"""Loading the topology that a driver is to run: the first moment at which the user's code runs."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping

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
    return with_executors(compile_topology(target.topology(conf), conf), spec.executors)


def with_executors(compiled: CompiledTopology, executors: Mapping[str, int]) -> CompiledTopology:
    """Returns the topology with other numbers of executors: as a rebalance asks for them, at most one for each task."""
    graph = compiled.graph
    wanted = {
        name: max(1, min(executors.get(name, count), len(graph.tasks[name]))) for name, count in graph.executors.items()
    }
    return CompiledTopology(dataclasses.replace(graph, executors=wanted))
