"""The state, counters and errors of a running topology: the one model of a run.

REST, Thrift, the command line and notebooks show views of it: each selects fields and may rename them. A driver's
heartbeat is `TopologyInfo.to_dict()`, and a Nimbus reads it back into the same classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Final, Literal

from storm_on_spark.api.text import html
from storm_on_spark.api.text.moments import occurred
from storm_on_spark.api.text.traces import location
from storm_on_spark.api.text.wording import milliseconds
from storm_on_spark.api.times import BatchTime, RoundTime

COUNTERS: Final = ("executed", "emitted", "transferred", "acked", "failed")
"""Names of a component's counters, in the order in which tables show them."""

ALL_TIME: Final = ":all-time"
WINDOWS: Final[Mapping[str, int | None]] = {"600": 600, "10800": 10_800, "86400": 86_400, ALL_TIME: None}
"""Storm's names of the windows over which a topology counts, and their seconds."""


def check_window(window: str) -> str:
    """Returns `window` if it is the name of one.

    Raises:
        ValueError: it is not.

    Example:
        >>> check_window("601")
        Traceback (most recent call last):
        ...
        ValueError: '601' is not a window; the windows are 600, 10800, 86400, :all-time
    """
    if window not in WINDOWS:
        raise ValueError(f"{window[:80]!r} is not a window; the windows are {', '.join(WINDOWS)}")
    return window


PERCENTILES: Final = ("p50", "p95", "p99")

TopologyStatus = Literal["ACTIVE", "INACTIVE", "KILLED", "COMPLETED", "FAILED"]
"""`COMPLETED` means that every spout is exhausted and nothing is pending."""


@dataclass(frozen=True)
class ErrorInfo:
    """An error that a component raised or reported, or several equal ones.

    Errors are equal if they have the same text and come from the same line of the component. Except for `count` and
    `first_time`, the attributes are those of the last one.

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
    """The traceback of the frames in user code, as Python prints it; empty if there is none."""
    input: str = ""
    """The component's input: the values of the tuple that it executed, cut to 200 characters and without secrets, or
    the number of rows of the record batch; empty if unknown."""
    count: int = 1
    """How many equal errors there were."""
    first_time: float = -1.0
    """When the first of them happened; by default `time`."""

    def __post_init__(self) -> None:
        if self.first_time < 0:
            object.__setattr__(self, "first_time", self.time)

    @property
    def location(self) -> tuple[str, int] | None:
        """File and line of the innermost frame in user code."""
        return location(self.trace)

    def to_dict(self) -> dict[str, Any]:
        """Returns the error as a JSON object, with `file` and `line`."""
        file, line = self.location or (None, None)
        return {**asdict(self), "file": file, "line": line}


@dataclass(frozen=True)
class MetricInfo:
    """A metric that a component registered in its `TopologyContext`, since the topology started.

    The counts of a task in several processes are added up.

    Example:
        >>> info = MetricInfo("hits", "counter", {"count": 5}, {3: {"count": 2}, 4: {"count": 3}})
        >>> info.value
        5
    """

    name: str
    type: str
    """`counter`, `gauge`, `meter`, `histogram`, `timer`, or `metric` for an object given to `register_metric`."""
    values: Mapping[str, Any]
    """Over all tasks: `count`; for meters and timers also rates per second; for histograms and timers `min`, `max`,
    `mean`, `stddev` and percentiles of the last values (in ms for timers); for others `value`: the sum of counts, or
    else the last value."""
    tasks: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    """The same by task, with the metric's long `name` as in Storm's reporters."""

    @property
    def value(self) -> Any:
        """The count, or the value if the metric has no count."""
        return self.values["count"] if "count" in self.values else self.values.get("value")

    def to_dict(self) -> dict[str, Any]:
        """Returns the same as a JSON object."""
        tasks = {str(task): dict(values) for task, values in self.tasks.items()}
        return {"type": self.type, **self.values, "tasks": tasks}

    @classmethod
    def fields_of(cls, name: str, document: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the fields of a metric from the document that `to_dict` wrote."""
        values = {key: value for key, value in document.items() if key not in ("type", "tasks")}
        return {"name": name, "type": document["type"], "values": values, "tasks": document["tasks"]}


