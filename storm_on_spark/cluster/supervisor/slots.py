"""One slot of a supervisor: a state machine without I/O and without a clock.

    EMPTY ── assigned ──> WAITING_FOR_CODE ── code is here ──> WAITING_FOR_START ── first beat ──> RUNNING
      ^                    ^            │                             │                               │
      │                    │ pause over │ code can't be had           └─────── dead, silent ──────────┤
      │                    │            v                                                             v
      │               BACKING_OFF <─────┴──────────── all of it is gone ─────────────────────────── KILL
      └──────────────────────────────── assigned otherwise ───────────────────────────────────────────┘

and FINISHED, for a topology that is complete. The names are those of Storm's supervisor, and so are
the states of what runs: valid, timed out, not started, disallowed. `step` is called with the present
observations, any number of times: an instruction that was carried out shows in the next ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Literal

from storm_on_spark.cluster.records import Assignment

PAUSES = (0.0, 2.0, 5.0, 10.0, 30.0, 60.0)
"""Seconds before each restart in a row; the last one repeats. A supervisor never gives up, as in Storm."""
HEALTHY_SECS = 60.0
"""Seconds after which a running driver counts as healthy: its failed starts are forgotten."""
_HARD_AGAIN_SECS = 1.0
"""Time after which SIGKILL is sent again: a process may have been forked while its session was killed."""


@dataclass(frozen=True)
class Wanted:
    """A permission to run: one version of one assignment."""

    assignment: Assignment
    version: int
    """ZooKeeper's, of the assignment's node."""

    @property
    def topology_id(self) -> str:
        """The topology that is to run."""
        return self.assignment.topology_id


class Phase(Enum):
    """Where a slot stands."""

    EMPTY = "empty"
    WAITING_FOR_CODE = "waiting for code"
    BACKING_OFF = "backing off"
    WAITING_FOR_START = "waiting for start"
    RUNNING = "running"
    KILL = "kill"
    FINISHED = "finished"


class WorkerState(Enum):
    """The state of a worker in Storm's terms; the worker is the driver."""

    VALID = "valid"
    TIMED_OUT = "timed out"
    NOT_STARTED = "not started"
    DISALLOWED = "disallowed"


ProcessState = Literal["alive", "orphans", "gone"]
"""Of a driver: it runs; it ended but processes that it started are left; nothing is left."""


@dataclass(frozen=True)
class Seen:
    """The observations of a slot at one moment."""

    now: float
    """Seconds, of a monotonic clock."""
    known: bool = True
    """Whether it is known what is assigned: not before ZooKeeper was read for the first time."""
    wanted: Wanted | None = None
    code: Wanted | None = None
    """For which assignment the code is here and verified."""
    code_error: str | None = None
    """Why the code can't be fetched or unpacked."""
    process: ProcessState = "gone"
    beat_at: float | None = None
    """When the driver's last heartbeat was seen; None before the first one of this launch."""
    running: bool = False
    """Whether the last heartbeat said that the topology runs."""
    finished: bool = False
    """Whether it said that the topology is complete."""


@dataclass(frozen=True)
class Timeouts:
    """Times in seconds, of Storm's keys."""

    start: float = 120.0
    """`supervisor.worker.start.timeout.secs`"""
    beat: float = 30.0
    """`supervisor.worker.timeout.secs`"""
    shutdown: float = 3.0
    """`supervisor.worker.shutdown.sleep.secs`"""


@dataclass(frozen=True)
class Slot:
    """The state of a slot."""

    phase: Phase = Phase.EMPTY
    current: Wanted | None = None
    """The assignment that the slot carries out; None only where it is empty."""
    since: float = 0.0
    """When the phase began."""
    due: float = 0.0
    """When a pause ends or the next SIGKILL is sent."""
    failures: int = 0
    """Starts in a row after which the driver died before it counted as healthy."""
    again: bool = False
    """Of KILL: whether what is stopped failed, and is started again after a pause if it is still wanted."""
    done: Wanted | None = None
    """The last assignment that was completed here: it is not run again, also if older data asks for it."""


@dataclass(frozen=True)
class Fetch:
    """Bring the code here."""

    wanted: Wanted


@dataclass(frozen=True)
class Launch:
    """Start a driver."""

    wanted: Wanted


@dataclass(frozen=True)
class Stop:
    """Ask the driver to end."""


@dataclass(frozen=True)
class Kill:
    """Kill the driver and all that it started."""


@dataclass(frozen=True)
class Clean:
    """Remove what the driver left behind: its node in ZooKeeper, its files."""

    wanted: Wanted


@dataclass(frozen=True)
class Report:
    """Tell the users of the topology why it does not run."""

    wanted: Wanted
    message: str


Instruction = Fetch | Launch | Stop | Kill | Clean | Report


def worker_state(slot: Slot, seen: Seen, timeouts: Timeouts) -> WorkerState:
    """Returns the state of the driver that runs in a slot, in Storm's terms.

    Example:
        >>> a = Assignment(
        ...     topology_id="t-1-1", supervisor_id="s", host="h", port=6700, launch=1, epoch=1, assigned_at=0.0)
        >>> slot = Slot(Phase.RUNNING, Wanted(a, 0))
        >>> for seen in (Seen(99.0, True, Wanted(a, 0), beat_at=98.0), Seen(99.0, True, Wanted(a, 0), beat_at=9.0),
        ...              Seen(99.0, True, Wanted(a, 0)), Seen(99.0, True, Wanted(a, 1), beat_at=98.0)):
        ...     print(worker_state(slot, seen, Timeouts()).value)
        valid
        timed out
        not started
        disallowed
    """
    if seen.known and seen.wanted != slot.current:
        return WorkerState.DISALLOWED
    if seen.beat_at is None:
        return WorkerState.NOT_STARTED
    return WorkerState.TIMED_OUT if seen.now - seen.beat_at > timeouts.beat else WorkerState.VALID


