"""The bolts that execute operations on columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from storm_on_spark.api.component import BatchBolt
from storm_on_spark.api.errors import FailedException, OperationError
from storm_on_spark.api.state import KeyValueState, StatefulBatchBolt
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.text.traces import summary
from storm_on_spark.streams.graph.model import Operation, Port, Window
from storm_on_spark.streams.lowering.bolts import NoAttributes, set_window
from storm_on_spark.streams.lowering.wiring import Program
from storm_on_spark.streams.operations.column_aggregates import ColumnAggregate
from storm_on_spark.streams.operations.columns import ColumnProcessor
from storm_on_spark.streams.operations.running import RunningAggregate
from storm_on_spark.windowing.columnar.bolts import BatchWindowedBolt

if TYPE_CHECKING:
    import numpy
    import pyarrow

    from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
    from storm_on_spark.api.task.collector import BatchOutputCollector
    from storm_on_spark.windowing.columnar.window import BatchWindow

    Rows: TypeAlias = "numpy.ndarray[Any, Any]"


class _ColumnsBolt:
    """The common base of the bolts."""

    program: Program

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares a stream for each output that other bolts get."""
        timed = self.program.timestamp_field
        for operation in self.program.operations:
            if (stream := self.program.outputs.get(Port(operation.id))) is not None:
                fields = _processor(operation).fields
                declarer.declare_stream(
                    stream, Fields(fields if timed is None or timed in fields else [*fields, timed])
                )

    def _execute(
        self,
        operations: Iterable[Operation],
        given: tuple[pyarrow.RecordBatch, Rows],
        done: dict[int, tuple[pyarrow.RecordBatch, Rows]],
        emit: Callable[[pyarrow.RecordBatch, Rows, str], None],
    ) -> None:
        """Executes operations, one after the other.

        Args:
            operations: those still to be executed.
            given: the input, and the row of the bolt's input that each of its rows comes from.
            done: results of earlier operations.
            emit: called with results, the rows that they come from, and the stream.
        """
        import numpy as np

        for operation in operations:
            batch, rows = done.get(operation.links[0].port.node) or given
            try:
                made, parents = self._apply(operation, batch)
            except FailedException:
                raise
            except Exception as error:
                raise OperationError(f"{operation.label}: {summary(error)}") from error
            rows = rows if parents is None else np.where(parents < 0, -1, rows[parents])
            done[operation.id] = made, rows
            self._emit(operation, made, rows, emit)

    def _apply(self, operation: Operation, batch: pyarrow.RecordBatch) -> tuple[pyarrow.RecordBatch, Rows | None]:
        return _processor(operation).apply(batch)

    def _emit(
        self,
        operation: Operation,
        made: pyarrow.RecordBatch,
        rows: Rows,
        emit: Callable[[pyarrow.RecordBatch, Rows, str], None],
    ) -> None:
        if (stream := self.program.outputs.get(Port(operation.id))) is not None and made.num_rows:
            emit(made, rows, stream)


class _BatchByBatch(_ColumnsBolt):
    """What those without windows have in common."""

    def __init__(self, program: Program, title: str) -> None:
        self.program = program
        self.title = f"{title}, on columns"

    def execute_batch(self, batch: pyarrow.RecordBatch, collector: BatchOutputCollector) -> None:
        """Executes the operations on a batch."""
        import numpy as np

        def emit(made: pyarrow.RecordBatch, rows: Rows, stream: str) -> None:
            collector.emit(self._timed(made, batch, rows), parent=rows, stream=stream)

        self._execute(self.program.operations, (batch, np.arange(batch.num_rows)), {}, emit)

    def _timed(self, made: pyarrow.RecordBatch, batch: pyarrow.RecordBatch, rows: Rows) -> pyarrow.RecordBatch:
        timed = self.program.timestamp_field
        if timed is None or timed in made.schema.names:
            return made
        return made.append_column(timed, batch.column(timed).take(rows))


class ColumnOperationsBolt(_BatchByBatch, BatchBolt):
    """Executes operations on columns, one after the other, on whole record batches."""

    stateless = True


class StatefulColumnsBolt(_BatchByBatch, StatefulBatchBolt):
    """The same, with aggregations, which keep something from one batch to the next."""

    stateless = False

    def __init__(self, program: Program, title: str) -> None:
        super().__init__(program, title)
        self.state_layout = program.layout

    @property
    def state_holder(self) -> NoAttributes:
        """The object whose attributes are saved."""
        return NoAttributes()

    def init_state(self, state: KeyValueState) -> None:
        """Keeps the state."""
        self._stores = self.program.stores(state)

    def _apply(self, operation: Operation, batch: pyarrow.RecordBatch) -> tuple[pyarrow.RecordBatch, Rows | None]:
        if isinstance(operation.processor, RunningAggregate):
            return operation.processor.apply_to(batch, self._stores[operation.id]), None
        return super()._apply(operation, batch)


class WindowedColumnsBolt(_ColumnsBolt, BatchWindowedBolt):
    """Aggregates columns in windows, and executes column operations on the results."""

    def __init__(self, program: Program, title: str, window: Window) -> None:
        self.program = program
        self.title = f"{title}, on columns"
        set_window(self, window)
        aggregate = _processor(program.operations[0])
        assert isinstance(aggregate, ColumnAggregate), "a window over columns begins with an aggregation"
        self.with_aggregate("key" if aggregate.keyed else (), {"value": aggregate.aggregate})

    def execute_window(self, window: BatchWindow, collector: BatchOutputCollector) -> None:
        """Executes the operations on the results of a window."""
        import numpy as np
        import pyarrow as pa

        def emit(made: pyarrow.RecordBatch, rows: Rows, stream: str) -> None:
            timed = self.program.timestamp_field
            if timed is not None and timed not in made.schema.names:
                made = made.append_column(timed, pa.array([window.end] * made.num_rows, pa.int64()))
            collector.emit(made, stream=stream)

        first, *others = self.program.operations
        for batch in window.table.combine_chunks().to_batches():
            given = batch, np.arange(batch.num_rows)
            self._emit(first, *given, emit)
            self._execute(others, given, {first.id: given}, emit)


def _processor(operation: Operation) -> ColumnProcessor:
    processor = operation.processor
    assert isinstance(processor, ColumnProcessor)
    return processor
