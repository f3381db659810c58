"""The rules of micro-batches: when one is planned, how far it reaches, and what spouts and their hosts are told.

Events and the time go in, instructions come out. The rules use no I/O, clock or threads; the coordinator does those.

One round with Spark, from its question for the next micro-batch to the answer:

    IDLE --Polled--> COMMITTING --Committed--> ASKING --there is something to do--> GATHERING --Plan--> IDLE
                                                 |                                      |
                                                 +--nothing for `BatchPace.poll_secs`---+--the query ends--> IDLE

In real time, GATHERING lasts until a checkpoint is due, and CUTTING follows: the live process says up to where it has
executed, and the micro-batch ends there. If it has nothing to say, the micro-batch is planned as ever.

What is executed there last may be no tuple of a spout: a timer acks what a window held. Spouts hear of it at once, but
the state in Spark lacks it until a micro-batch is planned when nothing is pending. Only then is a finite topology done.

In ASKING, all spouts have been asked for a cut. Tuples in a cut, carried tuples, a tick, or the timeout of a message
that is pending are something to do. In GATHERING, every spout has a moment to add what it has, and the least interval
between two micro-batches passes.

Spouts may die at any time. What a spout has cut is in its log and stays; the rules forget only what it last said.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from enum import Enum

from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.runtime.batches.rules import events
from storm_on_spark.runtime.batches.rules.restarts import RestartPolicy
from storm_on_spark.runtime.batches.rules.size import BatchSize
from storm_on_spark.runtime.batches.rules.spout_progress import SpoutProgress
from storm_on_spark.runtime.spouts.log import Mark
from storm_on_spark.runtime.spouts.messages import Consumed, Failed, Idle, Progress, Ready, SetActive, SetClock, Want


@dataclass(frozen=True)
class BatchPace:
    """Times of the rules."""

    poll_secs: float = 0.2
    """How long a poll waits before it answers that there is nothing new."""
    most_poll_secs: float = 1.6
    """The same after several polls without news. Stopping Spark's query without `LetGo` waits for such a poll."""
    idle_poll_secs: float = 3.2
    """The same after `idle_polls` in a row, which is close to a minute: a poll keeps three processes busy."""
    idle_polls: int = 36
    awaited_secs: float = 1.0
    """The same between two checkpoints in real time while a caller waits for a commit, which it repeats more often."""
    answer_secs: float = 0.005
    """How long spouts have to cut when there is something to do already."""
    idle_rounds: int = 0
    """How often Spark must have asked, after spouts were deactivated, before they are drained."""

    def longest_poll(self, quiet: int) -> float:
        """Returns how long a poll waits, in s, after this many without news."""
        if quiet >= self.idle_polls:
            return self.idle_poll_secs
        return min(self.most_poll_secs, self.poll_secs * float(2**quiet))


_BESIDE_NATIVE_SECS = 0.01


def beside_native(pace: BatchPace) -> BatchPace:
    """Returns the times of rules beside sources of Spark's own.

    Spark asks its sources one after the other, so their rows wait for a poll that waits. How many rows a micro-batch
    has is known once it is committed. When spouts are deactivated, one may be running, and Spark may have asked a
    source for the next one already. Both are committed when Spark has asked twice.
    """
    poll_secs, most = min(pace.poll_secs, _BESIDE_NATIVE_SECS), _BESIDE_NATIVE_SECS
    return replace(pace, poll_secs=poll_secs, most_poll_secs=most, idle_poll_secs=most, idle_rounds=2)


class Phase(Enum):
    """Where a round with Spark is."""

    IDLE = "Spark has not asked for a micro-batch"
    COMMITTING = "spouts are told what became of their tuples"
    ASKING = "spouts are asked for cuts, and there is nothing to do"
    GATHERING = "there is something to do, and more may come"
    CUTTING = "the live process cuts its state"


_HAND_SECS = 0.01
"""A clock that is driven by hand does not say when it moves: it is looked at this often."""
_NO_PERIOD_SECS = 60.0


