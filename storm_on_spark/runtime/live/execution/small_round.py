"""A round of a few tuples, in plain Python.

A round mostly has one to three tuples, and what a micro-batch does for its thousands takes far longer than what the
bolts do then: chunks with headers and receipts, stages that hand chunks on, arrays of one element. Here a tuple is put
into its task's list and executed, and an acker with nothing pending acks the roots that have no open edge.

The rules are those of the large round. Bolts execute, emit, ack and raise by the same code (`BoltTask.execute`), in the
same order, with the same edge ids; and an acker that has anything to keep or to fail is executed as ever.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count

from storm_on_spark.plan.model import EdgeKind, Operator, PlannedComponent, Stage, StageKind
from storm_on_spark.runtime.bolts.inputs import Input
from storm_on_spark.runtime.bolts.saved import StateAccess
from storm_on_spark.runtime.bolts.stage import (
    BatchInfo,
    Passed,
    acker_metrics,
    add_due,
    decoded,
    execute_acker,
    execute_task,
    failures_of,
    handed,
    metrics_of,
    news_of,
)
from storm_on_spark.runtime.bolts.worker import Worker
from storm_on_spark.runtime.codec import chunk
from storm_on_spark.runtime.codec.chunk import Chunk, Kind
from storm_on_spark.runtime.emit.encode import encode_sealed
from storm_on_spark.runtime.emit.output import Sealed
from storm_on_spark.runtime.reports.report import Failure, TaskMetrics
from storm_on_spark.runtime.tracking.acker import INIT, Contribution
from storm_on_spark.runtime.tracking.fold import Fold, fold, split_by_acker
from storm_on_spark.runtime.tracking.ids import EdgeIds
from storm_on_spark.runtime.tracking.lineage import FEW

_TUPLES = (Kind.TUPLES, Kind.ARROW)


@dataclass
class Done:
    """The results of a round."""

    acked: list[int] = field(default_factory=list)
    """Roots whose trees began and ended in it, ascending."""
    passed: list[Passed] = field(default_factory=list)
    """What else leaves the operator: outcomes of other trees, and tuples of back edges."""
    reports: list[TaskMetrics | Failure] = field(default_factory=list)


@dataclass(frozen=True)
class _Stage:
    """A stage of bolts."""

    index: int
    bolts: tuple[PlannedComponent, ...]
    each: bool
    """Whether each of its tasks is executed separately, because it has state."""


_Waiting = dict[int, list[tuple[int, int, Input]]]
"""By task: what waits for it, with what orders it: source and sequence."""


class SmallRounds:
    """Executes small rounds of all tasks of one process.

    Args:
        worker: this process's instances.
        operator: all stages.
        state_of: gives the state of a task.
    """

    def __init__(self, worker: Worker, operator: Operator, state_of: Callable[[int], StateAccess]) -> None:
        self.worker = worker
        self.state_of = state_of
        self.ackers = worker.spec.plan.acker_tasks
        self.stages = [self._stage(stage) for stage in operator.stages if stage.kind is not StageKind.ACKER]

    def _stage(self, stage: Stage) -> _Stage:
        components = [self.worker.spec.plan.components[each] for each in stage.components]
        bolts = tuple(each for each in components if not each.kind.is_spout)
        return _Stage(stage.index, bolts, stage.kind not in (StageKind.SOURCE, StageKind.STATELESS))

    def suits(self, chunks: Sequence[Chunk]) -> bool:
        """Returns whether these chunks make a small round."""
        tuples = 0
        for header, _ in chunks:
            if header.kind in _TUPLES:
                tuples += header.size
            elif header.kind == Kind.ROWS:
                return False
        return tuples <= FEW

    def execute(self, chunks: Sequence[Chunk], number: int) -> Done:
        """Executes a round.

        Args:
            chunks: chunks for which `suits` is true.
            number: of the round.

        Raises:
            UnsavedError: a bolt raised, and its state before that was not saved.
            StormError: the topology can't continue.
        """
        return _SmallRound(self, number).execute(chunks)


class _SmallRound:
    def __init__(self, rounds: SmallRounds, number: int) -> None:
        self._rounds = rounds
        self._wiring = rounds.worker.wiring
        self._info = BatchInfo(number, 0, saves=False, together=True)
        self._waiting: dict[int | None, _Waiting] = {stage.index: {} for stage in rounds.stages}
        #: What is due in tasks, of `chunk.TICK`, `chunk.TURN` and `chunk.TIMER`; and the time, in those with timers.
        self._due: dict[int, int] = {}
        self._clocks: dict[int, int] = {}
        self._for_ackers: dict[int, list[Chunk]] = {task: [] for task in rounds.ackers}
        #: Of each execution of a stage.
        self._folds: list[Fold] = []
        self._receipts = 0
        self._done = Done()

    def execute(self, chunks: Sequence[Chunk]) -> Done:
        for header, body in chunks:
            if header.target in self._for_ackers:
                self._for_ackers[header.target].append((header, body))
            elif self._wiring.stage_of_task(header.target) not in self._waiting:
                self._done.passed.append((header, body))  # a carried tuple's task that there is no more
            elif header.kind == Kind.CLOCK:
                self._due[header.target], self._clocks[header.target] = header.size, header.sequence
                self._waiting_of(header.target).setdefault(header.target, [])
            else:
                self._wait(header.target, header.source, header.sequence, self._decoded(header, body))
        for stage in self._rounds.stages:
            waiting = self._waiting.pop(stage.index)
            if not stage.each:
                if waiting:
                    self._execute_stage(stage, waiting, 0)
                continue
            for task in sorted(waiting):
                self._execute_stage(stage, {task: waiting[task]}, task)
        self._ack()
        return self._done

    def _decoded(self, header: chunk.Header, body: bytes) -> Input:
        found, receipt = decoded(self._wiring, header, body)
        self._receipts ^= receipt
        return found

    def _waiting_of(self, task: int) -> _Waiting:
        return self._waiting[self._wiring.stage_of_task(task)]

    def _wait(self, target: int, source: int, sequence: int, given: Input) -> None:
        self._waiting_of(target).setdefault(target, []).append((source, sequence, given))

    def _execute_stage(self, stage: _Stage, waiting: _Waiting, place: int) -> None:
        """Executes the input of a stage's tasks; `place` is that of `_StageRun`."""
        inputs: dict[int, list[Input]] = {}
        for task, given in waiting.items():
            if len(given) > 1:
                given.sort(key=lambda item: item[:2])
            inputs[task] = [item[2] for item in given]
        sequence, folds = count(place << 40), list[Fold]()
        worker, number = self._rounds.worker, self._info.batch
        state = self._rounds.state_of(place) if stage.each else None
        for component in stage.bolts:
            for task in component.tasks:
                own = inputs.pop(task, None)
                if own is None:
                    continue
                # Also of a task that is fused with others and executed with each of them: once, separately.
                due, clock = (self._due.get(task, 0), self._clocks.get(task)) if task in waiting else (0, None)
                if due:
                    add_due(self._wiring, component, own, due, clock)
                if not own and not due & chunk.TURN:
                    continue
                ids = EdgeIds(worker.spec.storm_id, number, place, task)
                execution = execute_task(worker, component, task, own, ids, self._info, state, clock)
                for sealed in execution.sealed:
                    if sealed.box.kind is EdgeKind.LOCAL:
                        inputs.setdefault(sealed.box.target, []).append(handed(self._wiring, task, sealed))
                    else:
                        self._send(component, task, next(sequence), sealed)
                if execution.written:
                    written = chunk.encode_written(execution.written, source=task, sequence=next(sequence))
                    self._done.passed.append(chunk.with_header(written))
                folds += execution.folds
                self._done.reports.append(metrics_of(component.id, task, execution))
                if execution.errors:
                    self._done.reports += failures_of(component.id, task, execution.errors)

        if folds:
            self._folds.append(news_of(folds))

    def _send(self, component: PlannedComponent, task: int, sequence: int, sealed: Sealed) -> None:
        target = sealed.box.target
        if sealed.plain and sealed.box.kind is not EdgeKind.CARRIED:
            self._wait(target, task, sequence, handed(self._wiring, task, sealed))
            return
        # What can be changed in place goes to other tasks as a copy, as between processes.
        (header, body), receipt = encode_sealed(sealed, component.id, task, sequence)
        self._receipts ^= receipt
        if chunk.is_for_sink(header):
            self._done.passed.append((header, body))
        else:
            self._wait(target, task, sequence, self._decoded(header, body))

    def _ack(self) -> None:
        """Executes the ackers. Nearly always, all trees are complete."""
        for task, chunks in self._for_ackers.items():
            started = time.perf_counter()
            state = self._rounds.state_of(task)
            if not self._folds and not state.get("pending"):
                acked = _ended(chunks, self._receipts)
                if acked is not None:
                    self._done.acked += acked
                    if acked:
                        seconds = time.perf_counter() - started
                        self._done.reports.append(acker_metrics(task, len(acked), len(acked), seconds))
                    continue
            passed: list[Passed] = [*chunks]
            reports = [*((folded, 0) for folded in self._folds), (fold([]), self._receipts)]
            for folded, receipts in reports:
                part = dict(split_by_acker(self._rounds.ackers, folded))[task]
                header = chunk.header_of(Kind.ACKS, task, -1, 0, len(part.roots))
                passed.append((header, Contribution(*part, 0, receipts)))
            self._done.passed += execute_acker(self._wiring, task, passed, state, self._info)
        self._done.acked.sort()


def _ended(chunks: Sequence[Chunk], receipts: int) -> list[int] | None:
    """Returns the roots of an acker if all of its trees are complete, otherwise None."""
    found: list[int] = []
    for header, body in chunks:
        if header.kind == Kind.CLOCK:
            continue
        acks = chunk.read_few_acks(header, body, INIT)
        if acks is None:
            return None
        found += acks[0]
        receipts ^= acks[1]
    return None if receipts else found
