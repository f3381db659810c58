"""What a Python worker of Spark does around an operator: which batch it is in, what comes in, and how rows go out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

import pyarrow as pa
from pyspark import TaskContext

from storm_on_spark.runtime.batches.input import chunks_between
from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.runtime.bolts.operator import execute_operator
from storm_on_spark.runtime.bolts.saved import StateAccess
from storm_on_spark.runtime.bolts.stage import BatchInfo, Row
from storm_on_spark.runtime.bolts.worker import Worker, worker_for
from storm_on_spark.runtime.codec.chunk import Chunk, is_for_sink, with_header
from storm_on_spark.runtime.live.client import LiveClient
from storm_on_spark.runtime.live.conduct import micro_batch
from storm_on_spark.runtime.run.settings import ReportSettings
from storm_on_spark.runtime.spouts.native.rows import native_chunks
from storm_on_spark.runtime.storage import Folder
from storm_on_spark.spark.query.reading.positions import SourceSettings, is_offsets, offsets_of

ARROW_SCHEMA = pa.schema([("key", pa.int32()), ("body", pa.binary())])

_BATCH_ROWS = 256
_BATCH_BYTES = 32 << 20


def read_source(settings: SourceSettings, start: Offset, end: Offset, partition: int) -> Iterator[pa.RecordBatch]:
    """Yields the rows of a first operator without state, for one partition of the micro-batch between two offsets."""
    worker = worker_for(settings.start_id, settings.spec)
    chunks = chunks_between(worker.wiring, _folder(worker), start, end, partition)
    yield from to_batches(execute_operator(worker, worker.spec.plan.operators[0], chunks, batch_info()))


def chunks_of(worker: Worker, rows: Iterable[bytes]) -> Iterator[Chunk]:
    """Yields the chunks of a micro-batch: those for which our source's one row stands, and those of native spouts."""
    for row in rows:
        if is_offsets(row):
            yield from chunks_between(worker.wiring, _folder(worker), *offsets_of(row), partition=0)
        else:
            yield with_header(row)


def read_native(
    settings: SourceSettings, component: str, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yields the rows of the first operator for a partition of a native spout's rows.

    An operator without state is executed here, as our source does for its part; one with state gets the chunks.
    """
    worker, info = worker_for(settings.start_id, settings.spec), batch_info()
    operator, keys = worker.spec.plan.operators[0], worker.spec.plan.keys
    chunks = native_chunks(worker, component, batches, info.batch)
    if not operator.state:
        yield from to_batches(execute_operator(worker, operator, chunks, info))
        return
    system = worker.wiring.system_key
    yield from to_batches((system if is_for_sink(header) else keys[header.target], body) for header, body in chunks)


def execute_beside(
    run: tuple[str, bytes],
    worker: Worker,
    rows: Iterable[bytes],
    execute: Callable[[Iterable[bytes]], Iterable[Row]],
    state_of: Callable[[int], StateAccess],
    values: Callable[[], Mapping[tuple[int, str, int], bytes]],
) -> Iterator[Row]:
    """Yields the output of an operator beside a live process: what that has executed, or what `execute` does.

    Args:
        run: start id and specification.
        worker: this process's instances.
        rows: the one that stands for the micro-batch, and any that Spark has read itself.
        execute: executes the operator for that row.
        state_of: gives the state of a task.
        values: returns the state of all tasks.
    """
    client = LiveClient(run[0], worker.wiring.settings(ReportSettings).stall_secs, worker.spec.address)
    rows = list(rows)
    bounds = next((offsets_of(row) for row in rows if is_offsets(row)), None)
    # Spark has read rows itself only in a micro-batch that it planned before this run.
    yield from micro_batch(
        client,
        worker,
        run,
        state_of,
        values,
        bounds,
        partial(execute, rows),
        only_log=len(rows) == (bounds is not None),
    )


def _folder(worker: Worker) -> Folder:
    assert worker.folder is not None, "a run has a checkpoint"
    return worker.folder


def batch_info() -> BatchInfo:
    """Returns which batch and partition the current Spark task executes."""
    context = TaskContext.get()
    assert context is not None
    batch = context.getLocalProperty("streaming.sql.batchId")
    assert batch is not None, "Spark set no batch id"
    return BatchInfo(int(batch), context.partitionId())


def to_batches(rows: Iterator[Row]) -> Iterator[pa.RecordBatch]:
    """Yields rows as record batches of a bounded size."""
    keys: list[int] = []
    bodies: list[bytes] = []
    size = 0
    for key, body in rows:
        keys.append(key)
        bodies.append(body)
        size += len(body)
        if len(keys) >= _BATCH_ROWS or size >= _BATCH_BYTES:
            yield _record_batch(keys, bodies)
            keys, bodies, size = [], [], 0
    if keys:
        yield _record_batch(keys, bodies)


def _record_batch(keys: list[int], bodies: list[bytes]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(keys, pa.int32()), pa.array(bodies, pa.binary())], schema=ARROW_SCHEMA)
