"""Consumers of metrics: Storm's logging and HTTP ones, users' own, and the thread of the driver that calls them."""

from __future__ import annotations

import json
import logging
import socket
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from storm_on_spark.api.errors import ConfigError
from storm_on_spark.api.metrics.consumer import DataPoint, IMetricsConsumer, TaskInfo
from storm_on_spark.metrics.amounts import Amounts
from storm_on_spark.metrics.points import news, points
from storm_on_spark.runtime.reports.listeners import Listeners
from storm_on_spark.runtime.reports.named_classes import entries_of, made

metrics_log = logging.getLogger("storm_on_spark.metrics_log")
"""Where `LoggingMetricsConsumer` writes."""

KEY: Final = "topology.metrics.consumer.register"
_HTTP_SECS: Final = 10.0


class LoggingMetricsConsumer(IMetricsConsumer):
    """Logs each point in a line of Storm's format."""

    def handle_data_points(self, task_info: TaskInfo, data_points: Sequence[DataPoint]) -> None:
        """Logs the points of a task."""
        place = f"{task_info.src_worker_host:>15}:{task_info.src_worker_port:<4}"
        head = f"{task_info.timestamp:>15}\t{place}\t{task_info.src_task_id:>3}:{task_info.src_component_id:<11}"
        for point in data_points:
            metrics_log.info("%s\t%-25s\t%s", head, point.name, point.value)


class HttpForwardingMetricsConsumer(IMetricsConsumer):
    """Posts the points of each task to a URL, its `argument`, as JSON: `taskInfo` and `dataPoints`.

    Storm's posts objects of Kryo, which only a JVM reads.
    """

    def prepare(self, conf: Mapping[str, Any], argument: Any) -> None:
        """Takes the URL.

        Raises:
            ConfigError: it isn't a URL.
        """
        if not isinstance(argument, str) or not argument.startswith(("http://", "https://")):
            raise ConfigError(f"{KEY}: the argument of {type(self).__name__} is a URL, not {argument!r:.200}", key=KEY)
        self._url = argument

    def handle_data_points(self, task_info: TaskInfo, data_points: Sequence[DataPoint]) -> None:
        """Posts the points of a task."""
        document = {"taskInfo": asdict(task_info), "dataPoints": [asdict(point) for point in data_points]}
        body = json.dumps(document).encode()
        request = urllib.request.Request(self._url, body, {"Content-Type": "application/json"}, method="POST")  # noqa: S310 # checked above
        with urllib.request.urlopen(request, timeout=_HTTP_SECS):  # noqa: S310
            pass


_STORMS: Final[Mapping[str, type[IMetricsConsumer]]] = {
    "org.apache.storm.metric.LoggingMetricsConsumer": LoggingMetricsConsumer,
    "org.apache.storm.metric.HttpForwardingMetricsConsumer": HttpForwardingMetricsConsumer,
}


def consumers_of(registered: object, conf: Mapping[str, Any]) -> list[IMetricsConsumer]:
    """Returns the prepared consumers of a topology.

    Args:
        registered: the value of `topology.metrics.consumer.register`.
        conf: of the topology.

    Raises:
        ConfigError: one can't be made.
    """
    found: list[IMetricsConsumer] = []
    for name, argument in entries_of(KEY, registered, "argument"):
        consumer = _STORMS[name]() if name in _STORMS else made(KEY, name, IMetricsConsumer)  # type: ignore[type-abstract]
        consumer.prepare(conf, argument)
        found.append(consumer)
    return found


class Consumers(Listeners[IMetricsConsumer]):
    """Gives consumers what each task has counted.

    Args:
        consumers: prepared ones.
        every_secs: seconds between two calls.
        sums: returns all counters since the start.
        port: of the slot.
        wall: seconds since the epoch.
    """

    kind = "consumer of metrics"

    def __init__(
        self,
        consumers: Sequence[IMetricsConsumer],
        every_secs: int,
        sums: Callable[[], Amounts],
        port: int,
        wall: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(consumers, every_secs)
        self._interval_secs = every_secs
        self._sums = sums
        self._place = socket.gethostname(), port
        self._wall = wall
        self._before = sums()

    def tell(self) -> None:
        """Passes the counts since the last call to all consumers."""
        now = self._sums()
        grown, self._before = news(self._before, now), now
        at = int(self._wall())
        for component, task, found in points(grown):
            info = TaskInfo(*self._place, component, task, at, self._interval_secs)
            self.each(lambda consumer: consumer.handle_data_points(info, found))  # noqa: B023 # called at once

    def end(self, listener: IMetricsConsumer) -> None:
        """Calls `cleanup`."""
        listener.cleanup()
