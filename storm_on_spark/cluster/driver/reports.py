"""A driver's reports: heartbeats, and errors that were not reported before."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from storm_on_spark.api.config.secrets import scrubbed, shown
from storm_on_spark.api.info import TopologyInfo
from storm_on_spark.api.text.traces import bounded
from storm_on_spark.cluster.driver.files import DriverSpec
from storm_on_spark.cluster.records import ErrorRecord, WorkerBeat
from storm_on_spark.plan.explain.document import chain_dict
from storm_on_spark.plan.model import PlacedPlan

SYSTEM = "__system"
"""The component that errors belong to which no other caused, as in Storm."""
_MAX_MESSAGE = 8000
_MAX_BEAT_MESSAGE = 500
_MAX_METRICS = 300
"""Metrics in a beat, and values of single tasks in it: a timer takes half a kilobyte."""


class Reports:
    """Makes the records.

    Args:
        spec: what the driver runs.
        now: seconds since the epoch.
    """

    def __init__(self, spec: DriverSpec, now: Callable[[], float] = time.time) -> None:
        self._spec = spec
        self._now = now
        self._started_at = now()
        #: (component, task, message, time) of the errors that were reported.
        self._reported: set[tuple[str, int, str, float]] = set()

    def beat(self, info: TopologyInfo, plan: PlacedPlan | None = None) -> WorkerBeat:
        """Returns the heartbeat for the cluster, with the operators of the plan that runs."""
        assignment = self._spec.assignment
        return WorkerBeat(
            topology_id=assignment.topology_id,
            supervisor_id=assignment.supervisor_id,
            host=assignment.host,
            port=assignment.port,
            pid=os.getpid(),
            launch=assignment.launch,
            time=self._now(),
            started_at=self._started_at,
            info=shown(_without_traces(info.to_dict())),
            plan={} if plan is None else chain_dict(plan),
        )

    def failed(self, reason: str) -> WorkerBeat:
        """Returns the heartbeat of a driver that could not start its topology."""
        return self.beat(TopologyInfo(self._spec.name, "FAILED", 0.0, error=bounded(reason, _MAX_MESSAGE)))

    def new_errors(self, info: TopologyInfo) -> Iterator[ErrorRecord]:
        """Yields the errors of components that were not there the last time."""
        reported: set[tuple[str, int, str, float]] = set()
        for error in info.errors:
            key = (error.component, error.task, error.message, error.time)
            reported.add(key)
            if key not in self._reported:
                yield self.error(error.message, error.component, error.task, error.time, error.trace)
        self._reported = reported

    def error(
        self, message: str, component: str = SYSTEM, task: int = -1, at: float | None = None, trace: str = ""
    ) -> ErrorRecord:
        """Returns an error as it is kept for the users of the topology."""
        return ErrorRecord(
            component=component,
            task=task,
            message=bounded(scrubbed(message), _MAX_MESSAGE),
            trace=bounded(scrubbed(trace)),
            time=self._now() if at is None else at,
            host=self._spec.assignment.host,
            port=self._spec.assignment.port,
        )


def _without_traces(info: dict[str, Any]) -> dict[str, Any]:
    """Returns what a beat says: the errors of all components with their traces are too much for every few seconds.

    Each error has a record of its own, with the trace.
    """
    errors = [error for component in info["components"].values() for error in component["errors"]]
    for error in [*errors, *info["system_errors"]]:
        error["message"] = bounded(error["message"], _MAX_BEAT_MESSAGE)
        del error["trace"]
    _bound_metrics(info["components"].values())
    return info


def _bound_metrics(components: Iterable[dict[str, Any]]) -> None:
    """Drops the values by task where there are too many for a beat, and then what is too much altogether."""
    names = tasks = 0
    for component in components:
        for name, metric in list(component.get("metrics", {}).items()):
            names, tasks = names + 1, tasks + len(metric["tasks"])
            if names > _MAX_METRICS:
                del component["metrics"][name]
            elif tasks > _MAX_METRICS:
                metric["tasks"] = {}
