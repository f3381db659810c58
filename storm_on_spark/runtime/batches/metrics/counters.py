"""The counters of a running topology."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial

from storm_on_spark.api.errors import TopologyFailedError
from storm_on_spark.api.info import COUNTERS, ComponentInfo, ErrorInfo, TopologyInfo, TopologyStatus
from storm_on_spark.api.streams.constants import SYSTEM_TASK
from storm_on_spark.api.text.traces import bounded, with_sources
from storm_on_spark.api.worker import NO_PORT
from storm_on_spark.metrics import amounts as names
from storm_on_spark.metrics.amounts import Name
from storm_on_spark.metrics.latency import Latencies
from storm_on_spark.plan.model import PlacedPlan
from storm_on_spark.runtime.batches.metrics.recorder import Recorder
from storm_on_spark.runtime.reports.groups import Group, Groups
from storm_on_spark.runtime.reports.registered import Registered, long_name_prefix, reading_amounts
from storm_on_spark.runtime.reports.report import Failure, SpoutStats, TaskMetrics, both, log_error, sent_amounts
from storm_on_spark.runtime.run.settings import ReportSettings
from storm_on_spark.runtime.spouts.messages import Progress

log = logging.getLogger(__name__)

_ERRORS_KEPT = 20
"""Different errors of a component: they are part of each heartbeat."""
_MOST_MESSAGE = 4000
"""Characters of an error's message."""


class Metrics:
    """Counters of all components, added up over tasks. Any thread may use it.

    Args:
        plan: the plan; its configuration says how many errors are reported.
        now: monotonic seconds.
        storm_id: the id of the run, for the long names of registered metrics.
        port: of the slot, for the same.
        recorder: counts over windows.
    """

    def __init__(
        self,
        plan: PlacedPlan,
        now: Callable[[], float] = time.monotonic,
        storm_id: str = "",
        port: int = NO_PORT,
        recorder: Recorder | None = None,
    ) -> None:
        self.recorder = recorder or Recorder(monotonic=now)
        self._plan = plan
        self._now = now
        self._settings = ReportSettings.of(plan.conf)
        #: By task, when its current interval began and how many errors it reported since.
        self._reported: dict[int | None, tuple[float, int]] = {}
        self._lock = threading.Lock()
        self._spouts: dict[int, SpoutStats] = {}
        #: Seconds in which all spouts emitted, and in which they wrote their logs.
        self.spouts_secs = 0.0, 0.0
        #: What spout tasks did in processes that are gone, by task.
        self._earlier: dict[int, SpoutStats] = {}
        self._bolts: dict[str, TaskMetrics] = {}
        self.latencies = Latencies()
        self._errors: dict[str, Groups] = {}
        self._registered = Registered(long_name_prefix(storm_id, socket.gethostname()), str(port), now)

    def add_spout(self, progress: Progress) -> None:
        """Takes over the counters, latencies and errors that a spout task reports."""
        component = self._plan.component_of(progress.task)
        with self._lock:
            before = self._spouts.get(progress.task, SpoutStats())
            self._spouts[progress.task] = progress.stats
            emitting, writing = self.spouts_secs
            self.spouts_secs = emitting + progress.emitting_secs, writing + progress.writing_secs
            self.latencies.merge(progress.latencies)
            self.recorder.count(component, progress.task, _news(before, progress))
            self._registered.add(component, progress.task, progress.registered)
        self.recorder.save_if_due()
        groups = Groups(_ERRORS_KEPT, forgets=True)
        for text, trace, given in progress.errors:
            groups.add(Failure(component, progress.task, text, "", False, trace, given))
        self.add_reports(group.failure for group in groups)

    def spout_gone(self, task: int) -> None:
        """Notes that the process of a spout task is gone: a new one counts from zero."""
        with self._lock:
            known = self._spouts.pop(task, None)
            if known is not None:
                self._earlier[task] = _total([self._earlier.get(task, SpoutStats()), known])
                self._earlier[task].pending = 0

    def add_reports(self, reports: Iterable[TaskMetrics | Failure], batch: int | None = None) -> None:
        """Adds what a micro-batch reports, and logs its errors.

        Args:
            reports: of its tasks.
            batch: its number; None for reports that belong to none.
        """
        counts = batch is None or self.recorder.begin_batch(batch)
        for report in reports:
            if not isinstance(report, Failure):
                self.add_bolt(report)
                if counts:
                    amounts = {**report.amounts, **reading_amounts(report.registered)}
                    self.recorder.count(report.component, report.task, amounts)
            elif (told := self.add_failure(report)) is not None:
                log_error(log, told)
        self.recorder.save_if_due()

    def add_bolt(self, metrics: TaskMetrics) -> None:
        """Adds the counters of one execution of a bolt task."""
        with self._lock:
            known = self._bolts.get(metrics.component)
            self._registered.add(metrics.component, metrics.task, metrics.registered)
            metrics = metrics._replace(registered=(), amounts={})
            self._bolts[metrics.component] = metrics if known is None else both(known, metrics)

    def add_failure(self, failure: Failure) -> Failure | None:
        """Records an error: equal ones count as one, and the last ones of each component are kept.

        A task may report `topology.max.error.report.per.interval` different errors in each interval, as in Storm, so
        that a bolt that fails on every tuple doesn't drown the rest.

        Returns:
            What is to be logged of it, if anything is: equal errors are logged once in an interval.
        """
        now, interval = self._now(), self._settings.interval_secs
        text, trace = bounded(failure.message, _MOST_MESSAGE), with_sources(failure.own_trace)
        failure = failure._replace(message=text, own_trace=trace)
        with self._lock:
            groups = self._errors.setdefault(failure.component, Groups(_ERRORS_KEPT, forgets=True))
            if not groups.knows(failure):
                began, count = self._reported.get(failure.task, (now, 0))
                if now - began >= interval:
                    began, count = now, 0
                if count >= self._settings.max_errors and not failure.fatal:
                    return None
                self._reported[failure.task] = (began, count + 1)
            group = groups.add(failure, time.time())
            if group is None or (group.logged_at is not None and now - group.logged_at < interval):
                return None
            return group.to_log(now)

    def pending(self) -> dict[int, int]:
        """Returns by spout task how many messages are neither acked nor failed."""
        with self._lock:
            return {task: stats.pending for task, stats in sorted(self._spouts.items())}

    def spout_totals(self) -> SpoutStats:
        """Returns the counters of all spout tasks together."""
        with self._lock:
            total = _total([*self._spouts.values(), *self._earlier.values()])
            for component in self._plan.native_spouts:
                read = self._bolts.get(component) or _nothing(component)
                total.emitted += read.emitted
                total.transferred += read.transferred
            return total

    def info(
        self, name: str, status: TopologyStatus, uptime_secs: float, error: TopologyFailedError | None
    ) -> TopologyInfo:
        """Returns all counters, as of now."""
        totals = self.spout_totals()
        return TopologyInfo(
            name=name,
            status=status,
            uptime_secs=uptime_secs,
            emitted=totals.emitted,
            transferred=totals.transferred,
            acked=totals.acked,
            failed=totals.failed,
            pending=totals.pending,
            complete_latency_ms=self.latencies.summary(),
            components=self.components(),
            system_errors=self.system_errors(),
            error=None if error is None else error.reason,
            error_trace="" if error is None else error.own_trace,
            error_input="" if error is None else error.input,
        )

    def components(self) -> dict[str, ComponentInfo]:
        """Returns the counters of every component."""
        with self._lock:
            return {component_id: self._component(component_id) for component_id in self._plan.components}

    def system_errors(self) -> tuple[ErrorInfo, ...]:
        """Returns the last errors of system components such as `__acker`, oldest first."""
        with self._lock:
            names = self._errors.keys() - self._plan.components.keys()
            found = [_error_info(group) for name in names for group in self._errors[name]]
        return tuple(sorted(found, key=lambda error: error.time))

    def _component(self, component_id: str) -> ComponentInfo:
        component = self._plan.components[component_id]
        errors = tuple(map(_error_info, self._errors.get(component_id, ())))
        made = partial(
            ComponentInfo,
            id=component_id,
            kind=component.kind.value,
            tasks=len(component.tasks),
            errors=errors,
            metrics=self._registered.of(component_id),
        )
        # What Spark reads itself is emitted there.
        metrics = self._bolts.get(component_id) or _nothing(component_id)
        if self._plan.topology[component_id].is_spout:
            parts = (
                found[task] for found in (self._spouts, self._earlier) for task in component.tasks if task in found
            )
            stats = _total(parts)
            return made(
                emitted=stats.emitted + metrics.emitted,
                transferred=stats.transferred + metrics.transferred,
                acked=stats.acked,
                failed=stats.failed,
            )
        return made(
            **{name: getattr(metrics, name) for name in COUNTERS},
            execute_latency_ms=1e3 * metrics.seconds / metrics.executed if metrics.executed else None,
        )


