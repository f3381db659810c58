"""Windows: bolts that evaluate the last so many tuples, or those of some time, again and again.

`bolts.py` has what users write, `executor.py` the bolt that runs it. The rules are in `rules/`, without clock and
without I/O; what a window holds is in `content/`, over a `KeyValueState`. Nothing here knows of the runtime.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from storm_on_spark.windowing.aggregates.functions import (
    Aggregate,
    CountOf,
    DistinctOf,
    MaxOf,
    MeanOf,
    MinOf,
    SumOf,
)
from storm_on_spark.windowing.aggregates.window import AggregateWindow
from storm_on_spark.windowing.bolts import (
    BaseStatefulWindowedBolt,
    BaseWindowedBolt,
    IStatefulWindowedBolt,
    IWindowedBolt,
)
from storm_on_spark.windowing.definition import Count, Duration, TimestampExtractor
from storm_on_spark.windowing.window import TupleWindow

if TYPE_CHECKING:
    from storm_on_spark.windowing.columnar.bolts import BatchWindowedBolt
    from storm_on_spark.windowing.columnar.window import BatchWindow

__all__ = [
    "Aggregate",
    "AggregateWindow",
    "BaseStatefulWindowedBolt",
    "BaseWindowedBolt",
    "BatchWindow",
    "BatchWindowedBolt",
    "Count",
    "CountOf",
    "DistinctOf",
    "Duration",
    "IStatefulWindowedBolt",
    "IWindowedBolt",
    "MaxOf",
    "MeanOf",
    "MinOf",
    "SumOf",
    "TimestampExtractor",
    "TupleWindow",
]


def __getattr__(name: str) -> Any:
    if name in ("BatchWindow", "BatchWindowedBolt"):
        # Arrow takes 100 ms to import, which others need not wait for.
        from storm_on_spark.windowing.columnar import bolts

        return getattr(bolts, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
