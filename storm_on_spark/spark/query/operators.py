"""Operators as Spark runs them: without state in `mapInArrow`, with state in `transformWithState`.

Before the first micro-batch, Spark starts a process for each operator with state, which asks for its state variables
and does no more. So what only workers need, numpy and pyarrow above all, is imported when they execute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType

from storm_on_spark.spark.query.reading.positions import SourceSettings

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.streaming.stateful_processor import MapState

    from storm_on_spark.spark.query.null_lists import Opened

STATE = "state"
"""The one state variable of an operator with state, a map. Each further one would cost two encoders in every task."""
_KEY = StructType(
    [StructField("task", IntegerType()), StructField("name", StringType()), StructField("index", LongType())]
)
_VALUE = StructType([StructField("value", BinaryType())])


def stateless_operator(
    start_id: str, spec: bytes, index: int
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Returns the function that `mapInArrow` calls for each partition."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from storm_on_spark.runtime.bolts.operator import execute_operator
        from storm_on_spark.runtime.bolts.worker import worker_for
        from storm_on_spark.runtime.codec.chunk import with_header
        from storm_on_spark.spark.query.operator_io import batch_info, to_batches

        worker = worker_for(start_id, spec)
        chunks = (with_header(body) for batch in batches for body in batch.column(1).to_pylist())
        yield from to_batches(execute_operator(worker, worker.spec.plan.operators[index], chunks, batch_info()))

    return run


def native_source(
    settings: SourceSettings, component: str, layout: Opened | None
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Returns the function that `mapInArrow` calls for each partition of a native spout's rows.

    Args:
        settings: of the source.
        component: the spout.
        layout: how `without_nulls` has sent the rows; None where they are as they were.
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from storm_on_spark.spark.query.null_lists import restored
        from storm_on_spark.spark.query.operator_io import read_native

        rows = batches if layout is None else restored(batches, layout)
        yield from read_native(settings, component, rows)

    return run


class OperatorProcessor(StatefulProcessor):
    """Executes an operator with state; Spark's grouping key is the key of tasks.

    Args:
        start_id: the run.
        spec: its specification.
        index: the operator's place in the plan.
    """

    def __init__(self, start_id: str, spec: bytes, index: int) -> None:
        self._start_id = start_id
        self._spec = spec
        self._index = index

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declares the state."""
        self._state = handle.getMapState(STATE, _KEY, _VALUE)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Executes the chunks of one key."""
        from storm_on_spark.runtime.bolts.operator import execute_operator
        from storm_on_spark.runtime.bolts.worker import worker_for
        from storm_on_spark.runtime.codec.chunk import with_header
        from storm_on_spark.spark.query.operator_io import batch_info, chunks_of, execute_beside

        worker = worker_for(self._start_id, self._spec)
        operator = worker.spec.plan.operators[self._index]
        bodies: Iterator[bytes] = (bytes(row[1]) for row in rows)
        state_of = partial(_TaskState, self._state)

        def execute(bodies: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
            chunks = map(with_header, bodies) if operator.source is None else chunks_of(worker, bodies)
            return execute_operator(worker, operator, chunks, batch_info(), state_of)

        if worker.spec.realtime:
            produced = execute_beside((self._start_id, self._spec), worker, bodies, execute, state_of, self._values)
        else:
            produced = execute(bodies)
        for row_key, body in produced:
            yield Row(key=row_key, body=body)

    def _values(self) -> dict[tuple[int, str, int], bytes]:
        """Returns all of the state."""
        return {(key[0], key[1], key[2]): bytes(value[0]) for key, value in self._state.iterator()}

    def close(self) -> None:
        """Does nothing."""


class _TaskState:
    """`StateAccess` over Spark's map state; each call is a round trip to the JVM."""

    def __init__(self, state: MapState, task: int) -> None:
        self._state = state
        self._task = task

    def get(self, name: str, index: int = 0) -> bytes | None:
        value = self._state.getValue((self._task, name, index))
        return None if value is None else bytes(value[0])

    def put(self, name: str, value: bytes, index: int = 0) -> None:
        self._state.updateValue((self._task, name, index), (value,))

    def remove(self, name: str, index: int = 0) -> None:
        self._state.removeKey((self._task, name, index))
