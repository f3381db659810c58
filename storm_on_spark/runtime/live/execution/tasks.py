"""The live tasks of a partition: they execute tuples as soon as spouts have written them to the log.

A *round* executes what has been written since the last one, by the code that executes a micro-batch. It doesn't save
the state of bolts, which takes longer than most rounds. A *barrier* does, and what changed since the last one is the
cut that a worker writes to Spark's state store in place of executing the micro-batch.

When a bolt with state raises, it can't be restored to the previous round. All tasks return to the last barrier,
execute the same rounds from the log, save, and execute the round with the error as a micro-batch would. Where that
doesn't help, the tasks are given up, and a worker does the same. For some time after such an error each round is saved
before the next one, if the state is small: the next error costs its own round then.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count, groupby
from typing import Final, TypeVar

from storm_on_spark.api.errors import StormError
from storm_on_spark.runtime.batches.input import due_clocks, logged_chunks
from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.runtime.bolts.bolt_task import UnsavedError
from storm_on_spark.runtime.bolts.operator import through_stages
from storm_on_spark.runtime.bolts.stage import BatchInfo, Handed, bytes_of
from storm_on_spark.runtime.bolts.worker import Worker
from storm_on_spark.runtime.codec import chunk
from storm_on_spark.runtime.codec.chunk import Chunk, Header, Kind
from storm_on_spark.runtime.live.execution.gathered import Gathered
from storm_on_spark.runtime.live.execution.rounds import Round, is_before
from storm_on_spark.runtime.live.execution.small_round import Done
from storm_on_spark.runtime.live.messages import Adopt, Cut, Key
from storm_on_spark.runtime.live.processes.live_processes import GivenUpError, LiveProcesses, Member
from storm_on_spark.runtime.live.processes.spreading import Spreading
from storm_on_spark.runtime.reports.report import Failure
from storm_on_spark.runtime.run.settings import TrackingSettings
from storm_on_spark.runtime.spouts.log import Mark, Steps
from storm_on_spark.runtime.spouts.messages import Acked, Executed, Settle, Told, Written
from storm_on_spark.runtime.storage import Folder, inside
from storm_on_spark.runtime.tracking.acker import Outcome
from storm_on_spark.runtime.tracking.ids import spout_task_of_root
from storm_on_spark.runtime.tracking.runs import Runs

log = logging.getLogger(__name__)

_T = TypeVar("_T")

_CAREFUL_MS: Final = 10_000
"""For which each round is saved after an error of a bolt."""
EARLY = -1
"""In place of a micro-batch's number, for messages whose spouts are told before the first micro-batch."""


@dataclass
class _Uncommitted:
    """Cuts that Spark has not committed, as one."""

    end: Offset
    base: bytes
    """Token of the state before."""
    token: bytes
    changes: dict[Key, bytes | None] = field(default_factory=dict)
    gathered: Gathered = field(default_factory=Gathered)