@dataclass(frozen=True)
class LatencyInfo:
    """Latencies in ms: the exact mean, and percentiles that are off by at most 1.5 %."""

    mean: float
    p50: float
    p95: float
    p99: float


@dataclass(frozen=True)
class StreamCounts:
    """What a component emitted on a stream, or got of one, in a window. Latencies are means in ms."""

    stream: str
    source: str = ""
    """The component that emits the stream; empty for the component's own."""
    emitted: int = 0
    transferred: int = 0
    executed: int = 0
    acked: int = 0
    failed: int = 0
    execute_ms: float | None = None
    process_ms: float | None = None
    complete_ms: float | None = None


@dataclass(frozen=True)
class TaskCounts:
    """The counters of a task, or of all tasks of a component, in a window."""

    emitted: int = 0
    transferred: int = 0
    executed: int = 0
    acked: int = 0
    failed: int = 0
    execute: LatencyInfo | None = None
    """Of `execute`, per tuple; `None` for spouts and before the first tuple."""
    process: LatencyInfo | None = None
    """From a tuple's arrival to its ack."""
    complete: LatencyInfo | None = None
    """For spouts: from a message's emit to its ack."""
    busy_secs: float = 0.0
    """How long it executed, with encoding its output and saving its state; over a component, of all tasks together."""
    streams: tuple[StreamCounts, ...] = ()
    """By stream: those that it receives have a `source`."""


@dataclass(frozen=True)
class ComponentWindow(TaskCounts):
    """The counters of a component in a window."""

    tasks: Mapping[int, TaskCounts] = field(default_factory=dict)
    """By task. -1 stands for tasks that it had before a rebalance."""
    metrics: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """By name of what it registered: `count` in the window, and for histograms and timers `p50`, `p95` and `p99`."""

    def capacity_over(self, secs: float, executors: int) -> float:
        """Returns Storm's capacity: the share of the time that an executor was busy.

        Args:
            secs: that the window covers.
            executors: of the component.

        Example:
            >>> ComponentWindow(busy_secs=300.0).capacity_over(600.0, 1)
            0.5
        """
        return self.busy_secs / (secs * max(1, executors)) if secs > 0 else 0.0


@dataclass(frozen=True)
class WindowInfo:
    """What a topology counted in a window. Windows continue over restarts, rebalances and failovers."""

    name: str
    """One of `WINDOWS`."""
    secs: float
    """How long it is: less than its name says while the topology is younger, or up to a twentieth more."""
    components: Mapping[str, ComponentWindow] = field(default_factory=dict)
    """By component id; `__acker` is one."""
    complete: LatencyInfo | None = None
    """Of the messages of all spouts."""


@dataclass(frozen=True)
class WorkerInfo:
    """The driver and the processes that belong to it, on its machine."""

    processes: int
    memory_bytes: int
    """Resident memory of all."""
    cpu_secs: float
    """Processor time that those which live have used."""


@dataclass(frozen=True)
class GrowthInfo:
    """The least of what waited, and of state, in a minute that is just over and in one up to ten minutes earlier."""

    secs: float
    """Seconds between them."""
    backlog: Mapping[int, int] = field(default_factory=dict)
    """By spout task, as in `LoadInfo`."""
    backlog_before: Mapping[int, int] = field(default_factory=dict)
    state_bytes: int = 0
    state_bytes_before: int = 0


