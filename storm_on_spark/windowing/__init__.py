"""Windows: bolts that evaluate the last so many tuples, or those of some time, again and again.

`bolts.py` has what users write, `executor.py` the bolt that runs it. The rules are in `rules/`, without clock and
without I/O; what a window holds is in `content/`, over a `KeyValueState`. Nothing here knows of the runtime.
"""

from __future__ import annotations

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

__all__ = [
    "Aggregate",
    "AggregateWindow",
    "BaseStatefulWindowedBolt",
    "BaseWindowedBolt",
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
