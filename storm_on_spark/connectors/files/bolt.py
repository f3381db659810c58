"""Files: a bolt that writes tuples to a folder, each exactly once."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from storm_on_spark.api.component import BaseRichBolt
from storm_on_spark.api.errors import CheckpointError, ConfigError, SetupError
from storm_on_spark.api.sink import SinkContext
from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
from storm_on_spark.api.task.collector import OutputCollector
from storm_on_spark.api.task.context import TopologyContext
from storm_on_spark.api.tuple import Tuple
from storm_on_spark.connectors.files.formats import FileFormat, encoder, partition_folder
from storm_on_spark.connectors.sinks.folders import checked_folder
from storm_on_spark.connectors.sinks.plan_mark import mark_plan, open_marked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


class FileBolt(BaseRichBolt):
    """Writes tuples to files in a folder: one new file for each micro-batch, partition and task that has tuples.

    A tuple is acked when its file is complete and the micro-batch is committed. A micro-batch that is executed again,
    after a crash or because the driver was killed before the commit, puts its file in the same place: in a topology
    with a checkpoint, no tuple is missing from the folder, and none that was emitted once is there twice. Until then,
    the file of a micro-batch that was not committed can be seen.

    A file's name is made of the topology's id, the task and a number, so topologies and bolts may share a folder. A
    hidden file, `.ID_BOLT.plan`, says which micro-batch was planned last: a folder that has later ones than the
    checkpoint is refused, for numbers would come again with other tuples. What can't be written ends the topology, and
    its micro-batch is not committed.

    Args:
        folder: a local path, or one that all machines share where executors are on several; made if it is missing.
        fields: the fields to write, in this order. Every tuple that comes must have them. For `parquet` each has
            a type of Spark SQL, see `Columns`. A tuple with a value that does not fit fails alone.
        format: `json`, one object a line, with values that JSON has; `csv`, with a line of names at the top; or
            `parquet`.
        partition_by: fields by which files are put into folders `NAME=VALUE`, from which Spark reads them back.

    Raises:
        ConfigError: an argument makes no sense.

    Example:
        >>> bolt = FileBolt("/data/words", ["word", "count"], "csv")
        >>> types = {"word": "string", "count": "long", "day": "date"}
        >>> by_day = FileBolt("/data/words-by-day", types, "parquet", partition_by=["day"])
    """

    # What it has written is its state: the number of the next file.
    stateless = False

    def __init__(
        self,
        folder: str | os.PathLike[str],
        fields: Sequence[str] | Mapping[str, str],
        format: FileFormat = "json",  # noqa: A002 # Spark's word
        *,
        partition_by: Sequence[str] = (),
    ) -> None:
        self._folder = checked_folder(folder)
        names = _checked_fields(fields)
        self._partition_by = _checked_partitions(partition_by, names)
        self._fields = tuple(name for name in names if name not in self._partition_by)
        self._format = format
        self._types = dict(fields) if isinstance(fields, Mapping) else None
        self._encoder = encoder(format, self._fields, self._types)
        #: Saved with the micro-batch, and so taken back with it: what was not committed is written over.
        self._number = 0
        #: By the folder of a partition.
        self._items: dict[str, list[Any]] = {}

    def open_sink(self, context: SinkContext) -> None:
        """Makes the folder; called in the driver.

        Raises:
            SetupError: it can't be made or read.
            CheckpointError: the checkpoint is older than the folder.
        """
        folder = Path(self._folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SetupError(f"the folder {folder} can't be made: {error}") from error
        open_marked(folder, context)

    def note_plan(self, context: SinkContext) -> None:
        """Marks the folder with a micro-batch that is about to be executed; called in the driver."""
        mark_plan(Path(self._folder), context)

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Makes the folder, and removes what attempts of this task left half-written."""
        self._collector = collector
        self._stem = f"part-{_UNSAFE.sub('_', context.storm_id)}-{context.this_task_id:05}"
        folder = Path(self._folder)
        folder.mkdir(parents=True, exist_ok=True)
        for half in folder.glob(f".{self._stem}-*.tmp"):
            half.unlink(missing_ok=True)

    def execute(self, tup: Tuple) -> None:
        """Takes a tuple for the file of this micro-batch; tick tuples are not written."""
        if not tup.is_tick:
            item = self._encoder.item([tup[name] for name in self._fields])
            partition = partition_folder(self._partition_by, [tup[name] for name in self._partition_by])
            self._items.setdefault(partition, []).append(item)
        # The spout hears of it when the micro-batch is committed, after `finish_micro_batch`.
        self._collector.ack(tup)

    def finish_micro_batch(self) -> None:
        """Writes the files.

        Raises:
            OSError: one can't be written.
        """
        if not self._items:
            return
        found, self._items = self._items, {}
        name = self._name()
        for partition, items in found.items():
            _write(Path(self._folder), partition, name, self._encoder.encode(items))
        self._number += 1

    def take_back(self) -> None:
        """Removes what was written for the next number: its step was not committed, and others may execute its tuples.

        For a runtime that does not execute a step again as it was; call it once the state is restored.

        Raises:
            CheckpointError: there are files of later steps, too: the state is an older copy.
        """
        name = self._name()
        written = list(Path(self._folder).glob("/".join(["*"] * len(self._partition_by) + [f"{self._stem}-*"])))
        later = [path for path in written if path.name > name]
        if later:
            raise CheckpointError(
                f"{later[0]} was written after this state, which would write {name} next: the state is an older copy. "
                "Put back the newer one, or let the bolt write to another folder"
            )
        for path in written:
            if path.name == name:
                path.unlink(missing_ok=True)

    def _name(self) -> str:
        return f"{self._stem}-{self._number:010}.{self._format}"

    def read_stream(self, spark: SparkSession) -> DataFrame:
        """Returns what the bolt writes as a streaming DataFrame, with the fields and types of its columns.

        Spark reads a file once it is there, so maybe before its micro-batch is committed; a file that is replaced after
        a crash is not read again.

        Args:
            spark: of the query that reads; it may be another one than the topology's.

        Raises:
            ConfigError: the files have no types, as those of JSON and CSV.
        """
        if self._types is None:
            raise ConfigError(f"a stream has types, and {self._format} files have none: write parquet", key="format")
        Path(self._folder).mkdir(parents=True, exist_ok=True)
        schema = ", ".join(f"`{name.replace('`', '``')}` {kind}" for name, kind in self._types.items())
        return spark.readStream.schema(schema).parquet(self._folder)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares nothing: the bolt emits no tuples."""


def _checked_fields(fields: Iterable[str]) -> tuple[str, ...]:
    names: tuple[Any, ...] = () if isinstance(fields, str) else tuple(fields)
    if not names or len(set(names)) < len(names) or not all(isinstance(name, str) and name for name in names):
        raise ConfigError(f"fields are one or more names, each once (given {fields!r:.200})", key="fields")
    return names


def _checked_partitions(given: Sequence[str], fields: tuple[str, ...]) -> tuple[str, ...]:
    names: tuple[Any, ...] = (given,) if isinstance(given, str) else tuple(given)
    if not set(names) < set(fields) or len(set(names)) < len(names):
        raise ConfigError(
            f"partitions are by some of the fields {', '.join(fields)}, and not by all (given {given!r:.200})",
            key="partition_by",
        )
    return names


def _write(folder: Path, partition: str, name: str, body: bytes) -> None:
    """Writes a file as a whole: it survives the loss of the machine when this returns."""
    # Not in the partition's folder: what is left half-written is looked for in one place.
    half = folder / f".{name}-{uuid.uuid4().hex}.tmp"
    place = folder / partition
    try:
        with half.open("wb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        made = [] if place.exists() else [parent for parent in place.parents if parent.is_relative_to(folder)]
        place.mkdir(parents=True, exist_ok=True)
        half.replace(place / name)
    except OSError:
        half.unlink(missing_ok=True)
        raise
    for changed in (place, *made):
        _sync(changed)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
