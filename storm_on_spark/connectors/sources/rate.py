"""Rows at a constant rate, for trials: Spark's source `rate` as a spout."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from storm_on_spark.api.errors import ConfigError
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.streams.stream import DEFAULT_STREAM
from storm_on_spark.connectors.sources.retry import RetryBackoff
from storm_on_spark.connectors.sources.spark_source import SparkSourceSpout

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


class RateSpout(SparkSourceSpout):
    """Emits numbers from 0 on, at a rate, with the time at which each was due. Spark makes them.

    Its message ids are the numbers.

    Args:
        rows_per_second: how many numbers a second.
        partitions: in how many partitions Spark makes them; its default parallelism for None.
        retry: when a failed number is emitted again, and when it is given up.
        dead_letter_stream: where numbers go that are given up; None to drop them with a warning in the log.

    Raises:
        ConfigError: an argument makes no sense.

    Example:
        >>> RateSpout(1000).tuple_streams()
        {'default': Fields('timestamp', 'value')}
    """

    def __init__(
        self,
        rows_per_second: int,
        partitions: int | None = None,
        retry: RetryBackoff = RetryBackoff(),  # noqa: B008 # it is immutable
        dead_letter_stream: str | None = None,
    ) -> None:
        super().__init__(retry, dead_letter_stream)
        given: dict[str, object] = {
            "rows_per_second": rows_per_second,
            "partitions": 1 if partitions is None else partitions,
        }
        for name, value in given.items():
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ConfigError(f"{name} must be a whole number of 1 or more (given {value!r:.100})", key=name)
        self._rows_per_second, self._partitions = rows_per_second, partitions

    def read(self, spark: SparkSession) -> DataFrame:
        """Returns Spark's source."""
        reader = spark.readStream.format("rate").option("rowsPerSecond", self._rows_per_second)
        if self._partitions is not None:
            reader = reader.option("numPartitions", self._partitions)
        return reader.load()

    def tuple_streams(self) -> Mapping[str, Fields]:
        """Returns the default stream."""
        return {DEFAULT_STREAM: Fields("timestamp", "value")}

    def columns(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Returns the rows as they are."""
        return rows

    def message_id(self, row: Mapping[str, Any]) -> int:
        """Returns the number."""
        return int(row["value"])
