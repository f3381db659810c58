"""Reports of stages to the sink."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from storm_on_spark.api.errors import ComponentError, StormError
from storm_on_spark.api.metrics.registry import Reading
from storm_on_spark.api.text.traces import own_trace, reported, summary, whole_trace, with_sources
from storm_on_spark.metrics import amounts as names
from storm_on_spark.metrics.amounts import Name
from storm_on_spark.runtime.reports.shown_values import input_text

USER_ERRORS = (Exception, SystemExit)
"""What counts as an error of user code. A `sys.exit()` in it would end a thread or a worker without a word."""


_TRACED_REPORTS = 20
"""So many reported errors in a row come with their traceback; to format one takes longer than most tuples."""


class TaskMetrics(NamedTuple):
    """The counters of one task in one execution."""

    component: str
    task: int
    executed: int
    acked: int
    failed: int
    emitted: int
    """Tuples that it emitted, each counted once."""
    transferred: int
    """The same, each counted once for every task that received it."""
    seconds: float
    registered: tuple[Reading, ...] = ()
    """What the metrics that it registered have to say."""
    amounts: Mapping[Name, int] = MappingProxyType({})
    """The same counters by stream, and latencies."""


def sent_amounts(sent: Mapping[str, tuple[int, int]]) -> dict[Name, int]:
    """Returns what was emitted and transferred, by stream, as amounts."""
    found: dict[Name, int] = {}
    for stream, (emitted, transferred) in sent.items():
        if emitted:
            found[names.EMITTED, stream, ""] = emitted
        if transferred:
            found[names.TRANSFERRED, stream, ""] = transferred
    return found


def both(one: TaskMetrics, other: TaskMetrics) -> TaskMetrics:
    """Returns the counters of two executions of a task together."""
    amounts = one.amounts if isinstance(one.amounts, dict) else dict(one.amounts)
    names.add(amounts, other.amounts)
    return TaskMetrics(
        one.component,
        one.task,
        one.executed + other.executed,
        one.acked + other.acked,
        one.failed + other.failed,
        one.emitted + other.emitted,
        one.transferred + other.transferred,
        one.seconds + other.seconds,
        one.registered + other.registered,
        amounts,
    )


@dataclass
class SpoutStats:
    """The counters of a spout task since it was started."""

    emitted: int = 0
    transferred: int = 0
    acked: int = 0
    failed: int = 0
    timed_out: int = 0
    pending: int = 0
    exhausted: bool = False
    streams: dict[str, tuple[int, int]] = field(default_factory=dict)
    """What was emitted and transferred, by stream."""

    def sent(self, streams: Mapping[str, tuple[int, int]]) -> None:
        """Adds what was emitted and transferred, by stream."""
        for stream, (emitted, transferred) in streams.items():
            if emitted:
                self.emitted += emitted
                self.transferred += transferred
                before = self.streams.get(stream, (0, 0))
                self.streams[stream] = before[0] + emitted, before[1] + transferred


class Failure(NamedTuple):
    """An error of user code, or of the topology as a whole."""

    component: str
    task: int | None
    message: str
    trace: str = ""
    """The whole traceback."""
    fatal: bool = True
    own_trace: str = ""
    """The traceback with the user's own frames."""
    input: str = ""
    """What the component had in hand; empty where that is not known."""
    times: int = 1
    """How many equal errors this stands for."""

    @classmethod
    def of(cls, error: StormError, *, fatal: bool = True) -> Failure:
        """Returns the record of an exception."""
        if isinstance(error, ComponentError):
            return cls(error.component, error.task, str(error), error.cause_text, fatal, error.own_trace, error.input)
        return cls("", None, str(error), whole_trace(error), fatal, own_trace(error), error.input)

    @property
    def text(self) -> str:
        """Message, input and own trace, for a log."""
        given = f"\ninput: {self.input}" if self.input else ""
        trace = f"\n{with_sources(self.own_trace).rstrip()}" if self.own_trace else ""
        return f"{self.message}{given}{trace}"


class Reported(NamedTuple):
    """An error that user code reported through its collector."""

    message: str
    own_trace: str
    input: str


def add_reported(errors: list[Reported], error: BaseException, item: Any = None) -> None:
    """Adds an error that user code reported to the next report.

    Args:
        errors: the errors of the next report.
        error: the error.
        item: the tuple or record batch that was executed when it was reported, if one was.
    """
    traced = len(errors) < _TRACED_REPORTS
    given = error.input if isinstance(error, StormError) else ""
    if traced and item is not None:
        given = given or input_text(item)
    errors.append(Reported(summary(error), reported(error) if traced else "", given))


def log_error(log: logging.Logger, failure: Failure) -> None:
    """Logs an error that doesn't end the topology; its whole traceback is the record's `whole_trace`."""
    log.warning("%s", failure.text, extra={"whole_trace": failure.trace})
