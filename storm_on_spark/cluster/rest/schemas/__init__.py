"""The answers of the REST interface, with Storm UI's field names and types.

Where Storm UI has something that doesn't exist here, the field is there with the value that Storm UI gives when it is
switched off: memory and CPU are 0.0 (Spark schedules the tasks). What is ours is marked so.
"""

from __future__ import annotations

from storm_on_spark.cluster.rest.schemas.cluster import (
    ClusterSummary,
    NimbusEntry,
    NimbusStatus,
    NimbusSummaries,
    PacemakerEntry,
)
from storm_on_spark.cluster.rest.schemas.component import ComponentPage
from storm_on_spark.cluster.rest.schemas.counters import BoltWindow, ExecutorStats, InputStats, OutputStats, SpoutWindow
from storm_on_spark.cluster.rest.schemas.errors import ComponentError, ErrorFields, TopologyErrors
from storm_on_spark.cluster.rest.schemas.lag import PartitionLag, SpoutLag
from storm_on_spark.cluster.rest.schemas.page import Page
from storm_on_spark.cluster.rest.schemas.plan import RunningOperator, RunningPlan, RunningStage
from storm_on_spark.cluster.rest.schemas.supervisors import (
    HostPort,
    SupervisorPage,
    SupervisorStatus,
    SupervisorSummaries,
    TopologyWorkers,
    Worker,
)
from storm_on_spark.cluster.rest.schemas.topologies import (
    BoltLine,
    SpoutLine,
    TopologyPage,
    TopologyStatus,
    TopologySummaries,
    WarningLine,
)

__all__ = [
    "BoltLine",
    "BoltWindow",
    "ClusterSummary",
    "ComponentError",
    "ComponentPage",
    "ErrorFields",
    "ExecutorStats",
    "HostPort",
    "InputStats",
    "NimbusEntry",
    "NimbusStatus",
    "NimbusSummaries",
    "OutputStats",
    "PacemakerEntry",
    "Page",
    "PartitionLag",
    "RunningOperator",
    "RunningPlan",
    "RunningStage",
    "SpoutLag",
    "SpoutLine",
    "SpoutWindow",
    "SupervisorPage",
    "SupervisorStatus",
    "SupervisorSummaries",
    "TopologyErrors",
    "TopologyPage",
    "TopologyStatus",
    "TopologySummaries",
    "TopologyWorkers",
    "WarningLine",
    "Worker",
]