@dataclass(frozen=True)
class LoadInfo:
    """Where a topology's work waits, and what it takes, at one moment."""

    pending: Mapping[int, int] = field(default_factory=dict)
    """By spout task: messages that are neither acked nor failed."""
    backlog: Mapping[int, int] = field(default_factory=dict)
    """By spout task: tuples in its log that no micro-batch has taken yet."""
    batch_ms: Mapping[str, float] = field(default_factory=dict)
    """Where the time of the last micro-batches went: the median of each part, in ms; empty before the first."""
    batches: tuple[BatchTime, ...] = ()
    """The last micro-batches, oldest first."""
    rounds: tuple[RoundTime, ...] = ()
    """The last seconds in real time, oldest first; empty where tuples wait for micro-batches."""
    state_rows: int = 0
    """Entries of all state stores."""
    state_bytes: int = 0
    """Memory that they take."""
    worker: WorkerInfo | None = None
    growth: GrowthInfo | None = None
    """None in the first minutes."""


@dataclass(frozen=True)
class ComponentInfo:
    """The totals of one component since the topology started, over all its tasks."""

    id: str
    kind: str
    """The value of its `ComponentKind`."""
    tasks: int
    """The number of its tasks."""
    executed: int = 0
    """Tuples executed; 0 for spouts, because calls of `next_tuple` don't count."""
    emitted: int = 0
    """Tuples emitted, each counted once however many tasks received it."""
    transferred: int = 0
    """The same tuples, each counted once for every task that received it; 0 if no bolt subscribes."""
    acked: int = 0
    """For a bolt, tuples that it executed and acked; for a spout, messages whose trees are complete."""
    failed: int = 0
    """For a bolt, tuples that it failed; for a spout, messages that failed or timed out."""
    execute_latency_ms: float | None = None
    """Mean time in `execute` per tuple; `None` for spouts and before the first tuple."""
    errors: tuple[ErrorInfo, ...] = ()
    """The last few errors, oldest first; equal ones count as one."""
    metrics: Mapping[str, MetricInfo] = field(default_factory=dict)
    """The metrics that it registered, by name."""

    @property
    def counters(self) -> tuple[int, ...]:
        """The values of `COUNTERS`."""
        return tuple(getattr(self, name) for name in COUNTERS)

    def metrics_dict(self) -> dict[str, dict[str, Any]]:
        """Returns `metrics` as a JSON object."""
        return {name: metric.to_dict() for name, metric in self.metrics.items()}

    def to_dict(self) -> dict[str, Any]:
        """Returns the same as a JSON object, without `metrics` if none is registered."""
        found = {part.name: getattr(self, part.name) for part in fields(self) if part.name != "metrics"}
        found["errors"] = [error.to_dict() for error in self.errors]
        if self.metrics:
            found["metrics"] = self.metrics_dict()
        return found


@dataclass(frozen=True)
class ComponentAtWork:
    """A component's progress with the tuples of a micro-batch, or of a round in real time."""

    component: str
    executed: int
    tuples: int


@dataclass(frozen=True)
class MicroBatchInfo:
    """The micro-batch that Spark prepares or runs. `TopologyInfo` counts its tuples when it has ended."""

    secs: float
    """How long Spark has been preparing or running it."""
    number: int | None = None
    """Its number in Spark; `None` while Spark prepares it."""
    is_first: bool = False
    """Whether it is the first since the topology was started."""


@dataclass(frozen=True)
class RepetitionInfo:
    """Progress of a micro-batch that executes again what a live process had executed in real time before it was lost.

    Example:
        >>> print(RepetitionInfo(1500, 20000))
        1,500 of 20,000 rounds since the last checkpoint have been executed again
    """

    executed: int
    rounds: int

    def __str__(self) -> str:
        return f"{self.executed:,} of {self.rounds:,} rounds since the last checkpoint have been executed again"


