"""Metrics of users: the arguments and results of `TopologyContext.register_*`, with Storm's and Dropwizard's names."""

from __future__ import annotations

from storm_on_spark.api.metrics.classic import (
    AssignableMetric,
    CombinedMetric,
    CountMetric,
    ICombiner,
    IMetric,
    IReducer,
    MeanReducer,
    MultiCountMetric,
    MultiReducedMetric,
    ReducedMetric,
)
from storm_on_spark.api.metrics.consumer import DataPoint, IMetricsConsumer, TaskInfo
from storm_on_spark.api.metrics.event_logger import EventInfo, IEventLogger
from storm_on_spark.api.metrics.instruments import Counter, Gauge, Histogram, Meter, Timer
from storm_on_spark.api.metrics.rates import Snapshot

__all__ = [
    "AssignableMetric",
    "CombinedMetric",
    "CountMetric",
    "Counter",
    "DataPoint",
    "EventInfo",
    "Gauge",
    "Histogram",
    "ICombiner",
    "IEventLogger",
    "IMetric",
    "IMetricsConsumer",
    "IReducer",
    "MeanReducer",
    "Meter",
    "MultiCountMetric",
    "MultiReducedMetric",
    "ReducedMetric",
    "Snapshot",
    "TaskInfo",
    "Timer",
]
