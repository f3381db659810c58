"""Rows that Spark read as chunks: what a spout's cut is for tuples from Python."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa

from storm_on_spark.api.errors import ComponentError, StormError
from storm_on_spark.api.streams.stream import DEFAULT_STREAM
from storm_on_spark.runtime.codec import chunk
from storm_on_spark.runtime.codec.chunk import Chunk
from storm_on_spark.runtime.emit.encode import encode_sealed
from storm_on_spark.runtime.emit.output import TaskOutput
from storm_on_spark.runtime.reports.report import USER_ERRORS, Failure, TaskMetrics, sent_amounts
from storm_on_spark.runtime.reports.shown_values import values_text
from storm_on_spark.runtime.run.run import Run
from storm_on_spark.runtime.tracking import acker
from storm_on_spark.runtime.tracking.fold import split_by_acker
from storm_on_spark.runtime.tracking.ids import (
    MOST_NATIVE_PARTITIONS,
    MOST_NATIVE_ROWS,
    EdgeIds,
    U64Array,
    native_base,
)
from storm_on_spark.runtime.tracking.lineage import UNANCHORED, marked

_readers: WeakKeyDictionary[Run, dict[str, NativeRows]] = WeakKeyDictionary()
#: What is not in use of it.

_OPEN = acker.INIT | acker.UNTIMED


class NativeRows:
    """A native spout where Spark reads its rows, in one process.

    Args:
        run: of this process.
        component: the spout's id.
    """

    def __init__(self, run: Run, component: str) -> None:
        plan = run.spec.plan
        self._component = component
        self._task = plan.components[component].tasks[0]
        self._storm_id = run.spec.storm_id
        self._ackers = plan.acker_tasks
        self._spout = run.spec.instance(component)
        self._output = TaskOutput(run.wiring, run.context(self._task))

    def chunks(self, batches: Iterable[pa.RecordBatch], batch: int) -> Iterator[Chunk]:
        """Yields the chunks of a partition of a micro-batch: tuples, and for the ackers their roots and the rows.

        Args:
            batches: the rows, as Spark gives them, with the column `PARTITION` as the last.
            batch: Spark's number of the micro-batch.

        Raises:
            ComponentError: there are more rows or partitions than messages can be numbered for.
            TupleError: the spout made a tuple that doesn't fit its stream.
        """
        count, sequence, ids = 0, 0, None
        for rows in batches:
            if not rows.num_rows:
                continue
            partition = rows.column(rows.num_columns - 1)[0].as_py()
            if ids is None:
                self._output.begin(batch << 10 | partition)
                ids = EdgeIds(self._storm_id, "native", batch, partition, self._task)
                sequence = partition << 40
            self._check(partition, count + rows.num_rows)
            first = native_base(self._task, batch, partition) + count
            rows = rows.select(rows.schema.names[:-1])
            for each in self._of(rows, first, ids, sequence):
                sequence += 1
                yield each
            count += rows.num_rows
            if (position := self._spout.position(rows)) is not None:
                yield chunk.with_header(chunk.encode_position(position, source=self._task))

    def _check(self, partition: int, rows: int) -> None:
        if partition >= MOST_NATIVE_PARTITIONS or rows > MOST_NATIVE_ROWS:
            raise ComponentError(
                self._component,
                self._task,
                "reading",
                f"a micro-batch may have {MOST_NATIVE_PARTITIONS} partitions of {MOST_NATIVE_ROWS} rows, but partition "
                f"{partition} has at least {rows}; bound what one reads, say by maxOffsetsPerTrigger",
            )

    def _of(self, rows: pa.RecordBatch, first: int, ids: EdgeIds, sequence: int) -> Iterator[Chunk]:
        roots = np.arange(first, first + rows.num_rows + 1, dtype=np.uint64)
        roots[-1] = 0
        tracked = bool(self._ackers) and self._spout.tracked
        marks = self._emit(rows, tracked)
        sent = self._output.sent()
        receipts = 0
        for number, sealed in enumerate(self._output.seal(lambda: roots, ids)):
            made, receipt = encode_sealed(sealed, self._component, self._task, sequence + number)
            receipts ^= receipt
            yield made
        if tracked:
            yield from map(chunk.with_header, self._tracked(rows, roots[:-1], marks, receipts))
        emitted, transferred = (sum(column) for column in zip(*sent.values(), strict=True)) if sent else (0, 0)
        if emitted:
            amounts = sent_amounts(sent)
            counts = TaskMetrics(self._component, self._task, 0, 0, 0, emitted, transferred, 0.0, (), amounts)
            yield chunk.with_header(chunk.encode_report([counts], source=0))

    def _emit(self, rows: pa.RecordBatch, tracked: bool) -> Any:
        """Emits the tuples of rows; returns for each row the marks of its root, 0 for one that has no tuple."""
        columns = self._spout.columns(rows)
        if columns is not None:
            anchors = np.arange(rows.num_rows) if tracked else np.full(rows.num_rows, UNANCHORED)
            self._output.emit_batch(DEFAULT_STREAM, columns, anchors)
            return np.full(rows.num_rows, _OPEN, np.uint8)
        marks = np.zeros(rows.num_rows, np.uint8)
        emits, tuple_of = self._output.emits, self._spout.tuple_of
        for at, row in enumerate(rows.to_pylist()):
            try:
                values = tuple_of(row)
            except USER_ERRORS as error:
                if not tracked:
                    why = f"no tuple can be made of a row: {type(error).__name__}: {error}"
                    failure = ComponentError(self._component, self._task, "tuple_of", why)
                    failure.input = values_text(row.values(), row)
                    raise failure from error
                # Its spout tries again, and says why it gave up.
                marks[at] = _OPEN | acker.FAIL
                continue
            if values is not None:
                emits[getattr(values, "stream", DEFAULT_STREAM)](values, at if tracked else UNANCHORED)
                marks[at] = _OPEN
        return marks

    def _tracked(self, rows: pa.RecordBatch, roots: U64Array, marks: Any, receipts: int) -> Iterator[bytes]:
        """Yields what the ackers get: the roots of all tuples, and the rows that these came from."""
        open_roots = marks != 0
        if not open_roots.all():
            rows, roots, marks = rows.filter(pa.array(open_roots)), roots[open_roots], marks[open_roots]
        # A tree without tuples is complete, unless its XOR says that something is to come.
        xors = ((marks & acker.FAIL) != 0).astype(np.uint64)
        folded = marked(roots, acker.INIT)._replace(xors=xors, marks=marks)
        for task, part in split_by_acker(self._ackers, folded):
            yield chunk.encode_acks(*part, target=task, source=self._task, receipts=receipts)
            if len(part.roots):
                whole = len(part.roots) == len(roots)
                own = rows if whole else rows.filter(pa.array(np.isin(roots, part.roots, assume_unique=True)))
                yield chunk.encode_native_rows(part.roots, own, target=task)


def native_chunks(run: Run, component: str, batches: Iterable[pa.RecordBatch], batch: int) -> Iterator[Chunk]:
    """Yields the chunks of rows that Spark read; arguments as for `NativeRows` and its `chunks`.

    Rows that can't become chunks end the topology: the sink reads the error before the micro-batch can be committed.
    """
    readers = _readers.setdefault(run, {})
    try:
        # After an exception its output is half done: then it isn't used again.
        reader = readers.pop(component, None) or NativeRows(run, component)
        yield from reader.chunks(batches, batch)
    except StormError as error:
        yield chunk.with_header(chunk.encode_report([Failure.of(error)], source=0))
    else:
        readers[component] = reader
