"""The stages after the source, as Spark runs them: stateless ones in `mapInArrow`, the rest in `transformWithState`.

Before the first micro-batch, Spark starts a process for each stateful stage that asks for its state variables and does
no more. So what only workers need, numpy and pyarrow above all, is imported when they execute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

if TYPE_CHECKING:
    import pyarrow as pa

_INDEX = StructType([StructField("index", LongType())])
_VALUE = StructType([StructField("value", BinaryType())])

BOLT_STATE = ("version", "snapshot")
"""Value states of a stage with stateful bolts."""
BOLT_ENTRIES = "entries"
"""Map state of a stage with stateful bolts: the entries of key-value state by number, and from -1 down the deltas of
the snapshot, since a worker that knows most of them reads only the last. Always declared, for a checkpoint fixes what
there is."""
ACKER_STATE = ("pending",)
"""Value states of the acker stage."""


def stateless_stage(
    start_id: str, spec: bytes, index: int
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Returns the function that `mapInArrow` calls for each partition."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from storm_on_spark.runtime.stage import execute_stage
        from storm_on_spark.runtime.worker import worker_for
        from storm_on_spark.spark.stage_io import batch_info, to_batches

        worker = worker_for(start_id, spec)
        bodies = (body for batch in batches for body in batch.column(1).to_pylist())
        yield from to_batches(execute_stage(worker, worker.spec.plan.stages[index], bodies, batch_info(), None))

    return run


class StageProcessor(StatefulProcessor):
    """Executes the tasks of one stateful stage; Spark's grouping key is the key of a task.

    Args:
        start_id: the run.
        spec: its specification.
        index: the stage.
        variables: the names of its value states.
    """

    def __init__(self, start_id: str, spec: bytes, index: int, variables: tuple[str, ...]) -> None:
        self._start_id = start_id
        self._spec = spec
        self._index = index
        self._variables = variables

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declares the state variables."""
        values = {name: handle.getValueState(name, _VALUE) for name in self._variables}
        entries = None if self._variables == ACKER_STATE else handle.getMapState(BOLT_ENTRIES, _INDEX, _VALUE)
        self._state = _State(values, entries)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Executes the chunks of one key."""
        from storm_on_spark.runtime.stage import execute_ackers, execute_stage
        from storm_on_spark.runtime.worker import worker_for
        from storm_on_spark.spark.stage_io import batch_info

        worker = worker_for(self._start_id, self._spec)
        plan = worker.spec.plan
        bodies = [bytes(row[1]) for row in rows]
        if self._variables == ACKER_STATE:
            timeout_ms = 1000 * int(plan.conf["topology.message.timeout.secs"])  # type: ignore[call-overload]
            timeouts = bool(plan.conf["topology.enable.message.timeouts"])
            out = execute_ackers(worker.wiring, bodies, self._state, timeout_ms, timeouts)
        else:
            out = execute_stage(worker, plan.stages[self._index], bodies, batch_info(), self._state)
        for row_key, body in out:
            yield Row(key=row_key, body=body)

    def close(self) -> None:
        """Does nothing."""


class _State:
    """`StateAccess` over Spark's state variables; each call is a round trip to the JVM."""

    def __init__(self, variables: dict[str, Any], entries: Any) -> None:
        self._variables = variables
        self._entries = entries

    def get(self, name: str) -> bytes | None:
        value = self._variables[name].get()
        return None if value is None else bytes(value[0])

    def put(self, name: str, value: bytes) -> None:
        self._variables[name].update((value,))

    def clear(self, name: str) -> None:
        self._variables[name].clear()

    def entry(self, index: int) -> bytes | None:
        value = self._entries.getValue((index,))
        return None if value is None else bytes(value[0])

    def put_entry(self, index: int, entry: bytes) -> None:
        self._entries.updateValue((index,), (entry,))

    def remove_entry(self, index: int) -> None:
        self._entries.removeKey((index,))
