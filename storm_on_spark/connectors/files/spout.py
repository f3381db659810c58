"""Files that appear in a folder, as a spout: Spark finds and reads them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from storm_on_spark.api.errors import ConfigError
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.streams.stream import DEFAULT_STREAM
from storm_on_spark.connectors.sources.retry import RetryBackoff
from storm_on_spark.connectors.sources.spark_source import SparkSourceSpout
from storm_on_spark.runtime.tracking.ids import MOST_NATIVE_ROWS

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

SpoutFormat = Literal["text", "json", "csv", "parquet"]

_OURS: Final[Mapping[str, str]] = {
    "maxfilespertrigger": "it is max_files_per_batch",
    "wholetext": "a tuple is a line",
    "cleansource": "a row that failed would be gone before it is acked",
    "sourcearchivedir": "a row that failed would be gone before it is acked",
}
_FILE, _START, _PLACE = "__file", "__start", "__place"


class FileSpout(SparkSourceSpout):
    """Emits the rows of files in a folder: of those that are there when the topology starts first, and of new ones.

    Spark lists the folder in each micro-batch and reads each file once. A file must appear complete, by a rename, and
    never change. Rows come in the order of files' times, and of several partitions at once.

    Its message ids are (file, where Spark's part of it begins in bytes, number): big files are read in parts, and the
    number orders the rows of one part.

    Args:
        folder: a path or URL that Spark can read; may have wildcards.
        format: `text`, a tuple of one field for each line; `json`, an object on each line; `csv`; or `parquet`.
        fields: the columns as fields, with Spark's types: `word STRING, count BIGINT`. Of `text` it is one name without
            a type, `line` by default.
        options: of Spark's reader, such as `header` of CSV files.
        max_files_per_batch: how many new files a micro-batch reads at most.
        retry: when a failed row is emitted again, and when it is given up.
        dead_letter_stream: where rows go that are given up; None to drop them with a warning in the log.

    Raises:
        ConfigError: an argument makes no sense.

    Example:
        >>> FileSpout("/data/words", "csv", "word STRING, count BIGINT", {"header": True}).tuple_streams()
        {'default': Fields('word', 'count')}
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        format: SpoutFormat = "text",  # noqa: A002 # Spark's word
        fields: str | None = None,
        options: Mapping[str, str | int | float | bool] | None = None,
        max_files_per_batch: int = 100,
        retry: RetryBackoff = RetryBackoff(),  # noqa: B008 # it is immutable
        dead_letter_stream: str | None = None,
    ) -> None:
        super().__init__(retry, dead_letter_stream)
        self._folder = os.fspath(folder)
        if not self._folder:
            raise ConfigError(f"a folder is a path or a URL (given {folder!r:.100})", key="folder")
        if format not in get_args(SpoutFormat):
            raise ConfigError(
                f"a format is one of {', '.join(get_args(SpoutFormat))} (given {format!r:.100})", key="format"
            )
        most: object = max_files_per_batch
        if not isinstance(most, int) or isinstance(most, bool) or most < 1:
            raise ConfigError(
                f"max_files_per_batch must be a whole number of 1 or more (given {most!r:.100})",
                key="max_files_per_batch",
            )
        self._format, self._max_files = format, max_files_per_batch
        self._schema = fields
        self._names = _names("line" if fields is None and format == "text" else fields, format)
        self._options = dict(options or {})
        for name in self._options:
            if (reason := _OURS.get(name.lower())) is not None:
                raise ConfigError(f"{name} can't be set here: {reason}", key=name)

    def read(self, spark: SparkSession) -> DataFrame:
        """Returns Spark's source, with what names its rows."""
        from pyspark.sql import functions as sf

        reader = spark.readStream.format(self._format).options(**self._options)
        if self._format != "text":
            assert self._schema is not None, "checked by the constructor"
            reader = reader.schema(self._schema)
        rows = reader.option("maxFilesPerTrigger", self._max_files).load(self._folder)
        metadata = [
            sf.col("_metadata.file_path").alias(_FILE),
            sf.col("_metadata.file_block_start").alias(_START),
        ]
        return rows.select(*(rows[f"`{name.replace('`', '``')}`"] for name in rows.columns), *metadata)

    def tuple_streams(self) -> Mapping[str, Fields]:
        """Returns the default stream."""
        return {DEFAULT_STREAM: Fields(*self._names)}

    def columns(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Returns the rows without what names them."""
        import pyarrow as pa

        return pa.RecordBatch.from_arrays(rows.columns[: len(self._names)], names=list(self._names))

    def keep(self, roots: Sequence[int], rows: pa.RecordBatch) -> None:
        """Keeps rows, each with its place among those that Spark read with it, which the root says."""
        super().keep(roots, rows)
        for root in roots:
            self._rows.open[root].row[_PLACE] = root % MOST_NATIVE_ROWS

    def message_id(self, row: Mapping[str, Any]) -> tuple[str, int, int]:
        """Returns file, start of Spark's part of it, and number."""
        return row[_FILE], row[_START], row[_PLACE]


def _names(fields: str | None, format: SpoutFormat) -> tuple[str, ...]:  # noqa: A002 # Spark's word
    """Returns the names of fields as `FileSpout` is given them.

    Raises:
        ConfigError: they are not names, or have no types.

    Example:
        >>> _names("word STRING, price DECIMAL(10, 2)", "csv")
        ('word', 'price')
    """
    names: list[str] = []
    depth, part = 0, ""
    for char in f"{fields or ''},":
        depth += (char in "(<") - (char in ")>")
        if char != "," or depth:
            part += char
            continue
        name, *kind = part.strip().split(None, 1)[:2] if part.strip() else [""]
        part = ""
        if not name or bool(kind) == (format == "text"):
            wanted = "one name without a type" if format == "text" else "names with Spark's types: a STRING, b BIGINT"
            raise ConfigError(f"the fields of {format} are {wanted} (given {fields!r:.200})", key="fields")
        names.append(name.strip("`").rstrip(":"))
    if depth or (format == "text" and len(names) > 1):
        raise ConfigError(f"the fields of {format} can't be read (given {fields!r:.200})", key="fields")
    return tuple(names)
