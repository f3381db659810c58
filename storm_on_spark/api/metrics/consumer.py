"""What users write to send metrics somewhere: Storm's `IMetricsConsumer`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class TaskInfo:
    """The task that data points are of."""

    src_worker_host: str
    src_worker_port: int
    src_component_id: str
    src_task_id: int
    timestamp: int
    """Seconds since the epoch."""
    update_interval_secs: int
    """So many seconds the points are of."""


@dataclass(frozen=True)
class DataPoint:
    """A metric's value in an interval."""

    name: str
    value: Any
    """A number, or numbers by stream."""


class IMetricsConsumer(ABC):
    """Takes the metrics of all tasks, in the driver, every `topology.builtin.metrics.bucket.size.secs`.

    `topology.metrics.consumer.register` names consumers: a list of mappings with `class`, `module.Class`, and
    `argument`. Of Storm's own, `org.apache.storm.metric.LoggingMetricsConsumer` and
    `org.apache.storm.metric.HttpForwardingMetricsConsumer` are known by their names.

    Example:
        >>> class Printing(IMetricsConsumer):
        ...     def handle_data_points(self, task_info, data_points):
        ...         print(task_info.src_component_id, [point.name for point in data_points])
        >>> Printing().handle_data_points(TaskInfo("host", 6700, "split", 3, 0, 60), [DataPoint("hits", 5)])
        split ['hits']
    """

    def prepare(self, conf: Mapping[str, Any], argument: Any) -> None:  # noqa: B027 # most need nothing
        """Called once, before the first points.

        Args:
            conf: of the topology.
            argument: what the configuration says of this consumer.
        """

    @abstractmethod
    def handle_data_points(self, task_info: TaskInfo, data_points: Sequence[DataPoint]) -> None:
        """Takes the points of a task; what it raises is logged, and the topology runs on."""

    def cleanup(self) -> None:  # noqa: B027 # most need nothing
        """Called at the end, after the last points."""