_APART: Final = ("micro_batch", "at_work", "windows", "load")
"""Fields of a `TopologyInfo` that `to_dict` leaves out: for people who watch a run, and what a heartbeat packs."""


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
    """Tuples that spouts emitted, with and without a message id. `components` has those of bolts."""
    transferred: int = 0
    """Spout tuples, each counted once for every task that received it."""
    acked: int = 0
    """Spout tuples whose trees are complete."""
    failed: int = 0
    """Spout tuples whose trees failed or timed out."""
    pending: int = 0
    """Spout tuples with a message id that are neither acked nor failed."""
    complete_latency_ms: Mapping[str, float] | None = None
    """Time from emit to ack: `p50`, `p95` and `p99`; `None` before the first ack."""
    components: Mapping[str, ComponentInfo] = field(default_factory=dict)
    """By component id."""
    system_errors: tuple[ErrorInfo, ...] = ()
    """The last few errors of system components, such as `__acker`, oldest first; equal ones count as one."""
    error: str | None = None
    """Why the topology failed, if it did."""
    error_trace: str = ""
    """The traceback of that error in user code; empty if there is none."""
    micro_batch: MicroBatchInfo | None = None
    """The current micro-batch; `None` if there is nothing to do. For people who watch a run: not part of `to_dict`."""
    at_work: tuple[ComponentAtWork, ...] = ()
    """Bolts that have been executing for over a second, if the checkpoint is in a file system; not in `to_dict`."""
    error_input: str = ""
    """The input of the component that failed."""
    windows: Mapping[str, WindowInfo] = field(default_factory=dict)
    """By the names of `WINDOWS`; not part of `to_dict`."""
    load: LoadInfo | None = None
    """Not part of `to_dict`."""
    mode: str = ""
    """How tuples are executed at the moment: `real time`, as they come, or `micro-batches`; empty once it has ended."""
    repetition: RepetitionInfo | None = None
    """What is executed again before real time goes on, if that takes long and the checkpoint is in a file system."""

    def over(self, window: str) -> TopologyInfo:
        """Returns the same with the counters and latencies of a window in place of those since this start.

        Args:
            window: one of `WINDOWS`.

        Raises:
            ValueError: there is no such window.

        Example:
            >>> counted = {"split": ComponentWindow(executed=7, execute=LatencyInfo(2.0, 1.5, 3.0, 4.0))}
            >>> info = TopologyInfo("words", "ACTIVE", 12.5, components={"split": ComponentInfo("split", "bolt", 1)},
            ...                     windows={"600": WindowInfo("600", 12.5, counted)})
            >>> info.over("600").components["split"].executed
            7
        """
        check_window(window)
        found = self.windows.get(window)
        if found is None:
            return self
        components, spouts = {}, []
        for name, component in self.components.items():
            counted = found.components.get(name, ComponentWindow())
            latency = None if counted.execute is None else counted.execute.mean
            counters = {counter: getattr(counted, counter) for counter in COUNTERS}
            components[name] = replace(component, **counters, execute_latency_ms=latency)
            if "spout" in component.kind:
                spouts.append(counted)
        complete = found.complete
        return replace(
            self,
            components=components,
            **{counter: sum(getattr(spout, counter) for spout in spouts) for counter in COUNTERS[1:]},
            complete_latency_ms=None if complete is None else {name: getattr(complete, name) for name in PERCENTILES},
        )

    @property
    def errors(self) -> tuple[ErrorInfo, ...]:
        """The last errors of all components, including the system's, oldest first."""
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
            counts += "; complete latency " + ", ".join(
                f"{key} {milliseconds(value)}" for key, value in latency.items()
            )
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
        """Returns the same as a JSON object."""
        latency = self.complete_latency_ms
        found = {part.name: getattr(self, part.name) for part in fields(self) if part.name not in _APART}
        found["complete_latency_ms"] = None if latency is None else dict(latency)
        found["repetition"] = None if self.repetition is None else asdict(self.repetition)
        found["components"] = {name: component.to_dict() for name, component in self.components.items()}
        found["system_errors"] = [error.to_dict() for error in self.system_errors]
        return found
