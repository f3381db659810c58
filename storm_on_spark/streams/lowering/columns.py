"""The bolt that executes operations on columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from storm_on_spark.api.component import BatchBolt
from storm_on_spark.api.errors import FailedException, OperationError
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.text.traces import summary
from storm_on_spark.streams.graph.model import Operation, Port
from storm_on_spark.streams.lowering.wiring import Program
from storm_on_spark.streams.operations.columns import ColumnProcessor

if TYPE_CHECKING:
    import numpy
    import pyarrow

    from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
    from storm_on_spark.api.task.collector import BatchOutputCollector


class ColumnOperationsBolt(BatchBolt):
    """Executes operations on columns, one after the other, on whole record batches."""

    stateless = True

    def __init__(self, program: Program, title: str) -> None:
        self.program = program
        self.title = f"{title}, on columns"

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares a stream for each output that other bolts get."""
        timed = self.program.timestamp_field
        for operation in self.program.operations:
            if (stream := self.program.outputs.get(Port(operation.id))) is not None:
                fields = _processor(operation).fields
                declarer.declare_stream(
                    stream, Fields(fields if timed is None or timed in fields else [*fields, timed])
                )

    def execute_batch(self, batch: pyarrow.RecordBatch, collector: BatchOutputCollector) -> None:
        """Executes the operations on a batch."""
        import numpy as np

        done: dict[int, tuple[pyarrow.RecordBatch, numpy.ndarray[Any, Any]]] = {}
        for operation in self.program.operations:
            given, rows = done.get(operation.links[0].port.node) or (batch, np.arange(batch.num_rows))
            try:
                made, parents = _processor(operation).apply(given)
            except FailedException:
                raise
            except Exception as error:
                raise OperationError(f"{operation.label}: {summary(error)}") from error
            rows = rows if parents is None else np.where(parents < 0, -1, rows[parents])
            done[operation.id] = made, rows
            if (stream := self.program.outputs.get(Port(operation.id))) is not None and made.num_rows:
                collector.emit(self._timed(made, batch, rows), parent=rows, stream=stream)

    def _timed(
        self, made: pyarrow.RecordBatch, batch: pyarrow.RecordBatch, rows: numpy.ndarray[Any, Any]
    ) -> pyarrow.RecordBatch:
        timed = self.program.timestamp_field
        if timed is None or timed in made.schema.names:
            return made
        return made.append_column(timed, batch.column(timed).take(rows))


def _processor(operation: Operation) -> ColumnProcessor:
    processor = operation.processor
    assert isinstance(processor, ColumnProcessor)
    return processor
