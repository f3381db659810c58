"""Storm on Spark: Storm topologies in Python, run by Spark Structured Streaming.

The names of `storm_on_spark.api` are here too. Each is imported when it is first asked for, so that the command line
can take the signals over before anything else. `LocalCluster` and `compile_topology` need pyspark: writing a topology,
or testing a bolt, starts in milliseconds.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from storm_on_spark import api
    from storm_on_spark.api import *  # noqa: F403 # these are the names of `api.__all__`
    from storm_on_spark.cluster.drpc.local import LocalDRPC
    from storm_on_spark.joins import IntervalJoinBolt, JoinBolt
    from storm_on_spark.spark import LocalCluster, compile_topology
    from storm_on_spark.windowing import (
        BaseStatefulWindowedBolt,
        BaseWindowedBolt,
        Count,
        Duration,
        IStatefulWindowedBolt,
        IWindowedBolt,
        TupleWindow,
    )

    __all__ = [
        "BaseStatefulWindowedBolt",
        "BaseWindowedBolt",
        "Count",
        "Duration",
        "IStatefulWindowedBolt",
        "IWindowedBolt",
        "IntervalJoinBolt",
        "JoinBolt",
        "LocalCluster",
        "LocalDRPC",
        "TupleWindow",
        "__version__",
        "compile_topology",
    ]
    __all__ += api.__all__

__version__ = "0.1.0"

_HOMES = {
    "IntervalJoinBolt": "joins",
    "JoinBolt": "joins",
    "LocalCluster": "spark",
    "LocalDRPC": "cluster.drpc.local",
    "compile_topology": "spark",
} | dict.fromkeys(
    (
        "BaseStatefulWindowedBolt",
        "BaseWindowedBolt",
        "Count",
        "Duration",
        "IStatefulWindowedBolt",
        "IWindowedBolt",
        "TupleWindow",
    ),
    "windowing",
)
"""Packages other than `api` that have names."""


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return sorted([*import_module("storm_on_spark.api").__all__, *_HOMES, "__version__"])
    if name in _HOMES:
        home = import_module(f"storm_on_spark.{_HOMES[name]}")
    # All names of `api` begin with a capital. A package is asked for here too, and must not import `api`.
    elif name[:1].isupper() and name in import_module("storm_on_spark.api").__all__:
        home = import_module("storm_on_spark.api")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(home, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})
