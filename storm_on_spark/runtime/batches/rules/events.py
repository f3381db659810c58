"""What happens to micro-batches, and what is to be done: the events and instructions of `planning`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.runtime.reports.report import Failure
from storm_on_spark.runtime.spouts.log import Mark
from storm_on_spark.runtime.spouts.messages import Failed, Idle, Message, Progress, Ready


class Moment(NamedTuple):
    """When something happens."""

    secs: float
    """Monotonic time."""
    clock_ms: int
    """The topology's time."""


# What happens. Messages of spout hosts are events as well: `Ready`, `Idle`, `Progress`, `Failed`.


@dataclass(frozen=True)
class Started:
    """The topology starts."""

    planned: Offset
    """The last offset that Spark has in its log."""
    carried: int
    """The last micro-batch that left carried tuples; -1 without any."""
    executed: bool = False
    """Whether tuples were executed live after that offset."""


@dataclass(frozen=True)
class Polled:
    """Spark asks for the next micro-batch; the one that ends at `start` is committed."""

    start: Offset


@dataclass(frozen=True)
class Committed:
    """Spouts have been told of the outcomes that were committed."""


@dataclass(frozen=True)
class Looked:
    """Something has changed, or the time to wait is over."""


@dataclass(frozen=True)
class Delivered:
    """A micro-batch has run and left carried tuples."""

    batch: int


@dataclass(frozen=True)
class Activated:
    """Spouts are to be active, or not."""

    active: bool


@dataclass(frozen=True)
class LogRead:
    """What a task has in its log after `ReadLog.start`: (end, tuples) of each cut."""

    task: int
    written: Mark
    cuts: tuple[tuple[Mark, int], ...]


@dataclass(frozen=True)
class LogUnreadable:
    """A log could not be read."""

    what: ReadLog
    reason: str


@dataclass(frozen=True)
class HostGone:
    """The process of these tasks has ended without being told to."""

    tasks: tuple[int, ...]
    ran_secs: float


@dataclass(frozen=True)
class WentLive:
    """Whether tuples are executed between micro-batches, which are checkpoints then."""

    on: bool


@dataclass(frozen=True)
class WasCut:
    """The state was cut at a barrier."""

    end: Offset | None
    """Up to where everything is executed; None if there is no cut."""


@dataclass(frozen=True)
class Awaited:
    """Somebody waits until all that spouts have emitted is committed; said again and again meanwhile."""


@dataclass(frozen=True)
class LetGo:
    """Spark's query is about to stop."""


@dataclass(frozen=True)
class Ended:
    """The topology ends, or has failed."""


Event = (
    Started
    | Polled
    | Committed
    | Looked
    | Delivered
    | Activated
    | LogRead
    | LogUnreadable
    | HostGone
    | WentLive
    | WasCut
    | Awaited
    | LetGo
    | Ended
    | Ready
    | Idle
    | Progress
    | Failed
)


# What is to be done.


@dataclass(frozen=True)
class Refuse:
    """Tell Spark that the topology can't continue from this offset."""

    reason: str


@dataclass(frozen=True)
class TellOutcomes:
    """Tell spouts of all outcomes that were delivered, as they are committed; answered by `Committed`."""


@dataclass(frozen=True)
class Tell:
    """Send a message to the host of a task; to all hosts for None."""

    message: Message
    task: int | None = None


@dataclass(frozen=True)
class DropCarried:
    """Delete the carried tuples of all micro-batches up to this one: they have been taken in."""

    batch: int


@dataclass(frozen=True)
class AskBarrier:
    """Let the live process cut its state; answered by `WasCut`."""

    start: Offset
    """Up to where everything is committed."""
    written: Mapping[int, Mark]
    """Ends of the logs, by spout task: what the micro-batch covers at least."""


@dataclass(frozen=True)
class Plan:
    """Tell Spark that the next micro-batch ends here."""

    end: Offset


@dataclass(frozen=True)
class NothingNew:
    """Tell Spark that there is nothing to do after `start`."""

    start: Offset


@dataclass(frozen=True)
class WaitForNews:
    """Send `Looked` after the next event, and after this many seconds at the latest."""

    secs: float


@dataclass(frozen=True)
class Complete:
    """Say that all spouts are exhausted and all that they emitted is done."""


@dataclass(frozen=True)
class ReadLog:
    """Read the cuts of a task that was opened from its log; answered by `LogRead` or `LogUnreadable`."""

    task: int
    start: int
    written: Mark
    """Where the log ends."""
    remind: int | None
    """For a task that was open before: first tell it of all outcomes that may not be in its snapshot, of this position
    up to which Spark has committed, and whether it is active."""


@dataclass(frozen=True)
class StartHost:
    """Start the process again after this many seconds."""

    pause: float


@dataclass(frozen=True)
class GiveUpHost:
    """Don't start the process again: the topology fails."""

    restarts: int
    """How often it was started again, in a row; 0 for one that died before all its spouts were open."""


@dataclass(frozen=True)
class GiveUp:
    """The topology fails."""

    reason: Failure | str


Instruction = (
    Refuse
    | TellOutcomes
    | Tell
    | DropCarried
    | AskBarrier
    | Plan
    | NothingNew
    | WaitForNews
    | Complete
    | ReadLog
    | StartHost
    | GiveUpHost
    | GiveUp
)
