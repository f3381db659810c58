"""Joins of streams: within a window, as Storm's `JoinBolt`, or within an interval around each tuple.

The rules are in `rules.py`, `interval.py` and `selectors.py`, without clock and without I/O.
"""

from __future__ import annotations

from storm_on_spark.joins.interval_bolt import IntervalJoinBolt
from storm_on_spark.joins.join_bolt import JoinBolt
from storm_on_spark.joins.rules import Selector

__all__ = ["IntervalJoinBolt", "JoinBolt", "Selector"]
