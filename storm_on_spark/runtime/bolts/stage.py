"""Executing a stage: the chunks for its tasks in, the chunks that these emit out.

Which chunks are for which stage, and where those go that it emits, is decided in
`storm_on_spark.runtime.bolts.operator`.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from storm_on_spark.api.errors import ComponentError, StormError
from storm_on_spark.api.streams.constants import (
    ACKER_COMPONENT,
    SYSTEM_COMPONENT,
    SYSTEM_TASK,
    TICK_STREAM,
    TIMER_STREAM,
)
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.topology import ComponentKind
from storm_on_spark.api.tuple import Delivery
from storm_on_spark.metrics import amounts as names
from storm_on_spark.metrics.latency import bin_of
from storm_on_spark.plan.model import EdgeKind, PlannedComponent, Stage
from storm_on_spark.runtime.bolts.bolt_task import UnsavedError
from storm_on_spark.runtime.bolts.inputs import Execution, Input
from storm_on_spark.runtime.bolts.saved import SavedTask, StateAccess
from storm_on_spark.runtime.bolts.worker import CachedTask, Worker
from storm_on_spark.runtime.codec import chunk
from storm_on_spark.runtime.codec.chunk import Chunk, Header, Kind
from storm_on_spark.runtime.emit.encode import encode_sealed
from storm_on_spark.runtime.emit.output import Sealed
from storm_on_spark.runtime.processes.diagnostics.prints import speaking
from storm_on_spark.runtime.reports.groups import Groups
from storm_on_spark.runtime.reports.report import Failure, TaskMetrics, sent_amounts
from storm_on_spark.runtime.run.settings import BoltSettings, TrackingSettings
from storm_on_spark.runtime.run.wiring import StreamInfo, Wiring
from storm_on_spark.runtime.tracking import acker
from storm_on_spark.runtime.tracking.fold import Fold, fold, split_by_acker
from storm_on_spark.runtime.tracking.ids import EdgeIds, U64Array
from storm_on_spark.runtime.values.batches import to_batch, to_rows

Row = tuple[int, bytes]
"""Key and chunk, as rows travel through Spark."""

Handed = Sealed | acker.Contribution | acker.Outcome | list[TaskMetrics | Failure]
"""What a chunk would hold, in place of its bytes; see `BatchInfo.together`."""

Passed = tuple[Header, bytes | Handed]
"""What goes from stage to stage: a chunk, or what it would hold."""


def bytes_of(body: bytes | Handed) -> bytes:
    """Returns the bytes of a chunk that leaves the process, or has come from elsewhere."""
    assert isinstance(body, bytes), "only what stays in the process is handed on without bytes"
    return body


_MOST_ERRORS = 100
"""Different errors of a task that one execution reports; a bolt may fail on every tuple."""
_TICK_FIELDS = Fields("rate_secs")
_TIMER_FIELDS = Fields("name", "time_ms")
_ACKER_STREAM = "__ack_ack"
_ACKER_INPUT = SYSTEM_COMPONENT, _ACKER_STREAM
"""Contributions of many components come as one."""


@dataclass(frozen=True)
class BatchInfo:
    """Which execution this is; the same for every attempt at it."""

    batch: int
    partition: int
    saves: bool = True
    """Whether the state of tasks is saved at the end. Without it, instances are ahead of their saved state until
    `SavedTask.save_later`."""
    together: bool = False
    """Whether this process executes all stages, so that chunks of constant values need no bytes: a round of one message
    of word count takes 36 % less."""


def execute_bolts(
    worker: Worker, stage: Stage, by_task: dict[int, list[Passed]], info: BatchInfo, state: StateAccess | None = None
) -> Iterator[Passed]:
    """Yields the output of a stage of bolts for the chunks of its tasks.

    Args:
        worker: this process's instances.
        stage: the stage; not the acker's.
        by_task: the chunks, in any order; taken out as they are decoded.
        info: which batch and partition.
        state: the state of the one task that there are chunks for; None in a stage without state.
    """
    run = _StageRun(worker, stage, info, state, next(iter(by_task)) if state is not None else info.partition)
    try:
        run.take_in(by_task)
        yield from run.execute()
    except StormError as error:
        # Ends the topology: the sink reads it before the batch can be committed.
        yield run.report([Failure.of(error)])


class _StageRun:
    def __init__(self, worker: Worker, stage: Stage, info: BatchInfo, state: StateAccess | None, place: int) -> None:
        self.worker = worker
        self.wiring = worker.wiring
        self.stage = stage
        self.info = info
        self.state = state
        self.inputs: dict[int, list[Input]] = {}
        #: What is due in tasks, of `chunk.TICK`, `chunk.TURN` and `chunk.TIMER`; and the time, in those with timers.
        self.due: dict[int, int] = {}
        self.clocks: dict[int, int] = {}
        self.folds: list[Fold] = []
        #: Of the chunks that were sent and those that were executed; all that stays in this process has none.
        self.receipts = 0
        self.reports: list[TaskMetrics | Failure] = []
        #: Tells this run from others of the stage in this batch that may execute the same stateless task: runs without
        #: state by partition, and runs with state by task, as what is fused with a task with state executes for each.
        self.place = place
        #: Numbers outgoing chunks. The upper bits keep those of a task that several runs execute apart.
        self.sequence = count(place << 40)

    def take_in(self, by_task: dict[int, list[Passed]]) -> None:
        """Turns chunks into inputs, those of each task in the order in which they were emitted."""
        for task in list(by_task):
            chunks = by_task.pop(task)
            chunks.sort(key=lambda item: (item[0].source, item[0].sequence))
            for header, body in chunks:
                if isinstance(body, Sealed):
                    self.inputs.setdefault(task, []).append(handed(self.wiring, header.source, body))
                elif header.kind != Kind.CLOCK:
                    found, receipt = decoded(self.wiring, header, bytes_of(body))
                    self.receipts ^= receipt
                    self.inputs.setdefault(task, []).append(found)
                else:
                    self.due[task], self.clocks[task] = header.size, header.sequence

    def execute(self) -> Iterator[Passed]:
        """Executes the components in order; yields what leaves the stage."""
        for component_id in self.stage.components:
            component = self.wiring.plan.components[component_id]
            if component.kind.is_spout:
                continue
            for task in component.tasks:
                inputs = self.inputs.pop(task, [])
                due = self.due.get(task, 0)
                add_due(self.wiring, component, inputs, due, self.clocks.get(task))
                if inputs or due & chunk.TURN:
                    yield from self._execute_task(task, inputs)
        yield from self._folded()
        if self.reports:
            yield self.report(self.reports)

    def _execute_task(self, task: int, inputs: list[Input]) -> Iterator[Passed]:
        component = self.wiring.component(task)
        ids = EdgeIds(self.worker.spec.storm_id, self.info.batch, self.place, task)
        execution = execute_task(
            self.worker, component, task, inputs, ids, self.info, self.state, self.clocks.get(task)
        )
        for sealed in execution.sealed:
            box = sealed.box
            if box.kind is EdgeKind.LOCAL:
                self.inputs.setdefault(box.target, []).append(handed(self.wiring, task, sealed))
            elif self.info.together and sealed.plain and box.kind is not EdgeKind.CARRIED:
                size = len(sealed.values)
                yield chunk.header_of(Kind.TUPLES, box.target, task, next(self.sequence), size), sealed
            else:
                sent, receipt = encode_sealed(sealed, component.id, task, next(self.sequence))
                self.receipts ^= receipt
                yield sent
        if execution.written:
            written = chunk.encode_written(execution.written, source=task, sequence=next(self.sequence))
            yield chunk.with_header(written)
        self.folds += execution.folds
        self.reports.append(metrics_of(component.id, task, execution))
        if execution.errors:
            self.reports += failures_of(component.id, task, execution.errors)

    def _folded(self) -> Iterator[Passed]:
        if not self.folds and not self.receipts:
            return
        for task, part in split_by_acker(self.worker.spec.plan.acker_tasks, news_of(self.folds)):
            if self.info.together:
                header = chunk.header_of(Kind.ACKS, task, -1, 0, len(part.roots))
                yield header, acker.Contribution(*part, 0, self.receipts)
            else:
                body = chunk.encode_acks(*part, target=task, source=-1, receipts=self.receipts)
                yield chunk.with_header(body)

    def report(self, records: list[TaskMetrics | Failure]) -> Passed:
        """Returns a chunk for the sink."""
        return _report(records, self.stage.index, self.info)


def _report(records: list[TaskMetrics | Failure], source: int, info: BatchInfo) -> Passed:
    if info.together:
        return chunk.header_of(Kind.REPORT, -1, source, 0, len(records)), records
    return chunk.with_header(chunk.encode_report(records, source=source))


def _of_system(component: PlannedComponent, stream: str, fields: Fields, values: tuple[object, ...]) -> Input:
    """Returns a tuple of the system, for a bolt."""
    rows: object = [values]
    if component.kind is ComponentKind.BATCH_BOLT:
        rows = to_batch(list(fields), rows)  # type: ignore[arg-type]
    return Input(Delivery(SYSTEM_COMPONENT, stream, SYSTEM_TASK, fields), rows, 1)


def decoded(wiring: Wiring, header: Header, body: bytes) -> tuple[Input, int]:
    """Returns what a chunk has for a task, and the chunk's receipt.

    Raises:
        StormError: the tuples don't fit the task, or the chunk is damaged.
    """
    stream = wiring.streams[header.stream]
    lineage, payload, receipt = chunk.read_lineage(header, body)
    delivery = Delivery(stream.component, stream.stream, header.source, stream.fields, lineage)
    component = wiring.component(header.target)
    columnar = component.kind is ComponentKind.BATCH_BOLT
    values: object
    if header.kind == Kind.ARROW:
        batch = chunk.read_batch(payload)
        values = batch if columnar or component.sink else to_rows(batch)
    elif columnar:
        with _fitting(wiring, header.target, stream):
            values = chunk.read_rows_as_batch(header, payload, stream.fields)
    else:
        values = chunk.read_rows(header, payload)
    return Input(delivery, values, header.size), receipt


def handed(wiring: Wiring, task: int, sealed: Sealed) -> Input:
    """Returns what a task has emitted, for a task in this process.

    Raises:
        StormError: the tuples don't fit that task.
    """
    stream, target, values = sealed.box.stream, sealed.box.target, sealed.values
    delivery = Delivery(stream.component, stream.stream, task, stream.fields, sealed.lineage())
    component = wiring.component(target)
    if component.kind is not ComponentKind.BATCH_BOLT:
        whole = component.sink or not isinstance(values, pa.RecordBatch)
        rows = values if whole else to_rows(values)
        return Input(delivery, rows, len(rows))
    if not isinstance(values, pa.RecordBatch):
        with _fitting(wiring, target, stream):
            values = to_batch(list(stream.fields), values)
    return Input(delivery, values, values.num_rows)


@contextlib.contextmanager
def _fitting(wiring: Wiring, task: int, stream: StreamInfo) -> Iterator[None]:
    """Names the task and the stream of tuples that can't be put into a record batch."""
    try:
        yield
    except pa.ArrowException as error:
        raise ComponentError(
            wiring.component(task).id,
            task,
            "execute",
            f'the tuples of stream "{stream.stream}" from "{stream.component}" don\'t fit in Arrow '
            f"columns, which a BatchBolt needs: {error}",
        ) from error


