"""Windows: bolts that evaluate the last so many tuples, or those of some time, again and again.

`bolts.py` has what users write, `executor.py` the bolt that runs it. The rules are in `rules/`, without clock and
without I/O; what a window holds is in `content/`, over a `KeyValueState`. Nothing here knows of the runtime.
"""

from __future__ import annotations

from storm_on_spark.windowing.bolts import (
    BaseStatefulWindowedBolt,
    BaseWindowedBolt,
    IStatefulWindowedBolt,
    IWindowedBolt,
)
from storm_on_spark.windowing.definition import Count, Duration, TimestampExtractor
from storm_on_spark.windowing.window import TupleWindow

__all__ = [
    "BaseStatefulWindowedBolt",
    "BaseWindowedBolt",
    "Count",
    "Duration",
    "IStatefulWindowedBolt",
    "IWindowedBolt",
    "TimestampExtractor",
    "TupleWindow",
]
