"""Tail: a source that emits the lines appended to a file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

from storm_on_spark.api.task.collector import SpoutOutputCollector
from storm_on_spark.api.task.context import TopologyContext
from storm_on_spark.xd.modules.declaration import ModuleDeclaration, Option
from storm_on_spark.xd.modules.messages.repeating import RepeatingSource
from storm_on_spark.xd.modules.outside.files import MAXIMUM_LINE, text_of_line


class TailSource(RepeatingSource):
    """Emits the lines that are appended to a file, once each line is complete.

    The file may appear later. If it is renamed and created again, as log rotation does, the old one is read to its end,
    and then the new one from its beginning. If it becomes shorter, it is read from its beginning. After a crash the
    source continues after the last saved line; lines of a file that was renamed meanwhile are not read.

    Args:
        name: the file.
        from_start: whether the lines that exist at the start are emitted too.
        delay: seconds between two looks at a file that had nothing new.

    Raises:
        ValueError: from `next_tuple`: a line is too long, or not UTF-8. The run ends.
    """

    services = ("_opened",)

    def __init__(self, name: str, from_start: bool, delay: float) -> None:
        super().__init__()
        self.name = str(Path(name).absolute())
        self.from_start = from_start
        self.delay = delay
        self._started = from_start
        #: Device and inode of the open file.
        self._identity: tuple[int, int] | None = None
        self._offset = 0
        self._looked: float | None = None

    def open(self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector) -> None:
        """Keeps the collector; the file is opened later."""
        super().open(conf, context, collector)
        self._opened: BinaryIO | None = None

    def produce(self) -> None:
        """Sends the next line."""
        now = self.now()
        if self._looked is not None and 0 <= now - self._looked < self.delay:
            return
        file = self._opened or self._open()
        if file is None or not (self._line(file) or self._follow(file)):
            self._looked = now

    def close(self) -> None:
        """Closes the file."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _open(self) -> BinaryIO | None:
        try:
            file = Path(self.name).open("rb")  # noqa: SIM115 # closed by `close`
        except FileNotFoundError:
            # Any line that appears from now on is new.
            self._started = True
            return None
        identity, size = _identity(file)
        if identity != self._identity:
            self._offset = 0 if self._started else size
        self._identity, self._started = identity, True
        self._opened = file
        return file

    def _line(self, file: BinaryIO) -> bool:
        file.seek(self._offset)
        line = file.readline(MAXIMUM_LINE + 1)
        if not line.endswith(b"\n") and len(line) <= MAXIMUM_LINE:
            return False
        text = text_of_line(line, Path(self.name), self._offset)
        self._offset += len(line)
        self._looked = None
        self.send(text, {"file_name": Path(self.name).name})
        return True

    def _follow(self, file: BinaryIO) -> bool:
        """Returns whether there is more to read at once, because the file was replaced or became shorter."""
        _, size = _identity(file)
        if size < self._offset:
            self._offset = 0
            return size > 0
        try:
            status = Path(self.name).stat()
        except FileNotFoundError:
            return False
        if (status.st_dev, status.st_ino) == self._identity:
            return False
        file.seek(self._offset)
        if rest := file.read(MAXIMUM_LINE + 1):
            self.send(text_of_line(rest, Path(self.name), self._offset), {"file_name": Path(self.name).name})
        self.close()
        return True


def _identity(file: BinaryIO) -> tuple[tuple[int, int], int]:
    status = os.fstat(file.fileno())
    return (status.st_dev, status.st_ino), status.st_size


def _a_file(text: str) -> None:
    if not text or "\0" in text or "://" in text or text.endswith("/"):
        raise ValueError(f"Expected the path of a file, got {text!r:.100}")


SOURCE: Final = ModuleDeclaration(
    "source",
    "tail",
    "Emits the lines that are appended to a file.",
    TailSource,
    (
        Option("name", "text", None, "The file; it may appear later.", check=_a_file),
        Option("fromStart", "boolean", "false", "Also emit the lines that are already there."),
        Option("delay", "number", "1", "Seconds between two looks for new lines.", minimum=0.001),
    ),
)
