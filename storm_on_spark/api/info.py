"""The state, counters and errors of a running topology: the one model of a run.

What REST, Thrift, the command line and notebooks show of a run are views of it: each selects fields, and may rename
them. A driver's heartbeat is `TopologyInfo.to_dict()`, and a Nimbus reads it back into the same classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final, Literal

from storm_on_spark.api.text import html
from storm_on_spark.api.text.moments import occurred
from storm_on_spark.api.text.traces import location

COUNTERS: Final = ("executed", "emitted", "transferred", "acked", "failed")
"""Names of a component's counters, in the order of tables."""

TopologyStatus = Literal["ACTIVE", "INACTIVE", "KILLED", "COMPLETED", "FAILED"]
"""`COMPLETED`: every spout is exhausted and nothing is pending."""


@dataclass(frozen=True)
class ErrorInfo:
    """An error that a component raised or reported, or several equal ones: of the last of them, except for `count`.

    Errors are equal if they have the same text and come from the same line of the component.

    Example:
        >>> error = ErrorInfo("count", 4, "KeyError: 'x'", 1_700_000_060.0, count=10, first_time=1_700_000_000.0)
        >>> error.count, error.time - error.first_time
        (10, 60.0)
        >>> ErrorInfo("count", 4, "KeyError: 'x'", 7.0).first_time
        7.0
    """

    component: str
    task: int
    message: str
    time: float
    """Seconds since the epoch."""
    trace: str = ""
    """The traceback with the user's own frames, as Python prints it; empty where there is none."""
    input: str = ""
    """What the component had in hand: the values of the tuple that it executed, cut to 200 characters and without
    secrets, or how many rows the record batch has; empty where that is not known."""
    count: int = 1
    """How many equal errors there were."""
    first_time: float = -1.0
    """When there was the first of them; `time` if nothing else is said."""

    def __post_init__(self) -> None:
        if self.first_time < 0:
            object.__setattr__(self, "first_time", self.time)

    @property
    def location(self) -> tuple[str, int] | None:
        """File and line of the innermost of the user's own frames."""
        return location(self.trace)

    def to_dict(self) -> dict[str, Any]:
        """Returns the error as a JSON object, with `file` and `line`."""
        file, line = self.location or (None, None)
        return {**asdict(self), "file": file, "line": line}


