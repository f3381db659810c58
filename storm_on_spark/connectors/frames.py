"""Tuples as DataFrames, in the driver."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from storm_on_spark.api.errors import ConfigError
from storm_on_spark.api.sink import SinkContext
from storm_on_spark.connectors.tables import TableBolt

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


class ForeachBatchBolt(TableBolt):
    """Calls a function in the driver with each micro-batch's DataFrame and number, as Spark's `foreachBatch` does.

    The function is called again with the same number if the driver dies before the micro-batch is committed, as Spark's
    is; what it writes with that number is written once.

    Args:
        columns: a type of Spark SQL for each field.
        function: gets the DataFrame and the micro-batch's number.

    Raises:
        ConfigError: the columns make no sense, or it is no function.

    Example:
        >>> def count(frame, micro_batch):
        ...     print(micro_batch, frame.count())
        >>> bolt = ForeachBatchBolt({"word": "string"}, count)
    """

    def __init__(self, columns: Mapping[str, str], function: Callable[[DataFrame, int], object]) -> None:
        super().__init__(columns)
        if not callable(function):
            raise ConfigError(f"a function of a DataFrame and a number (given {function!r:.100})", key="function")
        self._function = function

    def write_table(self, table: pa.Table, context: SinkContext) -> None:
        """Calls the function."""
        self._function(context.spark.createDataFrame(table), context.micro_batch)
