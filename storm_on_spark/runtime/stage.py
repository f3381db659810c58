"""Executing a stage: chunks in, chunks out.

The same for all kinds of stage; what differs is who brings the chunks (`storm_on_spark.spark`) and whether there is
state. A chunk that is meant for a later stage, or for the sink, passes through untouched.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Protocol

import numpy as np
import pyarrow as pa

from storm_on_spark.api.constants import ACKER_COMPONENT, SYSTEM_COMPONENT, SYSTEM_TASK, TICK_STREAM
from storm_on_spark.api.errors import ComponentError, StormError, TupleError
from storm_on_spark.api.fields import Fields
from storm_on_spark.api.topology import ComponentKind
from storm_on_spark.api.tuple import Delivery as TupleDelivery
from storm_on_spark.plan.model import Delivery, Stage
from storm_on_spark.runtime import acker, chunk, deltas, pickling
from storm_on_spark.runtime.bolt_task import Execution, Input, to_batch, to_rows
from storm_on_spark.runtime.chunk import Header, Kind
from storm_on_spark.runtime.fold import Fold, fold
from storm_on_spark.runtime.ids import EdgeIds
from storm_on_spark.runtime.output import Sealed
from storm_on_spark.runtime.report import Failure, TaskMetrics
from storm_on_spark.runtime.state_version import StateVersion, StateVersions
from storm_on_spark.runtime.wiring import StreamInfo, Wiring
from storm_on_spark.runtime.worker import CachedTask, Worker

Row = tuple[int, bytes]
"""Key and chunk, as rows travel through Spark."""

_MOST_ERRORS = 100
"""Errors of a task that one execution reports; a bolt may fail on every tuple."""
_MOST_DELTAS = 32
"""Deltas of a snapshot before it is written whole again. Each is read by itself, by a worker that has nothing yet."""
_TICK_FIELDS = Fields("rate_secs")


class StateAccess(Protocol):
    """The state of one task in this batch: values by name, and of `entries` by name and number.

    A bolt has `version`, `snapshot` and `entries`: those of key-value state, and, by numbers below zero, deltas of the
    snapshot. An acker has `pending`.
    """

    def get(self, name: str, index: int = 0) -> bytes | None:
        """Returns a value, or None."""

    def put(self, name: str, value: bytes, index: int = 0) -> None:
        """Sets a value."""

    def remove(self, name: str, index: int = 0) -> None:
        """Removes a value, which may be none."""


@dataclass(frozen=True)
class BatchInfo:
    """Which execution this is; the same for every attempt at it."""

    batch: int
    partition: int


def execute_stage(
    worker: Worker, stage: Stage, bodies: Iterable[bytes], info: BatchInfo, state: StateAccess | None
) -> Iterator[Row]:
    """Yields what a stage of bolts makes of the chunks that reached it.

    Args:
        worker: this process's instances.
        stage: the stage; not the acker's.
        bodies: the chunks of one partition, or of one task where the stage is stateful.
        info: which batch and partition.
        state: the state of the one stateful task among the targets; None in a stateless stage.
    """
    run = _StageRun(worker, stage, info, state)
    try:
        yield from run.take_in(bodies)
        yield from run.execute()
    except StormError as error:
        # Ends the topology: the sink reads it before the batch can be committed.
        yield run.report([Failure.of(error)])


class _StageRun:
    def __init__(self, worker: Worker, stage: Stage, info: BatchInfo, state: StateAccess | None) -> None:
        self.worker = worker
        self.wiring = worker.wiring
        self.keys = worker.spec.plan.keys
        self.stage = stage
        self.info = info
        self.state = state
        self.inputs: dict[int, list[Input]] = {}
        self.ticks: set[int] = set()
        self.folds: list[Fold] = []
        #: Of the chunks that were sent and those that were executed; all that stays in this process has none.
        self.receipts = 0
        self.reports: list[TaskMetrics | Failure] = []
        #: Tells this run from others of the stage in this batch that may execute the same stateless task.
        self.place = info.partition
        self.sequence = count()

    def take_in(self, bodies: Iterable[bytes]) -> Iterator[Row]:
        """Sorts chunks into inputs by task; yields those that pass through."""
        mine: list[tuple[Header, bytes]] = []
        for body in bodies:
            header = chunk.read_header(body)
            if is_for_sink(header):
                yield self.wiring.system_key, body
            elif self.wiring.stage_of_task(header.target) != self.stage.index:
                yield self.keys[header.target], body
            elif header.kind == Kind.CLOCK:
                if header.size:
                    self.ticks.add(header.target)
            else:
                mine.append((header, body))
        mine.sort(key=lambda item: (item[0].source, item[0].sequence))
        for header, body in mine:
            self.inputs.setdefault(header.target, []).append(self._decode(header, body))
        if self.state is not None:
            # Tasks with state may share a partition, and what is fused with them executes once for each of them.
            tasks = self.inputs.keys() | self.ticks
            assert len(tasks) <= 1, f"{tasks} are executed with the state of one task"
            self.place = next(iter(tasks), 0)
        # The upper bits keep the chunks of a task that several runs execute apart.
        self.sequence = count(self.place << 40)

    def _decode(self, header: Header, body: bytes) -> Input:
        stream = self.wiring.streams[header.stream]
        lineage, payload = chunk.read_lineage(header, body)
        self.receipts ^= chunk.receipt(header, body)
        delivery = TupleDelivery(stream.component, stream.stream, header.source, stream.fields, lineage)
        columnar = self.wiring.component(header.target).kind is ComponentKind.BATCH_BOLT
        values: object
        if header.kind == Kind.ARROW:
            batch = chunk.read_batch(payload)
            values = batch if columnar else to_rows(batch)
        elif columnar:
            with self._fitting(header.target, stream):
                values = chunk.read_rows_as_batch(header, payload, stream.fields)
        else:
            values = chunk.read_rows(header, payload)
        return Input(delivery, values, header.size)

    @contextlib.contextmanager
    def _fitting(self, task: int, stream: StreamInfo) -> Iterator[None]:
        """Says of tuples that have no place in a record batch whose they are."""
        try:
            yield
        except pa.ArrowException as error:
            raise ComponentError(
                self.wiring.component(task).id,
                task,
                "execute",
                f'the tuples of stream "{stream.stream}" from "{stream.component}" don\'t fit in Arrow '
                f"columns, which a BatchBolt needs: {error}",
            ) from error

    def execute(self) -> Iterator[Row]:
        """Executes the components in order; yields what leaves the stage."""
        for component_id in self.stage.components:
            component = self.wiring.plan.components[component_id]
            if component.kind.is_spout:
                continue
            for task in component.tasks:
                inputs = self.inputs.pop(task, [])
                if task in self.ticks:
                    inputs.append(self._tick(component_id))
                if inputs:
                    yield from self._execute_task(task, inputs)
        yield from self._fold_rows()
        if self.reports:
            yield self.report(self.reports)

    def _tick(self, component: str) -> Input:
        rows: object = [(self.wiring.conf(component)["topology.tick.tuple.freq.secs"],)]
        if self.wiring.plan.components[component].kind is ComponentKind.BATCH_BOLT:
            rows = to_batch(list(_TICK_FIELDS), rows)  # type: ignore[arg-type]
        return Input(TupleDelivery(SYSTEM_COMPONENT, TICK_STREAM, SYSTEM_TASK, _TICK_FIELDS), rows, 1)

    def _execute_task(self, task: int, inputs: list[Input]) -> Iterator[Row]:
        component = self.wiring.component(task)
        ids = EdgeIds(self.worker.spec.storm_id, self.info.batch, self.place, task)
        execute = self._execute_stateless if component.stateless else self._execute_stateful
        execution = execute(task, inputs, ids)
        for sealed in execution.sealed:
            box = sealed.box
            if box.delivery is Delivery.LOCAL:
                self.inputs.setdefault(box.target, []).append(self._local(task, sealed))
            else:
                body = encode_sealed(sealed, component.id, task, next(self.sequence))
                carried = box.delivery is Delivery.CARRIED
                self.receipts ^= chunk.receipt(chunk.read_header(body), body)
                yield (self.wiring.system_key if carried else self.keys[box.target]), body
        self.folds += execution.folds
        self.reports.append(_metrics(component.id, task, execution))
        self.reports += [Failure.of(error, fatal=False) for error in execution.errors[:_MOST_ERRORS]]
        more = len(execution.errors) - _MOST_ERRORS
        if more > 0:
            text = f'"{component.id}" (task {task}) had {more} more errors in this micro-batch'
            self.reports.append(Failure(component.id, task, text, "", False))

    def _local(self, task: int, sealed: Sealed) -> Input:
        stream, target, values = sealed.box.stream, sealed.box.target, sealed.values
        delivery = TupleDelivery(stream.component, stream.stream, task, stream.fields, sealed.lineage())
        if self.wiring.component(target).kind is not ComponentKind.BATCH_BOLT:
            rows = to_rows(values) if isinstance(values, pa.RecordBatch) else values
            return Input(delivery, rows, len(rows))
        if not isinstance(values, pa.RecordBatch):
            with self._fitting(target, stream):
                values = to_batch(list(stream.fields), values)
        return Input(delivery, values, values.num_rows)

    # An instance is out of the cache while it executes: after an exception it is of no version, and its output is
    # half done.

    def _execute_stateless(self, task: int, inputs: list[Input], ids: EdgeIds) -> Execution:
        cached = self.worker.tasks.pop(task, None) or CachedTask(self.worker.prepare(task), None)
        execution = cached.bolt.execute(inputs, ids, self.info.batch)
        self.worker.tasks[task] = cached
        return execution

    def _execute_stateful(self, task: int, inputs: list[Input], ids: EdgeIds) -> Execution:
        """Executes a task whose instance is a cache over the state store.

        State variable `version` says which state the others hold: `snapshot`, and the entries of key-value state. Among
        the entries are the deltas to the snapshot, from -1 down.
        """
        assert self.state is not None
        versions = StateVersions.load(self.state.get("version"))
        cached = self._instance_at(task, versions)
        bolt = cached.bolt
        before = bolt.snapshot
        whole = partial(self._entries, 0, versions.newest.entries)
        execution = bolt.execute(inputs, ids, self.info.batch, whole)
        assert bolt.snapshot is not None
        _, generation, entries, *written = versions.newest
        changed = not versions or bolt.snapshot != before
        if changed:
            written = self._write_snapshot(before if versions else None, bolt.snapshot, versions.newest)
        if bolt.state is not None and (entry := bolt.state.take_changes()) is not None:
            changed = True
            if bolt.state.wants_compaction:
                generation, entries = generation + 1, self._write_anew(bolt.state.compact(), entries)
            else:
                self.state.put("entries", entry, entries)
                entries += 1
        if changed:
            versions = versions.next(generation, entries, *written)
            cached.version = versions.newest.id
            self.state.put("version", versions.dump())
        self.worker.tasks[task] = cached
        return execution

    def _write_snapshot(self, before: bytes | None, after: bytes, newest: StateVersion) -> list[int]:
        """Writes a snapshot, as a delta if that is much less; returns its two numbers for `StateVersion`."""
        assert self.state is not None
        if (
            before is not None
            and newest.deltas < _MOST_DELTAS
            and (delta := deltas.delta_of(before, after)) is not None
        ):
            self.state.put("entries", delta, -1 - newest.deltas)
            return [newest.snapshot, newest.deltas + 1]
        self.state.put("snapshot", after)
        for number in range(newest.deltas):
            self.state.remove("entries", -1 - number)
        return [newest.snapshot + 1, 0]

    def _read_snapshot(
        self, newest: StateVersion, held: StateVersion | None = None, known: bytes | None = None
    ) -> bytes:
        """Returns the present snapshot; from a known one only the deltas since are read, if it is not too old."""
        assert self.state is not None
        if held is not None and held.snapshot == newest.snapshot:
            snapshot, first = known, held.deltas
        else:
            snapshot, first = self.state.get("snapshot"), 0
        assert snapshot is not None, "a version without a snapshot"
        for delta in self._entries(-1 - first, -1 - newest.deltas, -1):
            snapshot = deltas.applied(snapshot, delta)
        return snapshot

    def _write_anew(self, entries: list[bytes], before: int) -> int:
        assert self.state is not None
        for index, entry in enumerate(entries):
            self.state.put("entries", entry, index)
        for index in range(len(entries), before):
            self.state.remove("entries", index)
        return len(entries)

    def _entries(self, first: int, end: int, step: int = 1) -> Iterator[bytes]:
        assert self.state is not None
        for index in range(first, end, step):
            entry = self.state.get("entries", index)
            assert entry is not None, f"entry {index} of {end} is missing"
            yield entry

    def _instance_at(self, task: int, versions: StateVersions) -> CachedTask:
        cached = self.worker.tasks.pop(task, None)
        newest = versions.newest
        if cached is not None and versions and cached.version == newest.id:
            return cached
        if not versions:
            # Nothing of this task has been committed yet.
            return CachedTask(self.worker.prepare(task), None)
        if cached is None:
            cached = CachedTask(self.worker.prepare(task, self._entries(0, newest.entries)), newest.id)
            cached.bolt.restore(self._read_snapshot(newest))
        elif (held := versions.held(cached.version)) is not None:
            snapshot = self._read_snapshot(newest, held, cached.bolt.snapshot)
            cached.bolt.catch_up(snapshot, self._entries(held.entries, newest.entries))
        else:
            cached.bolt.roll_back(self._read_snapshot(newest), self._entries(0, newest.entries))
        cached.version = newest.id
        return cached

    def _fold_rows(self) -> Iterator[Row]:
        if not self.folds and not self.receipts:
            return
        folded = fold(self.folds)
        # What cancelled out within this execution need not travel.
        news = (folded.xors != 0) | (folded.marks != 0)
        for task, part in split_by_acker(self.worker.spec.plan.acker_tasks, Fold(*(column[news] for column in folded))):
            yield self.keys[task], chunk.encode_acks(*part, target=task, source=-1, receipts=self.receipts)

    def report(self, records: list[TaskMetrics | Failure]) -> Row:
        """Returns a row for the sink."""
        return self.wiring.system_key, chunk.encode_report(records, source=self.stage.index)


def is_for_sink(header: Header) -> bool:
    """Returns whether a chunk passes through all stages that come."""
    return header.kind in (Kind.OUTCOME, Kind.REPORT) or bool(header.flags & chunk.CARRIED)


def split_by_acker(ackers: tuple[int, ...], folded: Fold) -> Iterator[tuple[int, Fold]]:
    """Yields (acker task, its share) for all: root modulo the number of ackers, as Storm's fields grouping on the root.

    Also where there is nothing in it, for all ackers are told of receipts.
    """
    if len(ackers) == 1:
        yield ackers[0], folded
        return
    owner = folded.roots % np.uint64(max(1, len(ackers)))
    for index, task in enumerate(ackers):
        mine = owner == index
        yield task, Fold(*(column[mine] for column in folded))


def encode_sealed(sealed: Sealed, component: str, task: int, sequence: int) -> bytes:
    """Returns a box as a chunk.

    Raises:
        TupleError: a value can't be pickled; the message names its field.
    """
    box = sealed.box
    flags = chunk.CARRIED | chunk.TOLD if box.delivery is Delivery.CARRIED else 0
    head = {"target": box.target, "source": task, "sequence": sequence, "stream": box.stream.number, "flags": flags}
    try:
        if isinstance(sealed.values, pa.RecordBatch):
            return chunk.encode_arrow(sealed.values, sealed.roots, sealed.edges, **head)
        return chunk.encode_tuples(sealed.values, sealed.roots, sealed.edges, **head, numbers=box.numbers)
    except Exception as error:  # whatever the values' own methods raise
        for values in () if isinstance(sealed.values, pa.RecordBatch) else sealed.values:
            for field, value in zip(box.stream.fields, values, strict=True):
                try:
                    pickling.dumps(value)
                except Exception as reason:
                    raise TupleError(
                        f'"{component}" (task {task}) emitted a value for field "{field}" of stream '
                        f'"{box.stream.stream}" that can\'t be pickled: {reason} (given {value!r:.100})'
                    ) from error
        raise


def _metrics(component: str, task: int, execution: Execution) -> TaskMetrics:
    return TaskMetrics(
        component,
        task,
        execution.executed,
        execution.acked,
        execution.failed,
        dict(execution.emitted),
        execution.seconds,
    )


def execute_ackers(wiring: Wiring, bodies: Iterable[bytes], state: StateAccess) -> Iterator[Row]:
    """Yields what the acker stage makes of the chunks of one key: outcomes, and all that is meant for the sink."""
    conf = wiring.plan.conf
    timeout_ms = 1000 * int(conf["topology.message.timeout.secs"])  # type: ignore[call-overload]
    timeouts = bool(conf["topology.enable.message.timeouts"])
    parts: list[acker.Contribution] = []
    clock = task = None
    for body in bodies:
        header = chunk.read_header(body)
        if header.kind == Kind.ACKS:
            roots, xors, marks, receipts = chunk.read_acks(header, body)
            parts.append(acker.Contribution(roots, xors, marks, header.sequence // timeout_ms, receipts))
            task = header.target
        elif header.kind == Kind.CLOCK:
            clock, task = header.sequence, header.target
        else:
            yield wiring.system_key, body
    if task is None:
        return
    assert clock is not None, f"acker task {task} got no clock, which every micro-batch brings"
    pending = acker.AckerState.load(state.get("pending") or b"", timeout_ms, timeouts)
    had = len(pending)
    outcome = pending.apply(parts, clock // timeout_ms)
    if pending.lost:
        text = (
            f"a micro-batch lost tuples between two stages, or executed some twice: the {len(outcome.roots)} messages "
            "that were open have failed. A stage was computed anew and a bolt emitted other tuples than before"
        )
        yield wiring.system_key, chunk.encode_report([Failure(ACKER_COMPONENT, task, text, "", False)], source=task)
    if len(pending):
        state.put("pending", pending.dump(clock))
    elif had:
        state.remove("pending")
    if len(outcome.roots):
        yield wiring.system_key, chunk.encode_outcome(outcome.roots, outcome.codes, source=task)
