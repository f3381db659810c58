"""A stream of a topology as a streaming DataFrame: a bolt that writes it, and what reads it, in any process."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from storm_on_spark.api.errors import ConfigError, SetupError
from storm_on_spark.api.sink import SinkContext
from storm_on_spark.api.text.wording import other_format
from storm_on_spark.connectors.sinks.columns import Columns
from storm_on_spark.connectors.sinks.folders import checked_folder
from storm_on_spark.connectors.sinks.plan_mark import mark_plan, open_marked
from storm_on_spark.connectors.sinks.tables import TableBolt

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_SCHEMA: Final = "_storm_stream.json"
"""Spark reads no file whose name begins with an underscore or a dot."""
_VERSION: Final = 1
_MOST_BYTES: Final = 1 << 20
_NO_LINKS: Final = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})
_OURS: Final = {
    "pathglobfilter": "the folder has files of streams only",
    "recursivefilelookup": "the folder has files of streams only",
    "mergeschema": "the types are declared",
}


class StreamBolt(TableBolt):
    """Makes the stream that it subscribes to a streaming DataFrame, which another query of Spark's reads.

    Each micro-batch becomes one Parquet file in a folder, named by the micro-batch's number, and complete when it is
    seen. A micro-batch that is executed again finds its file there and leaves it alone. So a reader with a checkpoint
    gets each tuple once, whatever dies. A tuple is acked when its file is on the disk and its micro-batch is
    committed.

    Args:
        folder: a local path, or one that the driver shares with those that read; made if it is missing. Several
            topologies may write to one folder if their types are the same.
        types: a type of Spark SQL for each field, see `Columns`; None for those that the stream declares.

    Raises:
        ConfigError: an argument makes no sense.

    Example:
        >>> bolt = StreamBolt("/data/counts")
        >>> some = StreamBolt("/data/words", {"word": "string"})
    """

    def __init__(self, folder: str | os.PathLike[str], types: Mapping[str, str] | None = None) -> None:
        super().__init__(types)
        self._folder = checked_folder(folder)

    def open_sink(self, context: SinkContext) -> None:
        """Makes the folder, and notes the types in it.

        Raises:
            SetupError: it can't be written to, or has a stream with other types.
            CheckpointError: the checkpoint is older than the folder.
        """
        super().open_sink(context)
        folder = Path(self._folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for half in folder.glob(f".{_stem(context)}-*.tmp"):
                half.unlink(missing_ok=True)
            note = {"version": _VERSION, "types": self.columns.types}
            _write_once(folder / _SCHEMA, json.dumps(note, indent=2).encode(), ".schema")
        except OSError as error:
            raise SetupError(f"the folder {self._folder} can't be written to: {error}") from error
        there = stream_types(self._folder)
        if list(there.items()) != list(self.columns.types.items()):
            raise SetupError(
                f"the folder {self._folder} has a stream with other types: {there}, and not {self.columns.types}"
            )
        open_marked(folder, context)

    def write_table(self, table: pa.Table, context: SinkContext) -> None:
        """Writes a micro-batch as a file, unless it is there.

        Raises:
            CheckpointError: the checkpoint is older than the folder.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        mark_plan(Path(self._folder), context)

        stem = _stem(context)
        place = Path(self._folder) / f"{stem}-{context.micro_batch:012}.parquet"
        if place.exists():
            return
        body = pa.BufferOutputStream()
        pq.write_table(table, body)
        _write_once(place, body.getvalue().to_pybytes(), f".{stem}")

    def read_stream(self, spark: SparkSession, options: Mapping[str, str | int | bool] | None = None) -> DataFrame:
        """Returns the stream; as `read_stream` with the bolt's folder."""
        return read_stream(spark, self._folder, options)


def read_stream(
    spark: SparkSession, folder: str | os.PathLike[str], options: Mapping[str, str | int | bool] | None = None
) -> DataFrame:
    """Returns what `StreamBolt` writes to a folder as a streaming DataFrame with the declared fields and types.

    Args:
        spark: of the query that reads, in any process.
        folder: the bolt's.
        options: of Spark's file source: `maxFilesPerTrigger` bounds how many micro-batches one reads, and
            `cleanSource` removes files that were read; with several readers, leave them.

    Raises:
        SetupError: there is no stream in that folder.
        ConfigError: an option makes no sense here.
    """
    path = checked_folder(folder)
    for name in options or {}:
        if (reason := _OURS.get(name.lower())) is not None:
            raise ConfigError(f"{name} can't be set here: {reason}", key=name)
    schema = ", ".join(f"`{name.replace('`', '``')}` {kind}" for name, kind in stream_types(path).items())
    return spark.readStream.schema(schema).options(**(options or {})).parquet(path)


def stream_types(folder: str | os.PathLike[str]) -> dict[str, str]:
    """Returns the fields and types of the stream in a folder.

    Raises:
        SetupError: there is none, or another release wrote it.
    """
    place = Path(folder) / _SCHEMA
    try:
        with place.open("rb") as file:
            note = json.loads(file.read(_MOST_BYTES))
        if note["version"] != _VERSION:
            version = f"{note['version']!r:.20}"
            raise SetupError(
                other_format(str(place), version, _VERSION, "use the release that wrote it, or a new folder")
            )
        return Columns(note["types"]).types
    except FileNotFoundError:
        raise SetupError(f"{folder} has no stream: a StreamBolt makes it when its topology starts") from None
    except (OSError, ValueError, KeyError, TypeError, RecursionError, ConfigError) as error:
        raise SetupError(f"{place} can't be read: {type(error).__name__}: {error!s:.200}") from error


def _stem(context: SinkContext) -> str:
    """Returns how the names of a writer's files begin: another one without the topology's checkpoint."""
    return hashlib.sha256(context.writer.encode()).hexdigest()[:24]


def _write_once(place: Path, body: bytes, prefix: str) -> None:
    """Writes a file as a whole, durably, unless there is one: of two writers the first counts."""
    half = place.parent / f"{prefix}-{uuid.uuid4().hex}.tmp"
    try:
        with half.open("xb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            try:
                os.link(half, place)
            except OSError as error:
                # Some mounted stores have no links. There a second writer could come in between.
                if error.errno not in _NO_LINKS:
                    raise
                if not place.exists():
                    half.replace(place)
    finally:
        half.unlink(missing_ok=True)
    descriptor = os.open(place.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
