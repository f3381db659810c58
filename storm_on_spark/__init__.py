"""Storm on Spark: Storm topologies in Python, run by Spark Structured Streaming.

The names of `storm_on_spark.api` are here too; `LocalCluster` and `compile_topology`, which need pyspark, are
imported when they are first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from storm_on_spark import api
from storm_on_spark.api import *  # noqa: F403

if TYPE_CHECKING:
    from storm_on_spark.spark import LocalCluster, compile_topology

__version__ = "0.1.0"

_NEED_SPARK = ("LocalCluster", "compile_topology")

__all__ = sorted([*api.__all__, "LocalCluster", "__version__", "compile_topology"])  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _NEED_SPARK:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from storm_on_spark import spark

    value = getattr(spark, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
