"""A real Spark cluster for tests: a master and workers of Spark's standalone mode, all on this host."""

from __future__ import annotations

from storm_on_spark.cluster.standalone import StandaloneCluster

__all__ = ["StandaloneCluster"]
