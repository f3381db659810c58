"""Files: a bolt that writes tuples to a folder, each exactly once."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from storm_on_spark.api.collector import OutputCollector
from storm_on_spark.api.component import BaseRichBolt
from storm_on_spark.api.context import TopologyContext
from storm_on_spark.api.errors import ConfigError
from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
from storm_on_spark.api.tuple import Tuple

FileFormat = Literal["json", "csv"]

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


class FileBolt(BaseRichBolt):
    """Writes tuples to files in a folder: one new file for each micro-batch and task that has tuples.

    A tuple is acked when its file is complete and the micro-batch is committed. A micro-batch that is executed again,
    after a crash or because the driver was killed before the commit, puts its file in the same place: in a topology
    with a checkpoint, no tuple is missing from the folder, and none that was emitted once is there twice. Until then,
    the file of a micro-batch that was not committed can be seen.

    A file's name is made of the topology's id, the task and a number, so topologies and bolts may share a folder.
    What can't be written ends the topology, and its micro-batch is not committed.

    Args:
        folder: a local path, or one that all machines share where executors are on several; made if it is missing.
        fields: the fields to write, in this order. Every tuple that comes must have them.
        format: `json`, one object a line, with values that JSON has; or `csv`, with a line of names at the top.

    Raises:
        ConfigError: an argument makes no sense.

    Example:
        >>> bolt = FileBolt("/data/words", ["word", "count"], "csv")
    """

    # What it has written is its state: the number of the next file.
    stateless = False

    def __init__(self, folder: str | os.PathLike[str], fields: Sequence[str], format: FileFormat = "json") -> None:  # noqa: A002 # Spark's word
        self._folder = _checked_folder(folder)
        self._fields = _checked_fields(fields)
        if format not in get_args(FileFormat):
            raise ConfigError(
                f"a format is one of {', '.join(get_args(FileFormat))} (given {format!r:.100})", key="format"
            )
        self._format = format
        #: Saved with the micro-batch, and so taken back with it: what was not committed is written over.
        self._number = 0
        self._lines: list[str] = []

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
            values = [tup[name] for name in self._fields]
            self._lines.append(_json_line(self._fields, values) if self._format == "json" else _csv_line(values))
        # The spout hears of it when the micro-batch is committed, after `finish_micro_batch`.
        self._collector.ack(tup)

    def finish_micro_batch(self) -> None:
        """Writes the file.

        Raises:
            OSError: it can't be written.
        """
        if not self._lines:
            return
        lines, self._lines = self._lines, []
        if self._format == "csv":
            lines = [_csv_line(self._fields), *lines]
        _write(Path(self._folder), f"{self._stem}-{self._number:010}.{self._format}", "".join(lines).encode())
        self._number += 1

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares nothing: the bolt emits no tuples."""


def _checked_folder(folder: str | os.PathLike[str]) -> str:
    text: Any = os.fspath(folder)
    if not isinstance(text, str) or not text or "\0" in text or _SCHEME.match(text):
        raise ConfigError(
            f"a folder is a path on this machine or a shared one, not a URL (given {text!r:.200})", key="folder"
        )
    # Workers have another working directory than the program that makes the bolt.
    return str(Path(text).absolute())


def _checked_fields(fields: Sequence[str]) -> tuple[str, ...]:
    names: tuple[Any, ...] = () if isinstance(fields, str) else tuple(fields)
    if not names or len(set(names)) < len(names) or not all(isinstance(name, str) and name for name in names):
        raise ConfigError(f"fields are one or more names, each once (given {fields!r:.200})", key="fields")
    return names


def _json_line(fields: Sequence[str], values: Sequence[Any]) -> str:
    try:
        return json.dumps(dict(zip(fields, values, strict=True)), ensure_ascii=False, allow_nan=False) + "\n"
    except (TypeError, ValueError) as error:
        raise ValueError(f"a tuple can't be written as JSON: {error} (given {values!r:.200})") from error


def _csv_line(values: Sequence[Any]) -> str:
    for value in values:
        if not isinstance(value, str | int | float | None) or (isinstance(value, float) and not math.isfinite(value)):
            raise ValueError(f"CSV takes text, finite numbers, booleans and None (given {value!r:.200})")
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(values)
    return line.getvalue()


def _write(folder: Path, name: str, body: bytes) -> None:
    """Writes a file as a whole: it survives the loss of the machine when this returns."""
    half = folder / f".{name}-{uuid.uuid4().hex}.tmp"
    try:
        with half.open("wb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        half.replace(folder / name)
    except OSError:
        half.unlink(missing_ok=True)
        raise
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
