"""The messages of a live process. Those between it and spout hosts are in `spouts.messages`.

They are pickled. The socket is in a folder of this run that only this user can enter; that to a further live process is
one of a pair which this has inherited. Between machines they go over authenticated lines; see `remote`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.runtime.bolts.stage import BatchInfo
from storm_on_spark.runtime.reports.report import Failure, TaskMetrics
from storm_on_spark.runtime.spouts.log import Mark

Key = tuple[int, str, int]
"""Of a value of the state: task, name, number."""


@dataclass(frozen=True, slots=True)
class Adopt:
    """From a worker: continue from here. Answered by `Adopted`."""

    start_id: str
    spec: bytes
    token: bytes
    """Names the state. It is part of what the micro-batch commits, so both are committed, or none."""
    offset: Offset
    """Up to where the state has executed the logs."""
    values: Mapping[Key, bytes]
    """The state."""
    carried: tuple[bytes, ...]
    """Chunks of back edges that wait to be executed."""
    before: bytes = b""
    """Names the state that is committed: the one before the micro-batch; empty if there is none."""


@dataclass(frozen=True, slots=True)
class MayAdopt:
    """From a worker on another machine, before it sends all state: would `Adopt` be accepted? Answered by `Adopted`."""


@dataclass(frozen=True, slots=True)
class Fetch:
    """From a worker: asks for the results between two offsets. Answered by `Cut`, or None if they aren't known here."""

    token: bytes
    start: Offset
    end: Offset


@dataclass(frozen=True, slots=True)
class Cut:
    """The results of a micro-batch."""

    token: bytes
    """Of the state that it leaves behind."""
    changes: Mapping[Key, bytes | None]
    """What to write to the state store; None for what to remove."""
    rows: tuple[bytes, ...]
    """Chunks for the sink."""


@dataclass(frozen=True, slots=True)
class Look:
    """From the coordinator, periodically: the topology is still running. Answered by `Status`."""

    clock_ms: int
    clock_at: float
    """Monotonic time (the machine's, in s) at which the topology's clock showed `clock_ms`."""


@dataclass(frozen=True, slots=True)
class Barrier:
    """From the coordinator: everything up to `start` is committed. Execute what is written, and cut the state.

    Answered by the `Offset` of the cut; None if the tasks don't continue from `start`.
    """

    start: Offset
    written: Mapping[int, Mark]
    """Ends of the logs, by spout task, as the coordinator knows them. What a host said may have been lost."""


@dataclass(frozen=True, slots=True)
class Adopted:
    """Answer to `Adopt`: whether it was accepted."""

    live: bool


# --- from the first live process to a further one, and its answers ---


@dataclass(frozen=True, slots=True)
class Take:
    """Continue from this state of your tasks. Answered by `Done`."""

    start_id: str
    spec: bytes
    values: Mapping[Key, bytes]


@dataclass(frozen=True, slots=True)
class Execute:
    """Execute a stage for your tasks. Answered by `Emitted` or `Raised`."""

    stage: int
    bodies: Mapping[int, Sequence[bytes]]
    """The chunks, by task."""
    info: BatchInfo


@dataclass(frozen=True, slots=True)
class Save:
    """Save the state of your tasks. Answered by `Saved`."""

    number: int
    """For bolts that know of transactions."""
    take: bool
    """Whether this is a barrier, and all changes since the last one are asked for."""
    later: bool = False
    """Whether some of them may come late."""


@dataclass(frozen=True, slots=True)
class GiveLate:
    """Send the changes that the last barrier left out. Answered by `Saved`."""

    wait: bool
    """Until it is there; without that, the answer may owe it again."""


@dataclass(frozen=True, slots=True)
class GoBack:
    """Restore everything as of the last barrier. Answered by `Done`."""


@dataclass(frozen=True, slots=True)
class Give:
    """At a barrier: other processes execute these tasks from here on. Answered by `Given`."""

    tasks: Sequence[int]


@dataclass(frozen=True, slots=True)
class Receive:
    """At a barrier: you execute these tasks from here on. Answered by `Done`."""

    values: Mapping[Key, bytes]
    """Their state."""


@dataclass(frozen=True, slots=True)
class Done:
    """The request was executed."""


@dataclass(frozen=True, slots=True)
class Emitted:
    """What tasks have emitted."""

    bodies: Sequence[bytes]
    secs: float
    """How long that took."""


@dataclass(frozen=True, slots=True)
class Raised:
    """A bolt raised, and its state before that was not saved."""

    error: str


@dataclass(frozen=True, slots=True)
class Saved:
    """Reports of tasks and changes of their state, with None for removed keys."""

    reports: Sequence[TaskMetrics | Failure]
    changes: Mapping[Key, bytes | None]
    owes: bool = False
    """Whether more has changed, which `GiveLate` asks for."""
    small: bool = True
    """Whether so little state can be saved with each round; see `LocalTasks.is_small`."""


@dataclass(frozen=True, slots=True)
class Given:
    """The state of tasks that are no longer here."""

    values: Mapping[Key, bytes]


@dataclass(frozen=True, slots=True)
class Trouble:
    """The tasks can't continue."""

    error: str
    of_copy: bool = False
    """Whether that is as a copy of the process has failed."""


Question = Take | Execute | Save | GiveLate | GoBack | Give | Receive
Answer = Done | Emitted | Raised | Saved | Given | Trouble