def _error_info(group: Group) -> ErrorInfo:
    failure = group.failure
    task = SYSTEM_TASK if failure.task is None else failure.task
    return ErrorInfo(
        failure.component,
        task,
        failure.message,
        group.last,
        failure.own_trace,
        failure.input,
        failure.times,
        group.first,
    )


def _nothing(component: str) -> TaskMetrics:
    return TaskMetrics(component, SYSTEM_TASK, 0, 0, 0, 0, 0, 0.0)


def _news(before: SpoutStats, progress: Progress) -> dict[Name, int]:
    """Returns what a spout's task counted since its last report; a counter that fell counts from zero again."""
    stats = progress.stats
    if stats.emitted < before.emitted or stats.acked < before.acked or stats.failed < before.failed:
        before = SpoutStats()
    sent = {
        stream: (emitted - before.streams.get(stream, (0, 0))[0], transferred - before.streams.get(stream, (0, 0))[1])
        for stream, (emitted, transferred) in stats.streams.items()
    }
    # With several streams it is not known on which of them a message was emitted.
    stream = next(iter(stats.streams)) if len(stats.streams) == 1 else ""
    found = sent_amounts(sent)
    found[names.ACKED, "", stream] = stats.acked - before.acked
    found[names.FAILED, "", stream] = stats.failed - before.failed
    found[names.COMPLETE_NS, "", stream] = progress.latencies.total_ns
    found.update({(names.COMPLETE_BIN, key, ""): count for key, count in progress.latencies.bins.items()})
    found.update(reading_amounts(progress.registered))
    return {name: amount for name, amount in found.items() if amount}


def _total(parts: Iterable[SpoutStats]) -> SpoutStats:
    total = SpoutStats()
    for part in parts:
        total.emitted += part.emitted
        total.transferred += part.transferred
        total.acked += part.acked
        total.failed += part.failed
        total.timed_out += part.timed_out
        total.pending += part.pending
    return total
