"""One spout task on its executor's thread: carries out the instructions of the pacing rules."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Final

from storm_on_spark.metrics.latency import Latencies
from storm_on_spark.runtime.reports.report import SpoutStats
from storm_on_spark.runtime.run.settings import SpoutSettings
from storm_on_spark.runtime.spouts import messages, pacing
from storm_on_spark.runtime.spouts.live_line import LineChanged, LiveLine
from storm_on_spark.runtime.spouts.spout_task import SpoutTask

_METRICS_SECS: Final = 1.0
"""How often metrics of a spout that emits nothing are reported."""

_TOLD_SECS: Final = 0.05
"""How often, in real time, the coordinator is told of cuts, which it then does not need to plan micro-batches."""

_TURNS: Final = (pacing.Turn(active=False), pacing.Turn(active=True))


class _TaskLoad:
    """What a task holds, for the rules; see `Load`."""

    def __init__(self, task: SpoutTask) -> None:
        self._task = task

    @property
    def fresh(self) -> int:
        return self._task.fresh

    @property
    def dirty(self) -> bool:
        return self._task.dirty

    @property
    def pending(self) -> int:
        return len(self._task.pending)

    @property
    def log_end(self) -> int:
        return self._task.log.end


class TaskLoop:
    """One task on its executor's thread, and its reports to the coordinator.

    Args:
        task: the open task, which also provides the clock.
        settings: its settings.
        send: sends a message to the coordinator.
        consumed: position in the log up to which batches are planned.
        pace: times and sizes of the rules.
    """

    def __init__(
        self,
        task: SpoutTask,
        settings: SpoutSettings,
        send: Callable[[messages.Message], None],
        consumed: int,
        pace: pacing.Pace = pacing.Pace(),  # noqa: B008 # it is immutable
    ) -> None:
        self.task = task
        self._send = send
        self._rules = pacing.PacingRules(
            settings.max_pending,
            settings.log_max_bytes,
            min(messages.FIRST_TUPLES, settings.batch_max_tuples),
            task.most_cut_tuples,
            ((cut.end, cut.tuples) for cut in task.log.cuts(consumed)),
            consumed=consumed,
            now=task.now(),
            pace=pace,
        )
        self._load = _TaskLoad(task)
        self._going_on = False
        #: To the live process, while there is one.
        self._line: LiveLine | None = None
        #: Tuples of cuts that were not reported; None if all were.
        self._untold: int | None = None
        self._told_at = float("-inf")
        #: None until there was a report, which tells how many messages are pending after a restart.
        self._reported: SpoutStats | None = None
        self._saved_batch = task.settled_batch
        #: Seconds in which it emitted, and in which it wrote its log, since the last report.
        self._emitting_secs = self._writing_secs = 0.0
        #: When registered metrics were reported last.
        self._told_metrics_at = task.now()

    def blocked(self) -> bool:
        """Returns whether back pressure or `topology.max.spout.pending` forbids a call of `next_tuple`."""
        return self._rules.blocked(self._load)

    def held(self, active: bool) -> bool:
        """Returns whether the task must wait for a message."""
        return self._rules.held(self._load, active)

    def is_idle(self) -> bool:
        """Returns whether there is nothing to cut and nothing to tell, and the spout may be called."""
        task = self.task
        told = self._untold is None and not task.errors and task.stats == self._reported
        return told and not task.dirty and not self._rules.asked and not self.blocked()

    def call_once(self) -> bool:
        """Calls `next_tuple` of an idle task, and nothing else; returns whether it emitted.

        A spout without tuples is called 10 times a second for as long as it has none. By the next call the code is no
        longer in the processor's caches, so that a whole turn takes three times as long.
        """
        task = self.task
        task.credentials.give()
        began = task.now()
        emitted = task.next_tuple(began)
        self._emitting_secs += task.now() - began
        return emitted

    def has_to_tell(self) -> bool:
        """Returns whether a call of `next_tuple` without a tuple has left something to tell."""
        return bool(self.task.errors) or self.task.exhausted() != self.task.stats.exhausted

    def burst(self, active: bool) -> bool:
        """Calls `next_tuple` a few times; returns whether anything was emitted."""
        self.task.credentials.give()
        self._going_on = emitted = False
        now = self.task.now()
        for instruction in self._rules.step(_TURNS[active], now):
            assert isinstance(instruction, pacing.Burst)
            emitted = self._burst(instruction, now)
            self._emitting_secs += self.task.now() - now
        return emitted

    def _burst(self, burst: pacing.Burst, now: float) -> bool:
        task, emitted = self.task, False
        reach: float = task.fresh
        until = now + burst.secs
        for _ in range(burst.calls):
            if task.fresh >= reach:
                reach = self._rules.reach(self._load)
                if task.fresh >= reach:
                    return emitted
            if not task.next_tuple(now):
                return emitted
            emitted = True
            now = task.now()
            if task.fresh >= burst.fresh or now > until:
                break
        self._going_on = True
        return emitted

    def handle(self, message: messages.Message | LineChanged) -> None:
        """Handles a message to the task."""
        self.task.credentials.give()
        if isinstance(message, messages.Settle):
            self.task.settle(message.batch, message.ended.roots(), message.ended.each_code(), message.left)
        elif isinstance(message, messages.Acked):
            self.task.acked(message.roots)
        elif isinstance(message, messages.Consumed):
            self._rules.step(pacing.Committed(message.position), self.task.now())
            self.task.trim(message.position)
        elif isinstance(message, messages.Want):
            self._rules.step(pacing.Wanted(message.share), self.task.now())
        elif isinstance(message, messages.Executed):
            self._rules.step(pacing.Executed(message.position), self.task.now())
        elif isinstance(message, LineChanged):
            self._line_changed(message)
        elif isinstance(message, messages.SetActive):
            (self.task.activate if message.active else self.task.deactivate)()

    def _line_changed(self, message: LineChanged) -> None:
        if message.on:
            self._line = message.line
            # It reads from the log what it has not executed.
            log = self.task.log
            self._line.send(messages.Written(self.task.task, log.end, log.written, None))
        elif message.line is self._line:
            self._line = None
            if self._untold is not None:
                # The next micro-batch has to reach as far as the live process has executed.
                self._progress(cut=True, tuples=self._untold)
        self._rules.step(pacing.WentLive(self._line is not None), self.task.now())

    def cut_if_due(self, active: bool) -> None:
        """Cuts and reports the cut if the coordinator waits for one or enough tuples have been emitted."""
        task, now = self.task, self.task.now()
        for instruction in self._rules.step(pacing.TurnEnded(self._load, active, self._going_on), now):
            if isinstance(instruction, pacing.MakeCut):
                self._cut(now)
            elif isinstance(instruction, pacing.SayIdle):
                self._send(messages.Idle(task.task, active))
            elif self._untold is not None:
                self._progress(cut=True, tuples=self._untold)
            else:
                task.stats.pending = task.pending_count()
                task.stats.exhausted = task.exhausted()
                if task.stats != self._reported or task.errors or self._metrics_due(now):
                    self._progress(cut=False, tuples=0)

    def _cut(self, began: float) -> None:
        task, tuples = self.task, self.task.fresh
        cut = task.cut()
        self._saved_batch = task.settled_batch
        now = task.now()
        self._writing_secs += now - began
        self._rules.step(pacing.WasCut(cut.end, tuples, task.cut_bytes, now - began), now)
        if tuples and cut.position == task.log.base:
            # The segment before could not go while it was the last one.
            task.trim(self._rules.committed)
        if self._line is not None:
            self._line.send(messages.Written(task.task, cut.position, cut.mark, task.cut_entries))
        untold = tuples + (self._untold or 0)
        if self._line is not None and now - self._told_at < _TOLD_SECS:
            self._untold = untold
        else:
            self._progress(cut=True, tuples=untold)

    def close(self) -> None:
        """Writes and reports a last cut, then closes the spout."""
        if self.task.dirty:
            self.task.cut()
            # Otherwise outcomes that were heard last would be kept for a successor, which knows them.
            self._saved_batch = self.task.settled_batch
            self._progress(cut=False, tuples=0)
        self.task.close()

    def _progress(self, *, cut: bool, tuples: int) -> None:
        task = self.task
        self._told_at, self._untold = task.now(), None
        task.stats.pending = task.pending_count()
        task.stats.exhausted = task.exhausted()
        self._reported = reported = dataclasses.replace(task.stats, streams=dict(task.stats.streams))
        latencies, task.latencies = task.latencies, Latencies()
        self._told_metrics_at = task.now()
        registered = task.readings()
        errors, task.errors[:] = tuple(task.errors), []
        spent, self._emitting_secs, self._writing_secs = (self._emitting_secs, self._writing_secs), 0.0, 0.0
        self._send(
            messages.Progress(
                task.task,
                task.log.written,
                cut,
                tuples,
                self._saved_batch,
                reported,
                latencies,
                errors,
                registered,
                task.settled_batch,
                task.again_count(),
                task.waiting_count(),
                *spent,
            )
        )

    def _metrics_due(self, now: float) -> bool:
        """Whether registered metrics are due although there is nothing else to report."""
        return bool(self.task.metrics) and now - self._told_metrics_at >= _METRICS_SECS