class BatchRules:
    """The micro-batches of one topology.

    Args:
        hosts: the spout tasks of every host.
        size: how many tuples a micro-batch may hold.
        interval_secs: least time between the plans of two micro-batches that are not full.
        timeout_ms: after which a message times out; None if none does.
        period_ms: the periods of ticks, turns and timers.
        active: whether spouts start out active.
        clock_runs: whether the topology's clock runs without being set.
        checkpoint_secs: least time between the plans of two micro-batches in real time, while nobody waits for one.
        checkpoint_bytes: how many bytes in a log end that time.
        pace: times of the rules.

    Example:
        >>> rules = BatchRules([(3,)], BatchSize(1000, 5.0), 0.0, None, (), active=True, clock_runs=True)
        >>> at = events.Moment(0.0, clock_ms=500)
        >>> rules.step(events.Started(Offset(), carried=-1), at), rules.step(events.Polled(Offset()), at)
        ([], [TellOutcomes()])
        >>> rules.step(events.Committed(), at)
        [DropCarried(batch=-1), Tell(message=Want(share=1000), task=None)]
        >>> rules.step(events.Looked(), at)
        [WaitForNews(secs=0.2)]
        >>> rules.step(events.LogRead(3, Mark(120), cuts=((Mark(120), 7),)), at)
        []
        >>> rules.step(events.Looked(), at), rules.step(Idle(3, active=True), at)
        ([WaitForNews(secs=0.005)], [])
        >>> [plan] = rules.step(events.Looked(), at)
        >>> plan.end.logs, plan.end.clock
        ({3: 120}, 500)
    """

    def __init__(
        self,
        hosts: Iterable[tuple[int, ...]],
        size: BatchSize,
        interval_secs: float,
        timeout_ms: int | None,
        period_ms: Collection[int],
        *,
        active: bool,
        clock_runs: bool,
        checkpoint_secs: float = 0.0,
        checkpoint_bytes: int | None = None,
        pace: BatchPace = BatchPace(),
    ) -> None:
        self._restarts = {tuple(tasks): RestartPolicy() for tasks in hosts}
        self._tasks = {task: SpoutProgress() for task in sorted(task for tasks in self._restarts for task in tasks)}
        self._size = size
        self._interval = interval_secs
        self._checkpoint_secs = checkpoint_secs
        self._checkpoint_bytes = checkpoint_bytes
        #: When somebody last said that they wait for a commit.
        self._awaited_at = float("-inf")
        #: Whether tuples are executed between micro-batches.
        self.live = False
        #: Whether some were, ever.
        self._was_live = False
        #: Whether nothing was pending when the last micro-batch was planned, and the same of the last committed one.
        self._clear = self._covered = False
        self._timeout_ms = timeout_ms
        self._period_ms = set(period_ms)
        self._clock_runs = clock_runs
        self._pace = pace
        self.active = active
        self.stopped = False
        """Whether the topology ends."""
        self.refusal: str | None = None
        """Why the topology can't continue from this checkpoint."""
        self.phase = Phase.IDLE
        self._let_go = False
        #: The last offset that Spark has planned a micro-batch up to.
        self._planned = Offset()
        #: The last micro-batch that left carried tuples.
        self._carried = -1
        #: When the last micro-batch was planned.
        self._batch_at = float("-inf")
        #: How often Spark has asked since spouts were activated or deactivated.
        self._rounds = 0
        #: Polls without news since the last one with news.
        self._quiet_polls = 0
        #: When a poll answers that there is nothing new; and until when spouts may add to what there is, 0 in ASKING.
        self._deadline = self._patience = 0.0

    def step(self, event: events.Event, at: events.Moment) -> list[events.Instruction]:
        """Takes in what happened.

        Returns:
            What to do, in this order.
        """
        if isinstance(event, (Ready, Idle, Progress, Failed, events.LogRead, events.LogUnreadable)):
            return self._spout(event)
        if isinstance(event, (events.Started, events.Polled, events.Committed, events.Looked, events.WasCut)):
            return self._round(event, at)
        if isinstance(event, events.HostGone):
            return self._gone(event)
        if isinstance(event, events.Activated):
            return self._activate(event.active)
        if isinstance(event, events.Delivered):
            self._carried = max(self._carried, event.batch)
        elif isinstance(event, events.WentLive):
            self.live = event.on
            self._was_live = self._was_live or event.on
        elif isinstance(event, events.Awaited):
            self._awaited_at = at.secs
        elif isinstance(event, events.LetGo):
            self._let_go = True
        else:
            self.stopped = True
        return []

    def unopened(self) -> list[int]:
        """Returns the tasks that are not open."""
        return [number for number, task in self._tasks.items() if not task.ready]

    def has_opened(self, task: int | None) -> bool:
        """Returns whether a task was open at least once; for None, whether all tasks were."""
        return all(state.opened for number, state in self._tasks.items() if task in (None, number))

    def is_ready(self, task: int) -> bool:
        """Returns whether a task is open, and all that is in its log is known."""
        return self._tasks[task].ready

    def head(self, task: int) -> Mark:
        """Returns the end of a task's log as far as it is known."""
        return self._tasks[task].head

    def consumed(self, task: int) -> int:
        """Returns a position in a task's log up to which micro-batches were planned at the start, or are committed."""
        return self._tasks[task].consumed

    def waiting(self) -> dict[int, int]:
        """Returns by task how many tuples are in its log for which no micro-batch was planned."""
        return {number: task.waiting() for number, task in sorted(self._tasks.items())}

    def is_drained(self) -> bool:
        """Returns whether spouts are inactive, and all that they emitted has been processed and committed."""
        heard = self._rounds >= self._pace.idle_rounds and self._is_covered()
        return heard and all(task.is_drained() for task in self._tasks.values())

    def is_settled(self) -> bool:
        """Returns whether all that spouts have emitted so far, active or not, has been processed and committed."""
        return self._is_covered() and all(task.is_settled() for task in self._tasks.values())

    # --- a round with Spark ---------------------------------------------------------------------------------------

    def _round(
        self,
        event: events.Started | events.Polled | events.Committed | events.Looked | events.WasCut,
        at: events.Moment,
    ) -> list[events.Instruction]:
        if isinstance(event, events.Started):
            self._planned, self._carried, self._was_live = event.planned, event.carried, event.executed
            for number, task in self._tasks.items():
                task.head = event.planned.mark(number)
                task.consumed = task.head.position
            return []
        if isinstance(event, events.Polled):
            return self._polled(event.start, at)
        if isinstance(event, events.Committed):
            return self._committed(at)
        if isinstance(event, events.WasCut):
            return self._was_cut(event.end, at)
        return self._looked(at)

    def _polled(self, start: Offset, at: events.Moment) -> list[events.Instruction]:
        self._size.ended(at.secs)
        if (start.logs, start.epochs) != (self._planned.logs, self._planned.epochs):
            # Another driver has planned since this one read what was planned; the spouts here know nothing of that.
            return [
                events.Refuse(
                    f"Spark continues from {start}, but this driver planned {self._planned}: another one runs on this "
                    "checkpoint"
                )
            ]
        self._planned = start
        self.phase = Phase.COMMITTING
        return [events.TellOutcomes()]

    def _committed(self, at: events.Moment) -> list[events.Instruction]:
        done: list[events.Instruction] = []
        start, pace = self._planned, self._pace
        self._covered = self._clear
        self._rounds += 1
        for number, task in self._tasks.items():
            position = start.logs.get(number, 0)
            if position > task.committed:
                task.committed = position
                task.consumed = max(task.consumed, position)
                done.append(events.Tell(Consumed(number, position), number))
            task.answered = task.idle = False
        done.append(events.DropCarried(start.carried))
        if not self._clock_runs:
            done.append(events.Tell(SetClock(at.clock_ms)))
        self.phase = Phase.ASKING
        self._patience = 0.0
        self._deadline = at.secs + pace.longest_poll(self._quiet_polls)
        return [*done, events.Tell(Want(self._size.for_each(len(self._tasks))))]

    def _looked(self, at: events.Moment) -> list[events.Instruction]:
        if self.stopped or self._let_go:
            self.phase = Phase.IDLE
            return [events.NothingNew(self._planned)]
        # Also if a tick is due: where micro-batches take longer than the period of a tick, one always is.
        done: list[events.Instruction] = [events.Complete()] if not self._has_tuples() and self._is_complete() else []
        if not self._is_due(at.clock_ms):
            self.phase = Phase.ASKING
            if at.secs >= self._deadline:
                self._quiet_polls = min(self._quiet_polls + 1, self._pace.idle_polls)
                self.phase = Phase.IDLE
                return [*done, events.NothingNew(self._planned)]
            return [*done, events.WaitForNews(min(self._deadline - at.secs, self._until_period_ends(at.clock_ms)))]
        self.phase = Phase.GATHERING
        self._quiet_polls = 0
        self._patience = self._patience or min(self._deadline, at.secs + self._pace.answer_secs)
        answered = at.secs >= self._patience or all(task.answered for task in self._tasks.values())
        rested = self._rests_until(at.secs)
        if (self._is_full() and not self.live) or (answered and at.secs >= rested):
            if self.live:
                self.phase = Phase.CUTTING
                return [
                    *done,
                    events.AskBarrier(self._planned, {number: task.head for number, task in self._tasks.items()}),
                ]
            return [*done, self._plan(self._cover(at), at, clear=self._is_clear())]
        self._patience = max(self._patience, rested)
        return [*done, events.WaitForNews(self._patience - at.secs)]

    def _rests_until(self, now: float) -> float:
        """Returns when the next micro-batch may be planned, unless it is full."""
        if not self.live:
            return self._batch_at + self._interval
        if not self.active or all(task.is_done() for task in self._tasks.values()):
            return self._batch_at  # the last checkpoint is all that a finite topology waits for, and an inactive one
        if self._checkpoint_bytes is not None and any(
            task.head.position - self._planned.logs.get(number, 0) >= self._checkpoint_bytes
            for number, task in self._tasks.items()
        ):
            return self._batch_at  # spouts must not wait until their logs are trimmed
        secs = self._checkpoint_secs
        if now - self._awaited_at < self._pace.awaited_secs:
            secs = min(secs, self._pace.awaited_secs)
        return self._batch_at + secs

    def _was_cut(self, end: Offset | None, at: events.Moment) -> list[events.Instruction]:
        if self.stopped or self._let_go:
            self.phase = Phase.IDLE
            return [events.NothingNew(self._planned)]
        if end is None or not self._is_ahead(end):
            self.live = False
            return [self._plan(self._cover(at), at, clear=self._is_clear())]
        # With tuples of which nobody has told yet, messages may be pending.
        known = all(end.mark(number).position <= task.head.position for number, task in self._tasks.items())
        for number, task in self._tasks.items():
            task.take_to(end.mark(number))
        self._size.began(0, at.secs)
        end = replace(end, carried=max(self._planned.carried, self._carried))
        return [self._plan(end, at, clear=known and self._is_clear())]

    def _is_ahead(self, end: Offset) -> bool:
        """Whether an offset can follow the one that is planned, in the logs as far as they are known."""
        for number, task in self._tasks.items():
            mark, planned = end.mark(number), self._planned.mark(number)
            if mark != planned and (mark.position <= planned.position or mark.epoch < task.head.epoch):
                return False
        return end.clock >= self._planned.clock

    def _plan(self, end: Offset, at: events.Moment, *, clear: bool) -> events.Plan:
        self._batch_at = at.secs
        self._clear = clear
        self.phase = Phase.IDLE
        self._planned = end
        return events.Plan(end)

    def _has_tuples(self) -> bool:
        return any(task.waiting() for task in self._tasks.values()) or self._carried > self._planned.carried

    def _is_due(self, clock_ms: int) -> bool:
        if self._has_tuples() or (self._is_clear() and not self._is_covered()):
            return True
        return any(clock_ms // period > self._planned.clock // period for period in self._periods())

    def _periods(self) -> set[int]:
        """Returns the periods in ms whose end is a reason for a micro-batch: ticks, and trees that may time out."""
        if self._timeout_ms is not None and any(task.pending for task in self._tasks.values()):
            return self._period_ms | {self._timeout_ms}
        return self._period_ms

    def _until_period_ends(self, clock_ms: int) -> float:
        """Returns in how many seconds the first of these periods ends."""
        if not self._clock_runs:
            return _HAND_SECS
        return min(((period - clock_ms % period) / 1000 for period in self._periods()), default=_NO_PERIOD_SECS)

    def _is_full(self) -> bool:
        return sum(task.waiting() for task in self._tasks.values()) >= self._size.limit

    def _is_complete(self) -> bool:
        """Returns whether a finite topology is done: all that was planned is committed, and nothing more comes."""
        covered = self.active and self._is_covered()
        return covered and all(
            task.is_finished(self._planned.logs.get(number, 0)) for number, task in self._tasks.items()
        )

    def _is_clear(self) -> bool:
        return all(task.is_clear() for task in self._tasks.values())

    def _is_covered(self) -> bool:
        """Returns whether the state in Spark has all that spouts may have heard of, once nothing is pending."""
        return self._covered or not self._was_live

    def _cover(self, at: events.Moment) -> Offset:
        start = self._planned
        logs, epochs = dict(start.logs), dict(start.epochs)
        share, total = self._size.share(sum(task.waiting() > 0 for task in self._tasks.values())), 0
        for number, task in self._tasks.items():
            taken, end = task.take(share)
            total += taken
            if end is not None:
                logs[number], epochs[number] = end
        self._size.began(total, at.secs)
        return Offset(logs, max(start.clock, at.clock_ms), max(start.carried, self._carried), epochs)

    # --- spouts and their hosts -----------------------------------------------------------------------------------

    def _activate(self, active: bool) -> list[events.Instruction]:
        if self.active == active:
            return []
        self.active, self._rounds = active, 0
        for task in self._tasks.values():
            task.quiet = False
        # Asked at once, so that code that waits until all is done doesn't wait for the next poll.
        return [events.Tell(SetActive(active)), *([] if active else [events.Tell(Want())])]

    def _spout(
        self, event: Ready | Idle | Progress | Failed | events.LogRead | events.LogUnreadable
    ) -> list[events.Instruction]:
        if isinstance(event, events.LogUnreadable):
            self.refusal = event.reason
            return [] if event.what.remind is None else [events.GiveUp(event.reason)]
        if isinstance(event, Failed):
            if event.refused and not self._tasks[event.task].opened:
                self.refusal = event.message
                return []
            return [events.GiveUp(event.failure)]
        task = self._tasks[event.task]
        if isinstance(event, Ready):
            # Of a task that has died also what it cut without being able to say so.
            read = events.ReadLog(
                event.task, task.head.position, event.written, task.committed if task.opened else None
            )
            if not task.opened:
                task.opened, task.tuples_end = True, task.head.position
            return [read]
        if isinstance(event, events.LogRead):
            for end, tuples in event.cuts:
                task.add_cut(end, tuples)
            task.head, task.ready = event.written, True
        elif isinstance(event, Idle):
            task.answered, task.idle, task.quiet = True, True, not event.active
        else:
            task.exhausted, task.pending, task.waiting_again = event.stats.exhausted, event.stats.pending, event.waiting
            task.reported = True
            if event.cut:
                task.add_cut(event.written, event.tuples)
                if event.tuples:
                    task.answered = True
                    task.idle = task.quiet = False
        return []

    def _gone(self, event: events.HostGone) -> list[events.Instruction]:
        if self.stopped:
            return []
        tasks = [self._tasks[number] for number in event.tasks]
        for task in tasks:
            task.ready = task.idle = task.quiet = task.exhausted = task.reported = False
        if not all(task.opened for task in tasks):
            return [events.GiveUpHost(0)]
        policy = self._restarts[event.tasks]
        pause = policy.next_pause(event.ran_secs)
        return [events.GiveUpHost(policy.restarts)] if pause is None else [events.StartHost(pause)]