@dataclass(frozen=True)
class MetricInfo:
    """A metric that a component registered in its `TopologyContext`, since the topology started.

    What a task counted in several processes is added up.

    Example:
        >>> info = MetricInfo("hits", "counter", {"count": 5}, {3: {"count": 2}, 4: {"count": 3}})
        >>> info.value
        5
    """

    name: str
    type: str
    """`counter`, `gauge`, `meter`, `histogram`, `timer`, or `metric` for what `register_metric` was given."""
    values: Mapping[str, Any]
    """Of all tasks together: `count`; of a meter and timer also rates per second; of a histogram and timer `min`,
    `max`, `mean`, `stddev` and percentiles of the last values (a timer's in ms); of others `value`: the sum of counts,
    else the last one."""
    tasks: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    """The same by task, with the metric's long `name`, as Storm's reporters give it."""

    @property
    def value(self) -> Any:
        """The count, or the value of a metric without one."""
        return self.values["count"] if "count" in self.values else self.values.get("value")

    def to_dict(self) -> dict[str, Any]:
        """Returns the same in terms of JSON."""
        tasks = {str(task): dict(values) for task, values in self.tasks.items()}
        return {"type": self.type, **self.values, "tasks": tasks}

    @classmethod
    def fields_of(cls, name: str, document: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the fields of the metric that `to_dict` has written so."""
        values = {key: value for key, value in document.items() if key not in ("type", "tasks")}
        return {"name": name, "type": document["type"], "values": values, "tasks": document["tasks"]}


@dataclass(frozen=True)
class ComponentInfo:
    """What one component has done since the topology started; the tasks together."""

    id: str
    kind: str
    """The value of its `ComponentKind`."""
    tasks: int
    """How many tasks it has."""
    executed: int = 0
    """Tuples executed; for spouts, calls of `next_tuple` don't count: 0."""
    emitted: int = 0
    """Tuples emitted, each counted once however many tasks received it."""
    transferred: int = 0
    """The same tuples, each counted once for every task that received it: 0 if nobody subscribes."""
    acked: int = 0
    """Of a bolt, tuples that it executed and acked; of a spout, its messages whose trees are complete."""
    failed: int = 0
    """As `acked`, of those that failed; of a spout also those that timed out."""
    execute_latency_ms: float | None = None
    """Mean time in `execute` per tuple; `None` for spouts and before the first tuple."""
    errors: tuple[ErrorInfo, ...] = ()
    """The last few errors, oldest first; equal ones are one."""
    metrics: Mapping[str, MetricInfo] = field(default_factory=dict)
    """What it registered, by name."""

    @property
    def counters(self) -> tuple[int, ...]:
        """The values of `COUNTERS`."""
        return tuple(getattr(self, name) for name in COUNTERS)

    def metrics_dict(self) -> dict[str, dict[str, Any]]:
        """Returns `metrics` in terms of JSON."""
        return {name: metric.to_dict() for name, metric in self.metrics.items()}

    def to_dict(self) -> dict[str, Any]:
        """Returns the same in terms of JSON; without `metrics` where none is registered."""
        found = {part.name: getattr(self, part.name) for part in fields(self) if part.name != "metrics"}
        found["errors"] = [error.to_dict() for error in self.errors]
        if self.metrics:
            found["metrics"] = self.metrics_dict()
        return found


@dataclass(frozen=True)
class ComponentAtWork:
    """How far a component has come with the tuples that a micro-batch, or a round in real time, has brought to it."""

    component: str
    executed: int
    tuples: int


@dataclass(frozen=True)
class MicroBatchInfo:
    """The micro-batch that Spark prepares or runs. Its tuples count in `TopologyInfo` when it has ended."""

    secs: float
    """For how long it has been prepared or run."""
    number: int | None = None
    """Spark's number of it; `None` while Spark prepares it."""
    is_first: bool = False
    """Whether no other has ended since the topology was started."""


_FOR_PEOPLE: Final = ("micro_batch", "at_work")
"""Fields of a `TopologyInfo` that say what happens at this moment, for people who watch."""


@dataclass(frozen=True)
class TopologyInfo:
    """A topology's state at one moment.

    Example:
        >>> info = TopologyInfo("word-count", "ACTIVE", 12.5, emitted=100, acked=90, pending=10,
        ...                     complete_latency_ms={"p50": 80.0, "p95": 120.0, "p99": 200.0})
        >>> info.to_dict()["complete_latency_ms"]["p99"]
        200.0
    """

    name: str
    status: TopologyStatus
    uptime_secs: float
    emitted: int = 0
    """Tuples that spouts emitted, with and without a message id. What bolts emitted is in `components`."""
    transferred: int = 0
    """Spout tuples, each counted once for every task that received it."""
    acked: int = 0
    """Spout tuples whose trees are complete."""
    failed: int = 0
    """Spout tuples whose trees failed or timed out."""
    pending: int = 0
    """Spout tuples with a message id that are neither acked nor failed."""
    complete_latency_ms: Mapping[str, float] | None = None
    """From emit to ack: `p50`, `p95` and `p99`; `None` before the first ack."""
    components: Mapping[str, ComponentInfo] = field(default_factory=dict)
    """By component id."""
    system_errors: tuple[ErrorInfo, ...] = ()
    """The last few errors of system components, such as `__acker`, oldest first; equal ones are one."""
    error: str | None = None
    """Why the topology failed, if it did."""
    error_trace: str = ""
    """The traceback of that with the user's own frames; empty where there is none."""
    micro_batch: MicroBatchInfo | None = None
    """What Spark has in hand; `None` if there is nothing to do. For people who watch: no part of `to_dict`."""
    at_work: tuple[ComponentAtWork, ...] = ()
    """Bolts that have been executing for more than a second, where the checkpoint is in a file system. As that."""
    error_input: str = ""
    """The `input` of the component that failed."""

    @property
    def errors(self) -> tuple[ErrorInfo, ...]:
        """The last errors of all components, and of the system's, oldest first."""
        found = [error for component in self.components.values() for error in component.errors]
        found += self.system_errors
        return tuple(sorted(found, key=lambda error: error.time))

    def _repr_html_(self) -> str:
        return html.block(*self.html_parts())

    def html_parts(self, rates: Mapping[str, float] | None = None) -> list[str]:
        """Returns HTML for a notebook: a headline, a table of components, and the last errors.

        Args:
            rates: tuples per second of each component, if known.
        """
        latency = self.complete_latency_ms
        head = f"{self.name}: {self.status}, {self.uptime_secs:,.1f} s"
        counts = (
            f"spouts: {self.emitted:,} emitted, {self.transferred:,} transferred, {self.acked:,} acked, "
            f"{self.failed:,} failed, {self.pending:,} pending"
        )
        if latency is not None:
            counts += "; complete latency " + ", ".join(f"{key} {value:,.0f} ms" for key, value in latency.items())
        headings = ["component", "kind", "tasks", *COUNTERS, "execute ms"]
        rows: list[list[object]] = [
            [part.id, part.kind, part.tasks, *part.counters, part.execute_latency_ms]
            for part in self.components.values()
        ]
        if rates is not None:
            headings.append("a second")
            for row in rows:
                row.append(round(rates.get(str(row[0]), 0.0)))
        parts = [html.line(head, strong=True), html.line(counts)]
        if rows:
            parts.append(html.table(headings, rows))
        shown = [(self.error or "", self.error_input, self.error_trace)] if self.error else []
        shown += [
            (f"{error.message} ({occurred(error.count, error.first_time, error.time)})", error.input, error.trace)
            for error in self.errors[-3:]
            if error.message != self.error
        ]
        for message, given, trace in shown:
            parts += [html.line(message), *([html.line(f"input: {given}")] if given else [])]
            parts += [html.preformatted(trace)] if trace else []
        return parts

    def to_dict(self) -> dict[str, Any]:
        """Returns the same in terms of JSON."""
        latency = self.complete_latency_ms
        found = {part.name: getattr(self, part.name) for part in fields(self) if part.name not in _FOR_PEOPLE}
        found["complete_latency_ms"] = None if latency is None else dict(latency)
        found["components"] = {name: component.to_dict() for name, component in self.components.items()}
        found["system_errors"] = [error.to_dict() for error in self.system_errors]
        return found
