"""What the coordinator and the spout hosts say to each other.

They talk over a socket pair that the host inherits from the driver, so nobody else can: messages are pickled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from storm_on_spark.runtime.fold import U8Array
from storm_on_spark.runtime.ids import U64Array
from storm_on_spark.runtime.latency import LatencyHistogram
from storm_on_spark.runtime.spout_task import SpoutStats


class Setup(NamedTuple):
    """First message to a host: what to run."""

    spec: bytes
    tasks: tuple[tuple[int, ...], ...]
    """The host's executors, each a thread with these tasks."""
    folder: str
    """Where the spout logs are; each task has a folder of its own in it."""
    consumed: Mapping[int, int]
    """Task -> position in its log up to which batches are planned."""
    active: bool
    clock_ms: int
    clock_at: float | None
    """Monotonic time (the machine's, in s) at which the clock showed `clock_ms`; None for a clock that stands still
    until `SetClock` says otherwise."""


class SetClock(NamedTuple):
    """The topology's clock, when it is driven by hand."""

    clock_ms: int


class Want(NamedTuple):
    """A micro-batch could start now: cut at the next chance."""

    share: int | None = None
    """Tuples that it may take of each task; None for as many as before."""


class Consumed(NamedTuple):
    """Spark has committed everything up to `position` of a task's log."""

    task: int
    position: int


class Settle(NamedTuple):
    """What ended in a micro-batch for one spout task."""

    task: int
    batch: int
    roots: U64Array
    codes: U8Array


class SetActive(NamedTuple):
    """Activate or deactivate."""

    active: bool


class Stop(NamedTuple):
    """Close the spouts and exit."""


class Ready(NamedTuple):
    """A task is open; its log ends at `position`."""

    task: int
    position: int


class Progress(NamedTuple):
    """News of a task: a cut, settled messages, or both."""

    task: int
    position: int
    cut: bool
    """Whether `position` is new."""
    tuples: int
    """How many tuples the cut holds."""
    saved_batch: int
    """The last batch whose outcome is in a snapshot, so that it need not be told again after a crash."""
    stats: SpoutStats
    latencies: LatencyHistogram
    """Latencies since the last message."""
    errors: tuple[str, ...]


class Idle(NamedTuple):
    """Answer to `Want` when there is nothing to cut."""

    task: int
    active: bool
    """Whether the spout may emit something yet."""


class Failed(NamedTuple):
    """A task failed for good."""

    task: int
    component: str
    message: str
    trace: str


Message = Setup | SetClock | Want | Consumed | Settle | SetActive | Stop | Ready | Progress | Idle | Failed
