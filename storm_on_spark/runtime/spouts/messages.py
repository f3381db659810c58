"""The messages between the coordinator and the spout hosts.

Messages are pickled. This is safe, because no other process can write them: a host beside the driver inherits one end
of a socket pair, and one on another machine has an authenticated connection (`processes.lines`). Those of a live
process come over a Unix socket in a folder that only this user can enter.

They are dataclasses, not named tuples: two messages of different types are never equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from storm_on_spark.api.metrics.registry import Reading
from storm_on_spark.metrics.latency import Latencies
from storm_on_spark.runtime.codec.packing import pack_runs, unpack_runs
from storm_on_spark.runtime.reports.report import Failure, Reported, SpoutStats
from storm_on_spark.runtime.spouts.log import Entry, Mark, WriterEpoch
from storm_on_spark.runtime.tracking.runs import Runs

FIRST_TUPLES = 10_000
"""Tuples that a micro-batch may hold as long as no batch has been timed."""


class Channel(Protocol):
    """A connection over which messages go, pickled."""

    def send_bytes(self, data: bytes, /) -> None:
        """Sends a message."""
        ...

    def recv_bytes(self) -> bytes:
        """Returns the next message."""
        ...

    def close(self) -> None:
        """Ends the connection."""
        ...


@dataclass(frozen=True, slots=True)
class Setup:
    """First message to a host: what to run."""

    spec: bytes
    tasks: tuple[tuple[int, ...], ...]
    """The host's executors, each a thread with these tasks."""
    folder: str
    """Where the spout logs are; each task has its own folder there."""
    epoch: WriterEpoch
    """Of the host as a writer of logs."""
    planned: Mapping[int, Mark]
    """Task -> up to where its log must be whole."""
    consumed: Mapping[int, int]
    """Task -> position in its log up to which batches are planned."""
    active: bool
    clock_ms: int
    clock_at: float | None
    """Monotonic time (the machine's, in s) at which the clock showed `clock_ms`; None for a clock that stands still
    until `SetClock` says otherwise."""
    claim: str = ""
    """Name of a file beside the logs, by which a host on another machine sees whether it has the same directory."""


@dataclass(frozen=True, slots=True)
class SetClock:
    """The topology's clock, when a test drives it."""

    clock_ms: int


@dataclass(frozen=True, slots=True)
class Want:
    """A micro-batch could start now: cut as soon as possible."""

    share: int | None = None
    """Tuples that it may take of each task; None for as many as before."""


@dataclass(frozen=True, slots=True)
class Consumed:
    """Spark has committed everything up to `position` of a task's log."""

    task: int
    position: int


@dataclass(frozen=True, slots=True)
class Settle:
    """Outcomes of a micro-batch for one spout task."""

    task: int
    batch: int
    ended: Runs
    left: tuple[bytes, ...] = ()
    """LEFT and READ chunks: the rows of a native spout that the micro-batch didn't ack, and how far it has read."""

    def __reduce__(self) -> tuple[Callable[..., Settle], tuple[object, ...]]:
        # Packed as small as possible. In real time it is one run, and packing that takes longer than the rest.
        ended = self.ended
        if len(ended.firsts) == 1:
            return _of_one_run, (self.task, self.batch, *(column.item() for column in ended), self.left)
        return _unpacked, (
            self.task,
            self.batch,
            len(ended.firsts),
            int(ended.counts.sum()),
            pack_runs(ended),
            self.left,
        )


@dataclass(frozen=True, slots=True)
class SetActive:
    """Activate or deactivate."""

    active: bool


@dataclass(frozen=True, slots=True)
class Stop:
    """Close the spouts and exit."""


@dataclass(frozen=True, slots=True)
class Ready:
    """A task is open; its log ends at `written`."""

    task: int
    written: Mark
    reached: tuple[int, str | None] | None = None
    """How far the task of a native spout has read; see `ReadsItself.reached`."""


