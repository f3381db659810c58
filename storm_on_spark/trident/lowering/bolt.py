"""The bolt that executes operations on batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from storm_on_spark.api.errors import FailedException, ReportedFailedException
from storm_on_spark.api.state import BaseStatefulBolt, KeyValueState
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.streams.lowering.wiring import Program, Running
from storm_on_spark.trident.batches import TransactionAttempt
from storm_on_spark.trident.lowering.tracking import Batches, Progress
from storm_on_spark.trident.operations.emitting import EmitBatch
from storm_on_spark.trident.operations.persisting import Persist, UsesState
from storm_on_spark.trident.operations.task import Task
from storm_on_spark.trident.operations.windows import Window
from storm_on_spark.trident.spouts.coordinator import BATCH, COMMIT, SUCCESS
from storm_on_spark.trident.spouts.interfaces import CommitterEmitter
from storm_on_spark.trident.spouts.partitioned import KeepsPartitions

if TYPE_CHECKING:
    from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
    from storm_on_spark.api.task.collector import OutputCollector
    from storm_on_spark.api.task.context import TopologyContext
    from storm_on_spark.api.tuple import Tuple

ID: Final = "$batch"
"""The first field of all tuples of a batch: its attempt."""


@dataclass(frozen=True)
class Part:
    """What a bolt does for the batches of one coordinator."""

    program: Program
    coordinator: str
    """The component that begins the batches."""
    before: tuple[str, ...]
    """The bolts that report to this one."""
    behind: tuple[str, ...]
    """The bolts that this one reports to."""
    early: tuple[str, ...]
    """The bolts whose reports are acked at once: a commit waits for them, and others report in the commit only."""
    reports: str
    """The stream of such reports, of all bolts of the coordinator."""
    emits: bool
    """Whether operations emit the batch, so that its begin is a report, too."""
    commits: bool
    """Whether operations wait for the commit."""


class _Kept:
    """What is restored after a crash: batches under way, and what user objects keep."""


class BatchBolt(BaseStatefulBolt):
    """Executes operations on batches: on each tuple, and at the end of a batch.

    Tuples of a batch are not anchored. Reports are: a task acks those that it got once it has reported itself, so
    that a batch is acked when the last task is done with it, and fails by itself if anything of it is lost.
    """

    stateless = False

    def __init__(self, program: Program, parts: Sequence[Part], title: str) -> None:
        self._program = program
        self._parts = tuple(parts)
        self.title = title
        self.state_layout = program.layout
        if any(isinstance(made.processor, Persist) and made.processor.writes_elsewhere for made in program.operations):
            self.waits_because = "writes batches to a state outside of the checkpoint"
        self.state_holder: Any = _Kept()

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Prepares the operations."""
        self._collector = collector
        self._context = context
        self._conf = conf
        self._program.prepare(conf, context)
        kept = self.state_holder = _Kept()
        self._inputs: dict[tuple[str, str], tuple[int, Any]] = {}
        self._targets: list[list[int]] = []
        for number, part in enumerate(self._parts):
            tasks = sum(len(context.component_tasks(name)) for name in part.before)
            setattr(kept, f"batches_{number}", Batches(tasks + part.emits, part.commits))
            self._targets.append([task for name in part.behind for task in context.component_tasks(name)])
            self._inputs.update({(name, part.reports): (number, self._report) for name in part.before})
            rows = ((entry.component, entry.stream) for entry in part.program.entries)
            self._inputs.update(dict.fromkeys(rows, (number, self._row)))
            streams = {BATCH: self._begin, COMMIT: self._commit, SUCCESS: self._success}
            self._inputs.update({(part.coordinator, name): (number, take) for name, take in streams.items()})
        #: What executes the operations for a batch, with the batch for which it was made.
        self._running: dict[tuple[int, int], tuple[Progress, Running]] = {}

    def get_component_configuration(self) -> Mapping[str, Any]:
        """Returns the configuration of the spouts whose emitters it has."""
        spouts = [operation.processor for operation in self._program.operations]
        return {name: value for emit in spouts if isinstance(emit, EmitBatch) for name, value in emit.conf.items()}

    def declare_timers(self, conf: Mapping[str, Any]) -> Mapping[str, int]:
        """Declares a timer for windows of time, so that the task is told the time."""
        windows = (operation.processor for operation in self._program.operations)
        slides = [window.slide for window in windows if isinstance(window, Window) and window.timed]
        return {"window": min(slides)} if slides else {}

    def init_state(self, state: KeyValueState) -> None:
        """Makes states and emitters."""
        context = self._context
        self._stores = self._program.stores(state)
        #: States that are not attributes that are saved: what they keep is in `state`, or in another system.
        self._states: dict[int, Any] = {}
        self._partitioned: dict[int, KeepsPartitions[Any]] = {}
        index, tasks = context.this_task_index, len(context.component_tasks(context.this_component_id))
        for operation in self._program.operations:
            processor = operation.processor
            if isinstance(processor, EmitBatch):
                emitter = processor.emitter(self._conf, context)
                if isinstance(emitter, KeepsPartitions):
                    self._partitioned[operation.id] = emitter
                    self._keep(operation.id, emitter.partitions)
                else:
                    self._keep(operation.id, emitter)
            elif isinstance(processor, UsesState) and processor.beside in (None, operation.id):
                made, stored = processor.make_state(self._conf, context, index, tasks, self._stores[operation.id])
                if stored:
                    self._states[operation.id] = made
                else:
                    self._keep(operation.id, made)
        self._task = Task(index, tasks, self._collector.report_error, self._kept, lambda: context.time_ms)

    def execute(self, tup: Tuple) -> None:
        """Executes the operations for a tuple, or for the end of a batch."""
        if tup.is_timer:
            self._collector.ack(tup)
            return
        number, take = self._inputs[tup.source_component, tup.source_stream]
        take(number, tup)

    def cleanup(self) -> None:
        """Closes emitters."""
        for operation in self._program.operations:
            if isinstance(operation.processor, EmitBatch):
                self._kept(operation.id).close()

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares a stream for each output that other bolts get, and one for the reports about each batch."""
        fields = {operation.id: operation.fields for operation in self._program.operations}
        for port, stream in self._program.outputs.items():
            declarer.declare_stream(stream, Fields([ID, *(fields[port.node] or ())]))
        for part in self._parts:
            if part.behind:
                declarer.declare_stream(part.reports, Fields("id", "oldest", "count"), direct=True)

    # --- what comes ---------------------------------------------------------------------------------------------------

    def _row(self, number: int, tup: Tuple) -> None:
        self._collector.ack(tup)  # It isn't anchored.
        attempt = tup[0]
        progress = self._batches(number).of(attempt)
        if progress is None or progress.failed:
            return
        progress.received += 1
        self._do(number, attempt, progress, partial(self._run(number, attempt, progress).take, tup))
        self._go_on(number, attempt, progress)

    def _report(self, number: int, tup: Tuple) -> None:
        attempt, oldest, count = tup
        progress = self._about(number, attempt, oldest, tup)
        if progress is not None:
            progress.reports += 1
            progress.expected += count
            self._go_on(number, attempt, progress)

    def _begin(self, number: int, tup: Tuple) -> None:
        attempt, oldest, _ = tup
        progress = self._about(number, attempt, oldest, tup)
        if progress is not None:
            progress.reports += 1
            self._do(number, attempt, progress, partial(self._run(number, attempt, progress).take, tup))
            self._go_on(number, attempt, progress)

    def _commit(self, number: int, tup: Tuple) -> None:
        attempt, oldest = tup
        known = self._batches(number).of(attempt)
        if known is not None and not known.failed:
            self._do(number, attempt, known, partial(self._commit_emitters, number, attempt))
        progress = self._about(number, attempt, oldest, tup)
        if progress is not None:
            progress.committing = True
            self._go_on(number, attempt, progress)

    def _success(self, number: int, tup: Tuple) -> None:
        self._collector.ack(tup)
        attempt, oldest = tup
        self._forget(number, oldest)
        for emitter in self._emitters(number):
            emitter.success(attempt)

    def _about(self, number: int, attempt: TransactionAttempt, oldest: int, tup: Tuple) -> Progress | None:
        """Returns the batch that a tuple is about, and keeps the tuple until this task is done with the batch."""
        self._forget(number, oldest)
        progress = self._batches(number).of(attempt)
        if progress is not None and progress.failed:
            self._collector.fail(tup)
        elif progress is None or progress.done:
            self._collector.ack(tup)
        else:
            if tup.source_component in self._parts[number].early:
                self._collector.ack(tup)
            else:
                progress.waiting.append(tup)
            return progress
        return None

    def _forget(self, number: int, oldest: int) -> None:
        """Forgets batches that are committed."""
        batches = self._batches(number)
        if oldest > batches.oldest:
            batches.forget(oldest)
            for known in [key for key in self._running if key[0] == number and key[1] < oldest]:
                del self._running[known]

    # --- what is done -------------------------------------------------------------------------------------------------

    def _do(self, number: int, attempt: TransactionAttempt, progress: Progress, action: Any) -> None:
        """Executes something of a batch; a `FailedException` fails the batch."""
        try:
            action()
        except FailedException as failure:
            if isinstance(failure, ReportedFailedException):
                self._collector.report_error(failure)
            progress.failed = True
            progress.held.clear()
            self._running.pop((number, attempt.txid), None)
            for tup in progress.waiting:
                self._collector.fail(tup)
            progress.waiting.clear()

    def _go_on(self, number: int, attempt: TransactionAttempt, progress: Progress) -> None:
        """Ends the batch in this task if it is due."""
        batches = self._batches(number)
        if not batches.due(progress):
            if batches.complete(progress) and not progress.committing:
                # The commit begins once all tasks have all of the batch.
                self._ack(progress)
            return
        self._do(number, attempt, progress, partial(self._finish, number, attempt, progress))

    def _finish(self, number: int, attempt: TransactionAttempt, progress: Progress) -> None:
        self._run(number, attempt, progress).finish()
        part, oldest = self._parts[number], self._batches(number).oldest
        anchor = progress.waiting[0] if progress.waiting else None
        for task in self._targets[number]:
            count = progress.sent.get(task, 0)
            self._collector.emit_direct(task, [attempt, oldest, count], anchors=anchor, stream=part.reports)
        progress.done = True
        progress.held.clear()
        progress.sent.clear()
        self._running.pop((number, attempt.txid), None)
        self._ack(progress)

    def _ack(self, progress: Progress) -> None:
        for tup in progress.waiting:
            self._collector.ack(tup)
        progress.waiting.clear()

    def _run(self, number: int, attempt: TransactionAttempt, progress: Progress) -> Running:
        """Returns what executes the operations for a batch."""
        known = self._running.get((number, attempt.txid))
        if known is not None and known[0] is progress:
            return known[1]
        emit = self._collector.emit
        sent = progress.sent

        def emit_row(row: Sequence[Any], stream: str) -> None:
            for task in emit((attempt, *row), stream=stream):
                sent[task] = sent.get(task, 0) + 1

        program = self._parts[number].program
        running = program.start(emit_row, self._stores, progress.held, attempt, self._task)
        self._running[number, attempt.txid] = progress, running
        return running

    def _commit_emitters(self, number: int, attempt: TransactionAttempt) -> None:
        for emitter in self._emitters(number):
            if isinstance(emitter, CommitterEmitter):
                emitter.commit(attempt)

    # --- what is kept -------------------------------------------------------------------------------------------------

    def _batches(self, number: int) -> Batches:
        batches: Batches = getattr(self.state_holder, f"batches_{number}")
        return batches

    def _emitters(self, number: int) -> list[Any]:
        operations = self._parts[number].program.operations
        return [self._kept(operation.id) for operation in operations if isinstance(operation.processor, EmitBatch)]

    def _keep(self, operation: int, value: Any) -> None:
        setattr(self.state_holder, f"kept_{operation}", value)

    def _kept(self, operation: int) -> Any:
        if operation in self._states:
            return self._states[operation]
        kept = getattr(self.state_holder, f"kept_{operation}")
        if operation in self._partitioned:
            emitter = self._partitioned[operation]
            emitter.partitions = kept
            return emitter
        return kept