class LiveTasks:
    """All tasks of a plan of one operator.

    Args:
        worker: this process's instances for this run, which no other code executes.
        adopt: the state and offset to continue from.
        note: called with each round before its outcomes are sent.
        members: other processes that have a share of the tasks.
        spreading: says at a barrier which tasks move between the processes.

    Raises:
        GivenUpError: the plan has more than one operator, or a member is gone.
    """

    def __init__(
        self,
        worker: Worker,
        adopt: Adopt,
        note: Callable[[Round], None] | None = None,
        members: Sequence[Member] = (),
        spreading: Spreading | None = None,
    ) -> None:
        plan = worker.spec.plan
        if len(plan.operators) != 1 or plan.partitions != 1:
            raise GivenUpError("a topology of several partitions can't be live")
        self.worker = worker
        self._operator = plan.operators[0]
        run = adopt.start_id, adopt.spec
        self._processes = LiveProcesses(worker, run, adopt.values, members, spreading)
        self._token = adopt.token
        #: The state that is committed, until the one with which these tasks began is.
        self._before = adopt.before
        #: The executed offset.
        self._offset = offset = adopt.offset
        self._marks = {task: offset.mark(task) for task in offset.logs}
        #: Chunks that have been written and not executed.
        self._waiting: list[Chunk] = []
        self._heard: dict[int, Mark] = {}
        #: The logs of spouts, while rounds are executed again.
        self._steps: dict[int, Steps] = {}
        self._gathered = Gathered(adopt.carried)
        self._carried = [_as_present(body) for body in adopt.carried]
        #: The offset of the last barrier, and the chunks carried over it.
        self._barrier = offset, self._carried
        #: The offset that Spark has committed.
        self._committed = offset
        self._uncommitted: _Uncommitted | None = None
        self._numbers = _numbers()
        wiring = worker.wiring
        #: In milliseconds.
        self._periods = set(wiring.periods)
        if plan.acker_tasks:
            self._periods.add(wiring.settings(TrackingSettings).timeout_ms)
        #: The topology's time in ms up to which each round is saved: until some time after the last error of a bolt.
        self._careful_until = 0
        #: Since the last barrier.
        self._done: list[Round] = []
        self._note = note
        assert worker.folder is not None, "a run has a checkpoint"
        self._folder = worker.folder

    @property
    def waiting(self) -> bool:
        """Whether there are unexecuted tuples."""
        return bool(self._waiting or self._carried)

    @property
    def behind(self) -> bool:
        """Whether the logs continue past the last executed position, perhaps without tuples.

        A record without any, which saves what a spout has heard, is not a reason for a round; a barrier covers it. The
        coordinator may take it for the end of tuples that were executed long ago, and would ask again and again.
        """
        return self.waiting or bool(self._heard)

    def take(self, written: Written) -> None:
        """Takes a spout's new chunks for the next round. Earlier chunks that are missing are read from the log.

        Raises:
            GivenUpError: the log differs from the one that was executed.
        """
        task = written.task
        known = self._heard.get(task) or self._marks.get(task) or Mark()
        if written.end.position <= known.position and written.end.epoch <= known.epoch:
            return
        same = written.end.epoch == known.epoch
        if same and written.entries is not None and written.begin == known.position:
            entries: Iterator[tuple[int, bytes]] = iter(written.entries)
        else:
            steps = self._steps.get(task) or Steps(self._log_of(task), known, written.end)
            if not steps.reach(written.end):
                raise GivenUpError(f"the log of spout task {task} continues from another record than {known}")
            entries = steps.up_to(written.end.position)
        try:
            self._waiting += logged_chunks(self.worker.wiring, entries, 0)
        except StormError as error:
            raise GivenUpError(str(error)) from error
        self._heard[task] = written.end

    def _log_of(self, task: int) -> Folder:
        return inside(self._folder, "spouts", str(task))

    @contextlib.contextmanager
    def _reading_once(self, end: Offset) -> Iterator[None]:
        """Within it, logs are read in steps up to an offset."""
        marks = {**self._marks, **self._heard}
        ways = {task: (marks.get(task, Mark()), end.mark(task)) for task in end.logs}
        self._steps = {task: Steps(self._log_of(task), *way) for task, way in ways.items() if way[0] != way[1]}
        try:
            yield
        finally:
            for steps in self._steps.values():
                steps.close()
            self._steps = {}

    def take_up_to(self, marks: Mapping[int, Mark]) -> None:
        """Reads the logs up to the given ends, by spout task, for records that were not announced.

        Raises:
            GivenUpError: a log is another than the one that was executed.
        """
        for task, mark in marks.items():
            self.take(Written(task, -1, mark, None))

    def due_in(self, clock_ms: int) -> int | None:
        """Returns the ms of topology time until a tick, a turn or a timeout is due, or None."""
        last = self._offset.clock
        due = min(((last // period + 1) * period for period in self._periods), default=None)
        return None if due is None else max(0, due - clock_ms)

    def execute(self, clock_ms: int) -> Told:
        """Executes a round; returns the outcomes for spouts.

        Args:
            clock_ms: the topology's time.

        Raises:
            GivenUpError: a bolt raised.
        """
        number, now = next(self._numbers), max(clock_ms, self._offset.clock)
        marks = {**self._marks, **self._heard}
        logs = {task: mark.position for task, mark in marks.items()}
        epochs = {task: mark.epoch for task, mark in marks.items()}
        end = Offset(logs, now, self._offset.carried, epochs)
        careful = now < self._careful_until and self._processes.is_small
        done = Round(number, end, careful, self._processes.size, self._processes.moved)
        try:
            if careful:
                self._save_here()
            told = self._round(done)
        except UnsavedError as error:
            log.info("tasks go back to the last barrier: a bolt raised %.500r", error.__cause__)
            self._go_back()
            done = done._replace(saved=True)
            told = self._execute_again([*self._done, done], end)
            self._careful_until = now + _CAREFUL_MS
        self._done.append(done)
        if self._note is not None:
            self._note(done)
        return told

    def catch_up(self, rounds: Sequence[Round], end: Offset) -> Cut:
        """Executes a micro-batch: first the logged rounds, then the remaining tuples up to its end.

        Args:
            rounds: that followed the state; perhaps also earlier and later ones.
            end: of the micro-batch.

        Raises:
            GivenUpError: the tasks can't continue.
        """
        known = [done for done in rounds if is_before(done.end, end) and not is_before(done.end, self._offset)]
        number = int.from_bytes(self._token[:8], "big")  # the same for every attempt
        again = [*known, Round(number, end, saved=True)]
        if self.worker.watch is None:
            self._execute_again(again, end)
        else:
            with self.worker.watch.repeats(again) as counted:
                self._execute_again(counted, end)
        changes = self._save()
        return Cut(os.urandom(16), changes, self._gathered.rows())

    @property
    def carried(self) -> tuple[bytes, ...]:
        """The chunks of back edges that wait to be executed."""
        return tuple(self._gathered.carried)

    def _execute_again(self, rounds: Iterable[Round], end: Offset) -> Told:
        """Replays rounds; returns the outcomes of the last one, which ends at `end`."""
        told: Told = []
        try:
            with self._reading_once(end):
                for done in rounds:
                    self.take_up_to({task: done.end.mark(task) for task in done.end.logs})
                    if done.saved:
                        self._save_here()
                    told = self._round(done)
        except UnsavedError as error:
            raise GivenUpError(f"a bolt raised {error.__cause__!r:.500}") from error
        return told

    def _round(self, done: Round) -> Told:
        wiring, before, now = self.worker.wiring, self._offset, done.end.clock
        chunks = [*self._carried, *self._waiting, *map(chunk.with_header, due_clocks(wiring, before.clock, now, 0))]
        self._carried, self._waiting = [], []
        self._gathered.carried = []
        told: Told = []
        small = self._processes.small
        try:
            if done.processes == 1 and not done.saved and small.suits(chunks):
                self._take_in(small.execute(chunks, done.number), told)
            else:
                info = BatchInfo(done.number, 0, done.saved, together=done.processes == 1)
                homes = done.processes, done.moved
                executions = partial(self._processes.executions, info=info, homes=homes)
                for passed in through_stages(self.worker, self._operator, chunks, executions):
                    self._sort_out(*passed, told)
        except StormError as error:
            raise GivenUpError(str(error)) from error
        heard, self._heard = self._heard, {}
        self._marks.update(heard)
        self._offset = done.end
        return [*told, *(Executed(task, mark.position) for task, mark in heard.items())]

    def _go_back(self) -> None:
        """Restores state and tasks as of the last barrier."""
        self.is_cut(wait=True)
        self._processes.go_back()
        self._offset, self._carried = self._barrier
        self._marks = {task: self._offset.mark(task) for task in self._offset.logs}
        self._waiting, self._heard = [], {}
        self._gathered = Gathered(self._gathered.at_barrier)

    def _take_in(self, done: Done, told: Told) -> None:
        """Adds the results of a small round."""
        self._gathered.add_reports(done.reports)
        for passed in done.passed:
            self._sort_out(*passed, told)
        self._gathered.add_acked(done.acked)
        for task, roots in groupby(done.acked, spout_task_of_root):
            told.append(Acked(task, tuple(roots)))

    def _sort_out(self, header: Header, body: bytes | Handed, told: Told) -> None:
        if header.kind == Kind.OUTCOME:
            outcome = body if isinstance(body, Outcome) else Outcome(*chunk.read_outcome(header, bytes_of(body)))
            self._gathered.add_outcome(outcome)
            told += _settlements(outcome)
        elif header.kind == Kind.REPORT:
            reports = body if isinstance(body, list) else chunk.read_report(bytes_of(body))
            for report in reports:
                if isinstance(report, Failure):
                    if report.fatal:
                        raise GivenUpError(report.message)
                    if self._offset.clock < self._careful_until:
                        self._careful_until = self._offset.clock + _CAREFUL_MS
            self._gathered.add_reports(reports)
        else:
            body = bytes_of(body)
            self._gathered.carried.append(body)
            self._carried.append(_as_present(body))

    def barrier(self, start: Offset) -> Offset | None:
        """Saves the state of all tasks; returns the executed offset.

        Args:
            start: the offset that Spark has committed.

        Returns:
            None if the tasks did not start from there.

        Raises:
            GivenUpError: a state can't be saved.
        """
        held = self._uncommitted
        if held is not None and _same_point(held.end, start):
            self._committed, self._uncommitted, held = start, None, None
            self._before = b""
        if not _same_point(self._committed, start):
            return None
        if held is None and _same_point(self._offset, start):
            return start
        self.is_cut(wait=True)
        changes = self._save(later=True)
        if held is None:
            base, self._token = self._token, os.urandom(16)
            held = self._uncommitted = _Uncommitted(self._offset, base, self._token)
        held.end = self._offset
        held.changes.update(changes)
        held.gathered.add(self._gathered)
        busy, secs = self._gathered.busy(), (self._offset.clock - self._barrier[0].clock) / 1000
        self._gathered = Gathered(held.gathered.carried)
        self._barrier = self._offset, self._carried
        self._done = []
        homes = self._processes.better_homes(busy, secs)
        if homes is not None:
            self.is_cut(wait=True)
            self._processes.move(homes)
        return self._offset

    def is_cut(self, *, wait: bool = False) -> bool:
        """Returns whether all of the last barrier's state is there; large attributes come some time after it.

        Args:
            wait: whether to wait for it.

        Raises:
            GivenUpError: a state can't be saved.
        """
        late = self._saving(lambda: self._processes.late_changes(wait=wait))
        if late and self._uncommitted is not None:
            self._uncommitted.changes.update(late)
        return late is not None

    @property
    def tokens(self) -> tuple[bytes, ...]:
        """The names of the states that may be in the state store; the present one is the last."""
        held = self._uncommitted
        before = self._before if held is None else held.base
        return (before, self._token) if before else (self._token,)

    def cut(self, token: bytes, start: Offset, end: Offset) -> Cut | None:
        """Returns the results of a micro-batch between two offsets; waits until it `is_cut`.

        Args:
            token: of the state that is in the state store.
            start: where the micro-batch begins.
            end: where it ends.

        Returns:
            None if the tasks continued from another state, or have no cut of that micro-batch.

        Raises:
            GivenUpError: a state can't be saved.
        """
        self.is_cut(wait=True)
        held = self._uncommitted
        if (
            held is None
            or held.base != token
            or not _same_point(self._committed, start)
            or not _same_point(held.end, end)
        ):
            return None
        return Cut(held.token, held.changes, held.gathered.rows())

    def close(self) -> None:
        """Ends the copies that are still taking snapshots."""
        self._processes.close()

    def _save_here(self) -> None:
        """Saves all tasks now, so that a bolt that raises is restored to this point."""
        self._gathered.add_reports(self._saving(lambda: self._processes.save(next(self._numbers))))

    def _save(self, *, later: bool = False) -> dict[Key, bytes | None]:
        """Saves all tasks; returns the changes since the last call."""
        reports, changes = self._saving(lambda: self._processes.save_and_take(next(self._numbers), later=later))
        self._gathered.add_reports(reports)
        return changes

    def _saving(self, save: Callable[[], _T]) -> _T:
        try:
            return save()
        except StormError as error:
            raise GivenUpError(str(error)) from error


def _as_present(body: bytes) -> Chunk:
    """Returns a carried chunk of a back edge as input of the current round."""
    return chunk.with_header(chunk.without_flag(body, chunk.CARRIED))


def _same_point(one: Offset, other: Offset) -> bool:
    """Whether two offsets agree in log positions and time. The coordinator adds the other fields later."""
    return (one.logs, one.epochs, one.clock) == (other.logs, other.epochs, other.clock)


def _settlements(outcome: Outcome) -> Iterator[Settle]:
    """Yields the outcomes for each spout task."""
    for task, ended in Runs.of(*outcome).by_task():
        yield Settle(task, EARLY, ended)


def _numbers() -> Iterator[int]:
    """Yields round numbers that no micro-batch or earlier round has had. Edge ids are derived from them."""
    return count(int.from_bytes(os.urandom(7), "big") << 8)
