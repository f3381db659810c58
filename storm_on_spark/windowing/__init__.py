"""Windows: bolts that repeatedly evaluate the latest tuples, a number of them or those of a span of time.

`bolts.py` has the classes that users subclass, `executor.py` the bolt that runs them. The rules are in `rules/`,
without clock and without I/O. The tuples of windows are in `content/`, over a `KeyValueState`. Nothing here knows the
runtime. Bolts declare their timers (`definition.py`); `runtime/batches/input.py` says which are due, and
`runtime/bolts/stage.py` delivers them as tuples.
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
        # Importing Arrow takes 100 ms; only columnar windows need it.
        from storm_on_spark.windowing.columnar import bolts

        return getattr(bolts, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
