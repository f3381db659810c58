"""Lowering of a plan to PySpark, and running it. Importing this package does not import pyspark yet."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from storm_on_spark.spark.compiled import CompiledTopology, compile_topology
    from storm_on_spark.spark.local_cluster import LocalCluster
    from storm_on_spark.spark.running.topology import TopologyQuery

__all__ = ["CompiledTopology", "LocalCluster", "TopologyQuery", "compile_topology"]

_HOMES = {
    "CompiledTopology": "compiled",
    "LocalCluster": "local_cluster",
    "TopologyQuery": "running.topology",
    "compile_topology": "compiled",
}


def __getattr__(name: str) -> Any:
    # On demand: Python workers import modules of this package and need neither the compiler nor the cluster.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