@dataclass(frozen=True, slots=True)
class Progress:
    """News of a task: a cut, settled messages, or both."""

    task: int
    written: Mark
    """Where the log ends."""
    cut: bool
    """Whether `written` is new."""
    tuples: int
    """How many tuples the cut holds."""
    saved_batch: int
    """The last batch whose outcome is in a snapshot; after a crash only later outcomes are sent again."""
    stats: SpoutStats
    latencies: Latencies
    """Latencies since the last message."""
    errors: tuple[Reported, ...]
    registered: tuple[Reading, ...] = ()
    """What the metrics that it registered have to say."""
    settled_batch: int = -1
    """The last batch whose outcome it has heard."""
    again: int = 0
    """Messages of a native spout's rows that are kept for another attempt, or under way in it."""
    waiting: int = 0
    """Those that are kept and not under way: an inactive spout keeps them for its next start."""
    emitting_secs: float = 0.0
    """Seconds in `next_tuple` since the last message."""
    writing_secs: float = 0.0
    """Seconds in which it wrote its log since then."""


@dataclass(frozen=True, slots=True)
class Idle:
    """Answer to `Want` when there is nothing to cut."""

    task: int
    active: bool
    """Whether the spout may emit something yet."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A task failed for good."""

    task: int
    component: str
    message: str
    trace: str
    own_trace: str = ""
    """The part of `trace` that is the user's."""
    refused: bool = False
    """Whether the reason is that it can't continue from the checkpoint."""

    @property
    def failure(self) -> Failure:
        """Returns the failure as a record of the topology's errors."""
        return Failure(self.component, self.task, self.message, self.trace, True, self.own_trace)


@dataclass(frozen=True, slots=True)
class Blocked:
    """A call of `next_tuple` has not returned for a long time."""

    task: int
    component: str
    message: str

    @property
    def failure(self) -> Failure:
        """Returns it as a record of the topology's errors; the topology continues."""
        return Failure(self.component, self.task, self.message, fatal=False)


@dataclass(frozen=True, slots=True)
class GoLive:
    """From the coordinator: there is a live process."""

    path: str
    """Of its Unix socket."""
    pid: int


@dataclass(frozen=True, slots=True)
class Written:
    """To a live process: the log of a task has grown."""

    task: int
    begin: int
    end: Mark
    entries: tuple[Entry, ...] | None
    """What is between the two; None if it has to be read from the log."""

    def __reduce__(self) -> tuple[type[Written], tuple[object, ...]]:
        # A data class's own way takes longer than the rest of sending it.
        return Written, (self.task, self.begin, self.end, self.entries)


@dataclass(frozen=True, slots=True)
class Executed:
    """From a live process: it has executed everything up to `position` of a task's log."""

    task: int
    position: int

    def __reduce__(self) -> tuple[type[Executed], tuple[int, int]]:
        return Executed, (self.task, self.position)


@dataclass(frozen=True, slots=True)
class Acked:
    """From a live process: a few messages of a task are acked before their micro-batch is committed."""

    task: int
    roots: tuple[int, ...]
    """Ascending."""

    def __reduce__(self) -> tuple[type[Acked], tuple[int, tuple[int, ...]]]:
        return Acked, (self.task, self.roots)


Told = list[Settle | Executed | Acked]
"""From a live process: what a round was for the tasks of a spout host."""


@dataclass(frozen=True, slots=True)
class Live:
    """From a live process: whether it executes new records."""

    on: bool


Message = (
    Setup
    | SetClock
    | Want
    | Consumed
    | Settle
    | SetActive
    | Stop
    | Ready
    | Progress
    | Idle
    | Failed
    | Blocked
    | GoLive
    | Written
    | Executed
    | Acked
    | Live
)

ForOneTask = (Settle, Consumed, Executed, Acked)
"""Messages that are for one task of a host."""


def _of_one_run(task: int, batch: int, first: int, step: int, count: int, code: int, left: tuple[bytes, ...]) -> Settle:
    ids = np.array([first, step, count], np.uint64)
    return Settle(task, batch, Runs(ids[:1], ids[1:2], ids[2:], np.array([code], np.uint8)), left)


def _unpacked(task: int, batch: int, count: int, total: int, packed: bytes, left: tuple[bytes, ...]) -> Settle:
    ended, _ = unpack_runs(memoryview(packed), count, total)
    return Settle(task, batch, ended, left)
