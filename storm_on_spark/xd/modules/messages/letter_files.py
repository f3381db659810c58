"""Dead letters of a stream that runs as one topology, in files that never make a message wait for a micro-batch."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from storm_on_spark.api.component import BaseRichBolt
from storm_on_spark.api.config import Config
from storm_on_spark.api.config.settings import Settings
from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
from storm_on_spark.api.task.collector import OutputCollector
from storm_on_spark.api.task.context import TopologyContext
from storm_on_spark.api.tuple import Tuple
from storm_on_spark.connectors.files.formats import encoder
from storm_on_spark.connectors.sinks.folders import checked_folder
from storm_on_spark.xd.modules.messages.message import FIELDS

MOST_BYTES: Final = 64 << 20
"""Size of a file in bytes; after that, the next letter begins another one."""
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]")
_JSON: Final = encoder("json", FIELDS, None)


@dataclass(frozen=True)
class _LetterSettings(Settings):
    durability: Annotated[str | None, Config.TOPOLOGY_DURABILITY]


class LetterFiles(BaseRichBolt):
    """Writes each dead letter at once, as a line of JSON at the end of a file.

    `FileBolt` writes a micro-batch under its plan, so a whole topology would wait for micro-batches because of rare
    messages. Here the number of the file and its size are the bolt's state, and a letter is written at the place in the
    state. An execution that is repeated after a crash finds its own lines, and leaves them unchanged. If it finds other
    lines, the execution that wrote them was lost before its state was saved, or the checkpoint is an older copy. They
    stay, and a new file begins. So no letter is ever lost, but one from the lost execution may appear twice.

    Args:
        folder: a path on this machine, or a shared one if executors are on several machines; created if it is missing.
        most_bytes: of a file.

    Raises:
        ConfigError: `folder` is the address of a store.

    Example:
        >>> bolt = LetterFiles("/data/letters")
    """

    def __init__(self, folder: str | os.PathLike[str], most_bytes: int = MOST_BYTES) -> None:
        self._folder = checked_folder(folder)
        self._most_bytes = most_bytes
        self._number = 0
        self._size = 0

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Makes the folder."""
        self._collector = collector
        self._stem = f"part-{_UNSAFE.sub('_', context.storm_id)}-{context.this_task_id:05}"
        self._forced = _LetterSettings.of(conf).durability != "process"
        Path(self._folder).mkdir(parents=True, exist_ok=True)

    def execute(self, tup: Tuple) -> None:
        """Writes a letter.

        Raises:
            ValueError: JSON has no such value; the tuple fails alone.
            OSError: the file can't be written.
        """
        line = _JSON.encode([_JSON.item([tup[name] for name in FIELDS])])
        if self._size and self._size + len(line) > self._most_bytes:
            self._number, self._size = self._number + 1, 0
        while not self._written(line):
            self._number, self._size = self._number + 1, 0
        self._size += len(line)
        self._collector.ack(tup)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares nothing: the bolt emits no tuples."""

    def _written(self, line: bytes) -> bool:
        """Returns whether the line is now at its place; False if something else is there."""
        place = Path(self._folder) / f"{self._stem}-{self._number:010}.json"
        descriptor = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            there = os.pread(descriptor, len(line), self._size)
            # A part of a line is there if the machine was lost during the write.
            if not line.startswith(there) or os.fstat(descriptor).st_size < self._size:
                return False
            if there != line:
                _write(descriptor, line, self._size)
                if self._forced:
                    os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if self._forced and self._size == 0:
            _force(Path(self._folder))
        return True


def _write(descriptor: int, line: bytes, at: int) -> None:
    while line:
        written = os.pwrite(descriptor, line, at)
        line, at = line[written:], at + written


def _force(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