def pause(failures: int) -> float:
    """Returns how long to wait before the next start after this many in a row that did not last."""
    return PAUSES[min(failures, len(PAUSES)) - 1] if failures else 0.0


def step(slot: Slot, seen: Seen, timeouts: Timeouts) -> tuple[Slot, tuple[Instruction, ...]]:
    """Returns the slot's next state, and the instructions to carry out, in this order."""
    if slot.phase is Phase.KILL:
        return _kill(slot, seen)
    if slot.phase in (Phase.WAITING_FOR_START, Phase.RUNNING):
        return _watch(slot, seen, timeouts)
    if not seen.known:
        return slot, ()
    if slot.current != seen.wanted:
        return _turn_to(slot, seen)
    if slot.phase is Phase.WAITING_FOR_CODE:
        return _wait_for_code(slot, seen)
    if slot.phase is Phase.BACKING_OFF and seen.now >= slot.due:
        assert slot.current is not None
        return replace(slot, phase=Phase.WAITING_FOR_CODE, since=seen.now), (Fetch(slot.current),)
    return slot, ()


def _turn_to(slot: Slot, seen: Seen) -> tuple[Slot, tuple[Instruction, ...]]:
    """Begins with another assignment, while nothing runs."""
    if seen.wanted is None:
        return Slot(since=seen.now, done=slot.done), ()
    if seen.wanted == slot.done:
        return Slot(Phase.FINISHED, seen.wanted, seen.now, done=slot.done), ()
    return Slot(Phase.WAITING_FOR_CODE, seen.wanted, seen.now, done=slot.done), (Fetch(seen.wanted),)


def _wait_for_code(slot: Slot, seen: Seen) -> tuple[Slot, tuple[Instruction, ...]]:
    assert slot.current is not None
    if seen.code == slot.current:
        return replace(slot, phase=Phase.WAITING_FOR_START, since=seen.now), (Launch(slot.current),)
    if seen.code_error is not None:
        return _back_off(slot, seen), (Report(slot.current, seen.code_error),)
    return slot, ()


def _watch(slot: Slot, seen: Seen, timeouts: Timeouts) -> tuple[Slot, tuple[Instruction, ...]]:
    """Looks after a driver that was launched."""
    assert slot.current is not None
    state = worker_state(slot, seen, timeouts)
    stopping = replace(slot, phase=Phase.KILL, since=seen.now)
    if seen.process == "gone":
        if seen.finished and state is not WorkerState.DISALLOWED:
            finished = replace(slot, phase=Phase.FINISHED, since=seen.now, done=slot.current)
            return finished, (Clean(slot.current),)
        return _kill(replace(stopping, again=not seen.finished), seen)
    if seen.process == "orphans":
        return replace(stopping, again=not seen.finished, due=seen.now + _HARD_AGAIN_SECS), (Kill(),)
    if state is WorkerState.DISALLOWED:
        return replace(stopping, due=seen.now + timeouts.shutdown, again=False), (Stop(),)
    if seen.finished:
        return slot, ()  # it reports its end, and may have to wait for ZooKeeper
    if state is WorkerState.TIMED_OUT or (not seen.running and seen.now - slot.since > timeouts.start):
        what = "has had no heartbeat" if state is WorkerState.TIMED_OUT else "has not begun to process"
        secs = timeouts.beat if state is WorkerState.TIMED_OUT else timeouts.start
        report = Report(slot.current, f"the driver {what} for {secs:.0f} s; it is killed and started again")
        return replace(stopping, again=True, due=seen.now + _HARD_AGAIN_SECS), (report, Kill())
    if slot.phase is Phase.WAITING_FOR_START and seen.running:
        return replace(slot, phase=Phase.RUNNING, since=seen.now), ()
    if slot.phase is Phase.RUNNING and slot.failures and seen.now - slot.since >= HEALTHY_SECS:
        return replace(slot, failures=0), ()
    return slot, ()


def _kill(slot: Slot, seen: Seen) -> tuple[Slot, tuple[Instruction, ...]]:
    """Waits until all of a driver is gone."""
    assert slot.current is not None
    if seen.process != "gone":
        if seen.now < slot.due:
            return slot, ()
        return replace(slot, due=seen.now + _HARD_AGAIN_SECS), (Kill(),)
    clean = Clean(slot.current)
    if slot.again:
        return _back_off(slot, seen), (clean,)
    done = slot.current if seen.finished else slot.done
    if seen.finished and seen.wanted == slot.current:
        return replace(slot, phase=Phase.FINISHED, since=seen.now, done=done), (clean,)
    return Slot(since=seen.now, done=done), (clean,)


def _back_off(slot: Slot, seen: Seen) -> Slot:
    failures = slot.failures + 1
    return replace(slot, phase=Phase.BACKING_OFF, since=seen.now, due=seen.now + pause(failures), failures=failures)
