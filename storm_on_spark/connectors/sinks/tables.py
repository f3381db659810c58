"""Tuples as tables: a bolt whose micro-batches the driver writes, each as one table of Arrow."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, final

from storm_on_spark.api.errors import ConfigError, SetupError, TupleError
from storm_on_spark.api.sink import SinkBolt, SinkContext
from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
from storm_on_spark.api.task.collector import OutputCollector
from storm_on_spark.api.task.context import TopologyContext
from storm_on_spark.api.tuple import Tuple
from storm_on_spark.connectors.sinks.columns import Columns, declared_columns

if TYPE_CHECKING:
    import pyarrow as pa

_NUMBER = "__storm_number"
_MOST_REPORTED = 20
"""Tuples of one micro-batch that don't fit and are reported one by one."""
_MISFITS = (TypeError, ValueError, OverflowError, NotImplementedError)
"""What pyarrow raises for a value that does not fit; its own errors are subclasses."""


class TableBolt(SinkBolt):
    """Hands the tuples of each micro-batch, of all tasks together, to the driver as a table.

    Subclasses say in `write_table` where it goes. A tuple is acked when that is done and the micro-batch is committed.
    A tuple that lacks a column, or has a value that does not fit in it, fails and is reported; the others are written.
    A micro-batch's rows pass through the driver's memory. Tick tuples are not written.

    Args:
        columns: a type of Spark SQL for each field that is written; every tuple must have these fields. None for the
            fields and types that the streams declare which the bolt subscribes to.

    Raises:
        ConfigError: the columns make no sense.
    """

    columns: Columns
    """Known when the bolt is prepared, and in the driver when its sink is opened."""

    def __init__(self, columns: Mapping[str, str] | None) -> None:
        if columns is not None:
            self.columns = Columns(columns)
        self._declared = columns is None
        self._rows: list[tuple[Tuple, tuple[Any, ...]]] = []
        #: What is to be written of tuples before those of `_rows`.
        self._closed: list[pa.Table] = []
        self._written = b""

    def open_sink(self, context: SinkContext) -> None:
        """Looks for the types of columns that were not given.

        Raises:
            SetupError: a stream that the bolt subscribes to does not declare them.
        """
        if self._declared:
            try:
                self.columns = declared_columns(context.inputs)
            except ConfigError as error:
                raise SetupError(str(error)) from error

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Notes the collector."""
        if self._declared:
            self.columns = declared_columns(context.this_input_fields().values())
        self._collector = collector
        self._name = f"{context.this_component_id} (task {context.this_task_id})"

    def execute(self, tup: Tuple) -> None:
        """Takes a tuple for the table of this micro-batch."""
        if tup.is_tick:
            self._collector.ack(tup)
            return
        try:
            row = tuple([tup[name] for name in self.columns.names])
        except TupleError as error:
            self._collector.report_error(error)
            self._collector.fail(tup)
        else:
            self._rows.append((tup, row))

    @final
    def take_batch(self, batch: pa.RecordBatch) -> bool:
        """Takes the columns as they are, where their types are those of the table."""
        # A subclass may want to see each tuple.
        table = self.columns.of_batch(batch) if type(self).execute is TableBolt.execute else None
        if table is None:
            return False
        if table.num_rows:
            self._close_rows()
            self._closed.append(table)
        return True

    @final
    def finish_micro_batch(self) -> None:
        """Makes a table of the rows, and acks or fails their tuples."""
        import pyarrow as pa

        self._close_rows()
        tables, self._closed = self._closed, []
        if tables:
            self._written = to_bytes(pa.concat_tables(tables))

    def _close_rows(self) -> None:
        rows, self._rows = self._rows, []
        if not rows:
            return
        try:
            table = self.columns.table([row for _, row in rows])
        except _MISFITS:
            rows = self._fitting(rows)
            table = self.columns.table([row for _, row in rows])
        for tup, _ in rows:
            self._collector.ack(tup)
        if rows:
            self._closed.append(table)

    def take_written(self) -> bytes:
        """Returns the table as an Arrow stream."""
        written, self._written = self._written, b""
        return written

    def write(self, written: Sequence[bytes], context: SinkContext) -> None:
        """Writes all tasks' tables as one."""
        import pyarrow as pa

        self.write_table(pa.concat_tables([from_bytes(part) for part in written]), context)

    @abstractmethod
    def write_table(self, table: pa.Table, context: SinkContext) -> None:
        """Writes a micro-batch, in the driver; with the same number again after a crash before the commit.

        What it raises ends the topology.

        Args:
            table: one row for each tuple, those of each task in the order of its tuples.
            context: the session, and which micro-batch.
        """

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares nothing: the bolt emits no tuples."""

    def _fitting(self, rows: list[tuple[Tuple, tuple[Any, ...]]]) -> list[tuple[Tuple, tuple[Any, ...]]]:
        """Returns the rows that fit; the tuples of the others fail."""
        found, misfits = [], 0
        for tup, row in rows:
            try:
                self.columns.table([row])
            except _MISFITS as error:
                misfits += 1
                if misfits <= _MOST_REPORTED:
                    self._collector.report_error(
                        TupleError(f"{self._name}: a tuple doesn't fit in its columns: {error} (given {row!r:.200})")
                    )
                self._collector.fail(tup)
            else:
                found.append((tup, row))
        return found


def to_bytes(table: pa.Table) -> bytes:
    """Returns a table as an Arrow stream."""
    import pyarrow as pa

    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    found: bytes = out.getvalue().to_pybytes()
    return found


def from_bytes(body: bytes) -> pa.Table:
    """Returns the table of an Arrow stream."""
    import pyarrow as pa

    with pa.ipc.open_stream(pa.py_buffer(body)) as reader:
        return reader.read_all()


def last_by(table: pa.Table, keys: Sequence[str], *, nulls_differ: bool = False) -> pa.Table:
    """Returns the last row of each key, in the order of the rows; all rows where there are no keys."""
    return rows_at(table, last_numbers(table, keys, nulls_differ=nulls_differ)) if keys else table


def rows_at(table: pa.Table, numbers: Sequence[int]) -> pa.Table:
    """Returns the rows with these numbers."""
    import pyarrow as pa

    return table.take(pa.array(numbers, pa.int64()))


def last_among(
    table: pa.Table, keys: Sequence[str], numbers: Sequence[int], *, nulls_differ: bool = False
) -> list[int]:
    """Returns the numbers of the last row of each key, in order, among the rows with some numbers."""
    if not keys:
        return list(numbers)
    return [numbers[at] for at in last_numbers(rows_at(table, numbers), keys, nulls_differ=nulls_differ)]


def last_numbers(table: pa.Table, keys: Sequence[str], *, nulls_differ: bool = False) -> list[int]:
    """Returns the number of the last row of each key, in order; of all rows where there are no keys.

    Args:
        table: the rows.
        keys: columns.
        nulls_differ: whether a null is like no other, as in SQL.
    """
    import pyarrow as pa

    if not keys:
        return list(range(table.num_rows))
    numbered = table.append_column(_NUMBER, pa.array(range(table.num_rows), pa.int64()))
    incomplete: set[int] = set()
    if nulls_differ and any(table[key].null_count for key in keys):
        complete = numbered.select([*keys, _NUMBER]).drop_null()
        incomplete = set(range(table.num_rows)).difference(complete[_NUMBER].to_pylist())
        numbered = complete
    last = numbered.group_by(list(keys)).aggregate([(_NUMBER, "max")])
    return sorted(incomplete.union(last[f"{_NUMBER}_max"].to_pylist()))
