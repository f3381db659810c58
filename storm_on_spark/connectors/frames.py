"""Tuples as DataFrames, in the driver."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from storm_on_spark.api.errors import ConfigError
from storm_on_spark.api.sink import SinkContext
from storm_on_spark.api.text.printable import printable
from storm_on_spark.connectors.sinks.tables import TableBolt

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


class ForeachBatchBolt(TableBolt):
    """Calls a function in the driver with each micro-batch's DataFrame and number, as Spark's `foreachBatch` does.

    The function is called again with the same number if the driver dies before the micro-batch is committed, as Spark's
    is. With an older copy of the checkpoint the same numbers come again with other tuples. So a function that keeps the
    number beside what it writes, to write each micro-batch once, should take a third argument, a `SinkContext`, keep
    its `transaction`, and ask `is_written`.

    What the function raises ends the topology, and the micro-batch is not committed. There are no dead letters as with
    `DeltaBolt`: only the function knows whether it can write a part. A function that continues without refused rows
    puts them where they belong itself, and says so by `context.report`.

    Args:
        columns: a type of Spark SQL for each field.
        function: gets the DataFrame and the micro-batch's number, and a `SinkContext` if it takes three arguments.

    Raises:
        ConfigError: the columns make no sense, or it is not a function.

    Example:
        >>> def count(frame, micro_batch):
        ...     print(micro_batch, frame.count())
        >>> bolt = ForeachBatchBolt({"word": "string"}, count)
    """

    def __init__(self, columns: Mapping[str, str], function: Callable[..., object]) -> None:
        super().__init__(columns)
        if not callable(function):
            raise ConfigError(
                f"expected a function of a DataFrame and a number (given {function!r:.100})", key="function"
            )
        self._function = function

    def write_table(self, table: pa.Table, context: SinkContext) -> None:
        """Calls the function."""
        given = (context.spark.createDataFrame(table), context.micro_batch, context)
        self._function(*given[: 3 if _takes_three(self._function) else 2])


def _takes_three(function: Callable[..., object]) -> bool:
    try:
        inspect.signature(function).bind(None, 0, None)
    except (TypeError, ValueError):  # it takes two, or its signature is unknown
        return False
    return True


class ConsoleBolt(TableBolt):
    """Prints each micro-batch in the driver, as Spark's console sink does. Control characters are shown as escapes.

    Args:
        columns: a type of Spark SQL for each field.
        rows: how many rows of a micro-batch are printed at most.

    Raises:
        ConfigError: an argument makes no sense.

    Example:
        >>> bolt = ConsoleBolt({"word": "string", "count": "long"})
    """

    def __init__(self, columns: Mapping[str, str], rows: int = 20) -> None:
        super().__init__(columns)
        self._shown = _checked_rows(rows)

    def write_table(self, table: pa.Table, context: SinkContext) -> None:
        """Prints."""
        print(f"micro-batch {context.micro_batch}: {table.num_rows} rows")  # noqa: T201 # it is what the bolt does
        import pyarrow as pa

        # Spark escapes line feeds and tabs, but not what clears a terminal.
        rows = table.slice(0, self._shown).to_pydict()
        shown = pa.table({name: _printable(values) for name, values in rows.items()}, table.schema)
        context.spark.createDataFrame(shown).show(self._shown, truncate=False)


def _printable(value: Any) -> Any:
    """Returns a value with its texts fit for a terminal."""
    if isinstance(value, str):
        return printable(value)
    return list(map(_printable, value)) if isinstance(value, list) else value


class MemoryBolt(TableBolt):
    """Keeps rows in the driver's memory, as a temporary view of the session that the topology was started on.

    The view is there when the topology starts, and has what was written since; a query of it sees whole micro-batches.

    Args:
        view: its name.
        columns: a type of Spark SQL for each field.
        rows: how many of the last rows are kept.

    Raises:
        ConfigError: an argument makes no sense.

    Example:
        >>> bolt = MemoryBolt("counts", {"word": "string", "count": "long"})
    """

    def __init__(self, view: str, columns: Mapping[str, str], rows: int = 100_000) -> None:
        super().__init__(columns)
        named: Any = view
        if not isinstance(named, str) or not re.fullmatch(r"[A-Za-z_]\w*", named, re.ASCII):
            raise ConfigError(f"a view is named by letters, digits and _ (given {view!r:.100})", key="view")
        self._view = view
        self._most = _checked_rows(rows)
        #: By writer: the session with the view, and its rows; in the driver only.
        self._kept: dict[str, tuple[SparkSession, pa.Table]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_kept": {}}

    def open_sink(self, context: SinkContext) -> None:
        """Makes the view, without rows."""
        # A micro-batch has its own session, whose views are seen nowhere else.
        self._show(context.writer, context.spark, self.columns.table([]))

    def write_table(self, table: pa.Table, context: SinkContext) -> None:
        """Adds rows to the view."""
        import pyarrow as pa

        spark, before = self._kept[context.writer]
        rows = pa.concat_tables([before, table])
        self._show(context.writer, spark, rows.slice(max(0, rows.num_rows - self._most)))

    def _show(self, writer: str, spark: SparkSession, rows: pa.Table) -> None:
        self._kept[writer] = spark, rows
        spark.createDataFrame(rows).createOrReplaceTempView(self._view)


def _checked_rows(rows: int) -> int:
    if type(rows) is not int or rows < 1:
        raise ConfigError(f"rows are a whole number of at least 1 (given {rows!r:.100})", key="rows")
    return rows