def add_due(wiring: Wiring, component: PlannedComponent, inputs: list[Input], due: int, now: int | None) -> None:
    """Adds to the tuples of a task what is due in it, of `chunk.TICK` and `chunk.TIMER`: timers first, a tick last."""
    if due & chunk.TICK:
        rate = wiring.settings(BoltSettings, component.id).tick_secs
        inputs.append(_of_system(component, TICK_STREAM, _TICK_FIELDS, (rate,)))
    if due >= chunk.TIMER:
        inputs[:0] = [
            _of_system(component, TIMER_STREAM, _TIMER_FIELDS, (name, now))
            for place, (name, _) in enumerate(component.timers)
            if (due // chunk.TIMER) >> place & 1
        ]


def execute_task(
    worker: Worker,
    component: PlannedComponent,
    task: int,
    inputs: list[Input],
    ids: EdgeIds,
    info: BatchInfo,
    state: StateAccess | None,
    clock_ms: int | None,
) -> Execution:
    """Executes one task of a bolt.

    An instance is out of the cache while it executes: after an exception it is of no version, and its output is half
    done.

    Args:
        worker: this process's instances.
        component: whose task it is.
        task: its number.
        inputs: the tuples, in order.
        ids: of the edges.
        info: which execution this is.
        state: the task's, if it has any.
        clock_ms: the topology's time, for a bolt with timers.
    """
    with speaking(component.id, task):
        if not component.stateless:
            assert state is not None
            return _execute_stateful(worker, task, inputs, ids, info, state, clock_ms)
        cached = worker.tasks.pop(task, None) or CachedTask(worker.prepare(task), None)
        execution = cached.bolt.execute(inputs, ids, info.batch, clock_ms=clock_ms)
        worker.tasks[task] = cached
        return execution


def _execute_stateful(
    worker: Worker,
    task: int,
    inputs: list[Input],
    ids: EdgeIds,
    info: BatchInfo,
    state: StateAccess,
    clock_ms: int | None,
) -> Execution:
    saved = SavedTask(worker, task, state)
    cached = saved.taken_out()
    bolt = cached.bolt
    if bolt.state is not None:
        bolt.state.attach(state)
    try:
        kept = None if bolt.state is None else saved.kept
        execution = bolt.execute(inputs, ids, info.batch, kept, saves=info.saves, clock_ms=clock_ms)
    except UnsavedError:
        cached.version, cached.unsaved = None, False  # it is set back when it is needed next
        worker.tasks[task] = cached
        raise
    if info.saves:
        saved.save(cached)
    else:
        cached.unsaved = True
    if bolt.state is not None:
        bolt.state.attach(None)
    worker.tasks[task] = cached
    return execution


def news_of(folds: list[Fold]) -> Fold:
    """Returns what ackers have to hear of an execution: XORs that cancelled out within it are not sent."""
    folded = fold(folds)
    news = (folded.xors != 0) | (folded.marks != 0)
    return Fold(*(column[news] for column in folded))


def failures_of(component: str, task: int, errors: list[ComponentError]) -> list[Failure]:
    """Returns the errors of one execution of a task as records, equal ones as one."""
    groups = Groups(_MOST_ERRORS)
    for error in errors:
        groups.add(Failure.of(error, fatal=False))
    found = [group.failure for group in groups]
    if groups.left_out:
        text = f'"{component}" (task {task}) had {groups.left_out} more errors in this micro-batch'
        found.append(Failure(component, task, text, "", False))
    return found


def metrics_of(component: str, task: int, execution: Execution) -> TaskMetrics:
    """Returns the counters of one execution of a task."""
    amounts = execution.amounts
    amounts.update(sent_amounts(execution.sent))
    amounts[names.BUSY_NS, "", ""] = round(execution.seconds * 1e9)
    return TaskMetrics(
        component,
        task,
        execution.executed,
        execution.acked,
        execution.failed,
        sum([sent.emitted for sent in execution.sent.values()]),
        sum([sent.transferred for sent in execution.sent.values()]),
        execution.seconds,
        execution.registered,
        amounts,
    )


def acker_metrics(task: int, executed: int, ended: int, seconds: float) -> TaskMetrics:
    """Returns the counters of an acker task: it executes news of roots, and reports those that have ended."""
    spent = round(seconds * 1e9)
    amounts: dict[names.Name, int] = {
        (names.EXECUTED, *_ACKER_INPUT): executed,
        (names.ACKED, *_ACKER_INPUT): executed,
        (names.EXECUTE_NS, *_ACKER_INPUT): spent,
        (names.PROCESS_NS, *_ACKER_INPUT): spent,
        (names.BUSY_NS, "", ""): spent,
        (names.EMITTED, _ACKER_STREAM, ""): ended,
        (names.TRANSFERRED, _ACKER_STREAM, ""): ended,
    }
    if executed:
        at = bin_of(1e3 * seconds / executed)
        amounts[names.EXECUTE_BIN, at, ""] = amounts[names.PROCESS_BIN, at, ""] = executed
    return TaskMetrics(ACKER_COMPONENT, task, executed, executed, 0, ended, ended, seconds, (), amounts)


def execute_acker(
    wiring: Wiring, task: int, chunks: list[Passed], state: StateAccess, info: BatchInfo
) -> Iterator[Passed]:
    """Yields the outcomes that an acker task finds in its chunks, and the rows of Spark's that it did not ack."""
    started = time.perf_counter()
    settings = wiring.settings(TrackingSettings)
    timeout_ms, timeouts = settings.timeout_ms, settings.timeouts
    parts: list[acker.Contribution] = []
    rows: list[tuple[U64Array, memoryview]] = []
    clock = None
    for header, body in chunks:
        if isinstance(body, acker.Contribution):
            parts.append(body)
            continue
        body = bytes_of(body)
        if header.kind == Kind.CLOCK:
            clock = header.sequence
        elif header.kind == Kind.ROWS:
            rows.append(chunk.read_native_roots(header, body))
        else:
            roots, xors, marks, receipts = chunk.read_acks(header, body)
            parts.append(acker.Contribution(roots, xors, marks, header.sequence // timeout_ms, receipts))
    assert clock is not None or wiring.plan.native_spouts, (
        f"acker task {task} got no clock, which every micro-batch brings that has news in our source"
    )
    pending = acker.AckerState.load(state.get("pending") or b"", timeout_ms, timeouts)
    had = len(pending)
    outcome = pending.apply(parts, None if clock is None else clock // timeout_ms)
    if pending.lost:
        text = (
            f"a micro-batch lost tuples between two stages, or executed some twice: the {len(outcome.roots)} messages "
            "that were open have failed. A stage was computed again and a bolt emitted other tuples than before"
        )
        failure = Failure(ACKER_COMPONENT, task, text, "", False)
        yield chunk.with_header(chunk.encode_report([failure], source=task))
    if len(pending):
        state.put("pending", pending.dump(clock))
    elif had:
        state.remove("pending")
    if rows:
        yield from _left(rows, outcome.roots[outcome.codes == acker.ACKED])
    if len(outcome.roots) and info.together:
        yield chunk.header_of(Kind.OUTCOME, -1, task, 0, len(outcome.roots)), outcome
    elif len(outcome.roots):
        yield chunk.with_header(chunk.encode_outcome(outcome.roots, outcome.codes, source=task))
    executed = sum(len(part.roots) for part in parts)
    if executed or len(outcome.roots):
        yield _report([acker_metrics(task, executed, len(outcome.roots), time.perf_counter() - started)], task, info)


def _left(rows: list[tuple[U64Array, memoryview]], acked: U64Array) -> Iterator[Chunk]:
    """Yields the rows that are not acked in the micro-batch that read them: their spout keeps those, and no others."""
    for roots, payload in rows:
        left = ~_among(roots, acked)
        if left.any():
            batch = chunk.read_batch(payload)
            yield chunk.with_header(chunk.encode_native_rows(roots[left], batch.filter(pa.array(left)), target=None))


def _among(roots: U64Array, in_order: U64Array) -> NDArray[np.bool_]:
    """Returns which roots are among others, which are sorted: `np.isin` would sort them again for each chunk."""
    if not len(in_order):
        return np.zeros(len(roots), np.bool_)
    found = np.minimum(np.searchsorted(in_order, roots), len(in_order) - 1)
    same: NDArray[np.bool_] = in_order[found] == roots
    return same
