"""The rules of a spout task's pace: when it is called, when it cuts, and what it reports.

Events and the time go in, instructions come out. The rules use no I/O, clock or threads; `task_loop` does those.

One turn of a task has two events. `Turn` asks whether `next_tuple` may be called, and how often. `TurnEnded` asks
whether to cut and what to tell the coordinator. Three limits hold a spout back: `topology.max.spout.pending`, the
tuples of the next two micro-batches, and the bytes that may wait in the log.

A cut is made when it is full; when the coordinator wants one and there is a tuple for it; or when something has waited
for `Pace.cut_secs`. A wanted cut waits for `Pace.gather_secs` while the spout continues to emit. In real time a cut is
made as soon as the one before was executed: the more there is to do, the larger they become.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol


@dataclass(frozen=True)
class Pace:
    """Times and sizes of the rules."""

    burst_calls: int = 64
    """Calls of `next_tuple` in a turn. Messages are read between two turns."""
    burst_secs: float = 0.002
    """A turn also ends after this time."""
    cut_bytes: int = 16 << 20
    """A cut holds at most this many bytes, by the size of the tuples in the last cut."""
    guessed_tuple_bytes: int = 64 << 10
    """The size of a tuple before the first cut."""
    cut_secs: float = 0.05
    """A cut that the coordinator did not ask for is made after something has waited for this time."""
    gather_secs: float = 0.02
    """How long a wanted cut waits for a spout that continues to emit. Acks that let it emit again come at the same time
    as the wish, and the few tuples of its first moment are not worth a micro-batch."""
    cut_share: int = 10
    """Cuts that nobody asked for take at most one part in this many of the time: a big snapshot is taken less often."""
    report_secs: float = 0.1
    """Time between two reports of counters and errors."""


class Load(Protocol):
    """The present load of a task. Turns are frequent, so a number is computed only when a rule needs it."""

    @property
    def fresh(self) -> int:
        """Tuples that are in no cut."""

    @property
    def dirty(self) -> bool:
        """Whether a cut would save new tuples or new acks."""

    @property
    def pending(self) -> int:
        """Messages that are neither acked nor failed."""

    @property
    def log_end(self) -> int:
        """Position of the end of the log, in bytes."""


# Events. They are named tuples because those are created faster, up to some thousand times a second.
# They are distinguished by type and never compared.


class Turn(NamedTuple):
    """The thread has reached this task. Answered by `Burst`, or by no instruction if the spout must not be called."""

    active: bool


class TurnEnded(NamedTuple):
    """The thread is about to leave this task."""

    load: Load
    active: bool
    going_on: bool = False
    """Whether the burst ended by its limits, and not because the spout had nothing to emit."""


class Wanted(NamedTuple):
    """The coordinator could start a micro-batch."""

    share: int | None
    """Tuples that it takes of each task; None for as many as before."""


class Committed(NamedTuple):
    """Spark has committed everything up to this position of the log."""

    position: int


class WasCut(NamedTuple):
    """A cut was made, as the rules said."""

    end: int
    """Position of its end in the log."""
    tuples: int
    size: int
    """Bytes of its tuples."""
    secs: float
    """How long it took."""


class WentLive(NamedTuple):
    """Whether tuples are executed as they are cut instead of in micro-batches."""

    on: bool


class Executed(NamedTuple):
    """Everything up to this position of the log was executed, between two micro-batches."""

    position: int


Event = Turn | TurnEnded | Wanted | Committed | WasCut | WentLive | Executed


# Instructions. They are dataclasses, so that two instructions of different types are never equal.


@dataclass(frozen=True, slots=True)
class Burst:
    """Call `next_tuple` until it emits nothing, or until one of these limits.

    Before a call that finds `PacingRules.reach` tuples, ask for it again.
    """

    calls: int
    fresh: int
    """Tuples that fill a cut."""
    secs: float
    """How long the burst may take."""


@dataclass(frozen=True, slots=True)
class MakeCut:
    """Write a cut and tell the coordinator; answered by `WasCut`."""


@dataclass(frozen=True, slots=True)
class SayIdle:
    """Tell the coordinator that there is nothing to cut: it waits for an answer."""


@dataclass(frozen=True, slots=True)
class Report:
    """Tell the coordinator of counters and errors that are new."""


Instruction = Burst | MakeCut | SayIdle | Report


class PacingRules:
    """The pace of one task.

    Args:
        max_pending: messages that may be pending; None without a limit.
        log_bytes: bytes that may wait in the log.
        share: tuples that a micro-batch takes of the task.
        cut_tuples: tuples that a cut holds at most.
        uncommitted: cuts in the log that Spark has not committed: (end, tuples).
        consumed: position in the log up to which micro-batches are planned.
        now: monotonic time in s.
        pace: times and sizes.

    Example:
        >>> from types import SimpleNamespace
        >>> rules = PacingRules(None, 1 << 20, 1000, 16_384, (), consumed=0, now=0.0)
        >>> rules.step(Turn(active=True), 0.0)
        (Burst(calls=64, fresh=256, secs=0.002),)
        >>> three = SimpleNamespace(fresh=3, dirty=True, pending=3, log_end=0)
        >>> rules.step(TurnEnded(three, active=True), 0.001), rules.step(Wanted(None), 0.002)
        ((), ())
        >>> rules.step(TurnEnded(three, active=True), 0.003)
        (MakeCut(),)
    """

    def __init__(
        self,
        max_pending: int | None,
        log_bytes: int,
        share: int,
        cut_tuples: int,
        uncommitted: Iterable[tuple[int, int]],
        *,
        consumed: int,
        now: float,
        pace: Pace = Pace(),  # it is immutable
    ) -> None:
        self._pace = pace
        self._max_pending = max_pending
        self._log_bytes = log_bytes
        self._share = share
        self._most_cut_tuples = cut_tuples
        self._tuple_bytes = float(pace.guessed_tuple_bytes)
        self._cut_tuples = self._by_size()
        #: The answer to a `Turn`, which stays the same until one of the two changes.
        self._bursts = self._burst()
        self._live = False
        #: Cuts that wait to be executed: (end position, tuples).
        self._waiting = deque(uncommitted)
        self._waiting_tuples = sum(tuples for _, tuples in self._waiting)
        #: End of the last cut with tuples.
        self._tuples_end = max((end for end, tuples in self._waiting if tuples), default=consumed)
        self._consumed = consumed
        #: Position up to which Spark has committed. A later micro-batch may run again, and needs its input.
        self.committed = 0
        #: Whether the next cut could start a micro-batch; and whether the coordinator waits for an answer.
        self._wanted = self._asked = False
        self._wanted_at = 0.0
        #: Since when there has been something to cut.
        self._dirty_at: float | None = None
        self._last_cut = now
        self._cut_secs = 0.0
        self._last_report = 0.0

    def step(self, event: Event, now: float) -> tuple[Instruction, ...]:
        """Takes in what happened at the monotonic time `now`, in s.

        Returns:
            What to do, in this order.
        """
        # The first two happen up to some thousand times a second, the others once a micro-batch.
        if isinstance(event, Turn):
            if not event.active:
                return ()
            return self._bursts
        if isinstance(event, TurnEnded):
            return self._turn_ended(event, now)
        if isinstance(event, Wanted):
            self._share = event.share or self._share
            self._bursts = self._burst()
            self._wanted = self._asked = True
            self._wanted_at = now
        elif isinstance(event, Committed):
            # A restarted host may receive an earlier position after a later one.
            self.committed = max(self.committed, event.position)
            self._consumed = max(self._consumed, event.position)
            self._executed(event.position)
        elif isinstance(event, Executed):
            self._executed(event.position)
        elif isinstance(event, WentLive):
            self._live = event.on
        else:
            self._was_cut(event, now)
        return ()

    def _executed(self, position: int) -> None:
        while self._waiting and self._waiting[0][0] <= position:
            self._waiting_tuples -= self._waiting.popleft()[1]

    @property
    def asked(self) -> bool:
        """Whether the coordinator waits for an answer."""
        return self._asked

    def reach(self, load: Load) -> float:
        """Returns how many tuples may be in no cut before this has to be asked again.

        If that many are there already, the spout must not be called. Nothing makes room within a burst: acks come
        between two of them.
        """
        fresh = load.fresh
        room = self._room(load, fresh)
        # The limit of bytes holds from the first tuple on.
        return fresh + (room if fresh or room <= 0 else 1)

    def blocked(self, load: Load) -> bool:
        """Returns whether the limits forbid a call of `next_tuple`."""
        return self._room(load, load.fresh) <= 0

    def held(self, load: Load, active: bool) -> bool:
        """Returns whether the task must wait for a message."""
        return not load.dirty and (not active or self.blocked(load))

    def _room(self, load: Load, fresh: int) -> float:
        waiting = self._waiting_tuples + fresh
        room: float = 2 * self._share - waiting
        if self._max_pending is not None:
            room = min(room, self._max_pending - load.pending)
        if fresh or self._tuples_end > self._consumed:
            # Without a tuple that is not committed, no micro-batch is coming that would make room in the log.
            free = self._log_bytes - (load.log_end - self._consumed)
            room = min(room, free / self._tuple_bytes - fresh)
        return room

    def _burst(self) -> tuple[Burst]:
        return (Burst(self._pace.burst_calls, self._full(), self._pace.burst_secs),)

    def _full(self) -> int:
        """Returns the number of tuples that make a cut, at most the size of the next micro-batch."""
        return min(self._cut_tuples, self._share)

    def _by_size(self) -> int:
        """Returns how many tuples a cut may hold, by their size."""
        return max(1, min(self._most_cut_tuples, int(self._pace.cut_bytes / self._tuple_bytes)))

    def _turn_ended(self, event: TurnEnded, now: float) -> tuple[Instruction, ...]:
        load, pace = event.load, self._pace
        done: list[Instruction] = []
        fresh = load.fresh
        if load.dirty:
            if self._dirty_at is None:
                self._dirty_at = now
            rested = now - self._last_cut >= pace.cut_share * self._cut_secs
            due = now - self._dirty_at >= pace.cut_secs and rested
            gathering = self._wanted and event.going_on and now - self._wanted_at < pace.gather_secs
            at_once = self._live and fresh and not self._waiting_tuples
            if at_once or fresh >= self._full() or ((due or (self._wanted and fresh)) and not gathering):
                done.append(MakeCut())
                if fresh:
                    self._wanted = self._asked = False
                fresh = 0
        if self._asked and not fresh:
            self._asked = False
            done.append(SayIdle())
        if now - self._last_report > pace.report_secs:
            self._last_report = now
            done.append(Report())
        return tuple(done)

    def _was_cut(self, event: WasCut, now: float) -> None:
        if event.tuples:
            self._tuple_bytes = max(1.0, event.size / event.tuples)
            self._cut_tuples = self._by_size()
            self._bursts = self._burst()
        self._waiting.append((event.end, event.tuples))
        self._waiting_tuples += event.tuples
        if event.tuples:
            self._tuples_end = event.end
        self._dirty_at = None
        self._last_cut, self._cut_secs = now, event.secs


_REST_SECS: Final = ((3, 0.001), (4, 0.002), (250, 0.004), (350, 0.01), (750, 0.02), (1750, 0.05))
_MOST_REST_SECS: Final = 0.1
"""Waits after turns without a tuple, as in Storm's progressive wait strategy: up to which turn in a row, how long. The
last four are for a spout that has had nothing for one second, for two, for ten and for a minute."""
_LONG_TURNS: Final = _REST_SECS[-1][0]
_HELD_SECS: Final = 0.05
"""The same while no spout may be called and nothing waits to be cut: only a message changes that, and it wakes."""


class RestRules:
    """How long an executor's thread waits between its turns.

    Example:
        >>> rules = RestRules()
        >>> rules.after(emitted=False, news=False, held=False), rules.after(emitted=True, news=False, held=False)
        (0.001, 0.0)
    """

    def __init__(self) -> None:
        self._idle_turns = 0

    def after(self, *, emitted: bool, news: bool, held: bool) -> float:
        """Returns how long to wait after a turn, in s; a message ends the wait.

        Args:
            emitted: whether any task emitted.
            news: whether a message has come by now.
            held: whether all tasks wait for a message.
        """
        if emitted:
            self._idle_turns = 0
            return 0.0
        if news:
            return 0.0
        self._idle_turns += 1
        if held:
            return _HELD_SECS
        if self._idle_turns > _LONG_TURNS:
            return _MOST_REST_SECS
        return next((secs for turns, secs in _REST_SECS if self._idle_turns <= turns), _MOST_REST_SECS)
