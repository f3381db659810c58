"""Coordination: bolts learn when they have got all tuples of a request; Storm's `org.apache.storm.coordination`.

The rules are in `rules.py`, without clock and without I/O.
"""

from __future__ import annotations

from storm_on_spark.coordination.batch import (
    BaseBatchBolt,
    BatchBoltCollector,
    BatchBoltExecutor,
    FinishedCallback,
    IBatchBolt,
    TimeoutCallback,
)
from storm_on_spark.coordination.coordinated import COORD_STREAM, CoordinatedBolt, IdStreamSpec, SourceArgs

__all__ = [
    "COORD_STREAM",
    "BaseBatchBolt",
    "BatchBoltCollector",
    "BatchBoltExecutor",
    "CoordinatedBolt",
    "FinishedCallback",
    "IBatchBolt",
    "IdStreamSpec",
    "SourceArgs",
    "TimeoutCallback",
]
