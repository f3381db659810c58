"""A driver's reports: heartbeats, and errors that were not reported before."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, replace
from typing import Any

import msgspec

from storm_on_spark.api.config.secrets import scrubbed, shown
from storm_on_spark.api.info import TopologyInfo
from storm_on_spark.api.text.traces import bounded
from storm_on_spark.cluster.driver.files import DriverSpec
from storm_on_spark.cluster.records import ErrorRecord, WorkerBeat
from storm_on_spark.metrics.packed import pack_windows
from storm_on_spark.plan.explain.document import chain_dict
from storm_on_spark.plan.model import PlacedPlan
from storm_on_spark.runtime.reports.groups import Key, key_of

SYSTEM = "__system"
"""The component that errors belong to which no other caused, as in Storm."""
_MAX_MESSAGE = 8000
_MAX_BEAT_MESSAGE = 500
_MAX_METRICS = 300
"""Metrics in a beat, and values of single tasks in it: a timer takes half a kilobyte."""
_TIMES = 20
"""Micro-batches and seconds of rounds whose times are in a beat: a tenth of a kilobyte each."""


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
        #: How many equal errors were reported, by what they have in common and the time of the first.
        self._reported: dict[tuple[Key, float], int] = {}

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
            info={**shown(_without_traces(info.to_dict())), **_apart(info)},
            plan={} if plan is None else chain_dict(plan),
        )

    def failed(self, reason: str) -> WorkerBeat:
        """Returns the heartbeat of a driver that could not start its topology."""
        return self.beat(TopologyInfo(self._spec.name, "FAILED", 0.0, error=bounded(reason, _MAX_MESSAGE)))

    def new_errors(self, info: TopologyInfo) -> Iterator[ErrorRecord]:
        """Yields the errors of components that were not there the last time, and how many more there are of others."""
        reported: dict[tuple[Key, float], int] = {}
        for error in info.errors:
            key = key_of(error.component, error.task, error.message, error.trace), error.first_time
            before, reported[key] = self._reported.get(key, 0), error.count
            if error.count > before:
                record = self.error(error.message, error.trace, error.input, error.component, error.task)
                first = error.time if before else error.first_time
                yield msgspec.structs.replace(record, time=error.time, first_time=first, count=error.count - before)
        self._reported = reported

    def error(
        self, message: str, trace: str = "", given: str = "", component: str = SYSTEM, task: int = -1
    ) -> ErrorRecord:
        """Returns an error of now as it is kept for the users of the topology; `given` is its input."""
        return ErrorRecord(
            component=component,
            task=task,
            message=bounded(scrubbed(message), _MAX_MESSAGE),
            trace=bounded(scrubbed(trace)),
            input=given,
            time=self._now(),
            host=self._spec.assignment.host,
            port=self._spec.assignment.port,
        )


def _apart(info: TopologyInfo) -> dict[str, Any]:
    """Returns windows and load as a beat has them."""
    found: dict[str, Any] = {"windows": pack_windows(info.windows)} if info.windows else {}
    if info.load is not None:
        load = asdict(replace(info.load, batches=info.load.batches[-_TIMES:], rounds=info.load.rounds[-_TIMES:]))
        # Keys of JSON objects are texts.
        for name in ("pending", "backlog"):
            load[name] = {str(task): count for task, count in load[name].items()}
        if load["growth"] is not None:
            for name in ("backlog", "backlog_before"):
                load["growth"][name] = {str(task): count for task, count in load["growth"][name].items()}
        found["load"] = load
    return found


def _without_traces(info: dict[str, Any]) -> dict[str, Any]:
    """Returns what a beat says: the errors of all components with their traces are too much for every few seconds.

    Each error has its own record, with the trace.
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
