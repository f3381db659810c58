"""Files: a source that reads lines, and a sink that writes each message once."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

from storm_on_spark.connectors.files import FileBolt
from storm_on_spark.xd.modules.declaration import ModuleDeclaration, Option
from storm_on_spark.xd.modules.messages.repeating import RepeatingSource

MAXIMUM_LINE: Final = 1_000_000
"""Most bytes of a line."""


class FileSource(RepeatingSource):
    """Emits the lines of the files in a folder: file by file in the order of their names, each file once.

    A file has to be whole when it appears: write it elsewhere on the same disk and move it in. After a crash the source
    continues after the last line that was saved.

    Args:
        directory: the folder; it may appear later, unless `once` is set.
        pattern: which files, as a shell pattern without a folder.
        once: whether the source ends after the last file; otherwise it looks for new ones.
        fixed_delay: seconds between two looks for new files.

    Raises:
        ValueError: from `next_tuple`: a line is too long, or not UTF-8. The run ends.
    """

    def __init__(self, directory: str, pattern: str, once: bool, fixed_delay: float) -> None:
        super().__init__()
        # Spouts have a different working directory from the command.
        self.directory = str(Path(directory).absolute())
        self.pattern = pattern
        self.once = once
        self.fixed_delay = fixed_delay
        self._read: set[str] = set()
        self._file: str | None = None
        self._offset = 0
        self._ended = False
        self._looked: float | None = None

    def produce(self) -> None:
        """Sends the next line."""
        if self._file is not None or self._find():
            self._next_line()

    def ended(self) -> bool:
        """Returns whether all lines were emitted and the source does not wait for new files."""
        return self._ended

    def _find(self) -> bool:
        now = self.now()
        if self._ended or (self._looked is not None and 0 <= now - self._looked < self.fixed_delay):
            return False
        files = sorted(path.name for path in Path(self.directory).glob(self.pattern) if path.is_file())
        self._file = next((name for name in files if name not in self._read), None)
        self._offset = 0
        if self._file is None:
            self._looked = now
            self._ended = self.once
        return self._file is not None

    def _next_line(self) -> None:
        assert self._file is not None
        path = Path(self.directory) / self._file
        with path.open("rb") as file:
            file.seek(self._offset)
            line = file.readline(MAXIMUM_LINE + 1)
        if not line:
            self._read.add(self._file)
            self._file = None
            return
        text = text_of_line(line, path, self._offset)
        self._offset += len(line)
        self.send(text, {"file_name": self._file})


def text_of_line(line: bytes, path: Path, offset: int) -> str:
    """Returns a line without its end.

    Args:
        line: its bytes; more than `MAXIMUM_LINE` of them are too many.
        path: the file.
        offset: where the line begins in it, in bytes.

    Raises:
        ValueError: it is too long, or not UTF-8.
    """
    if len(line) > MAXIMUM_LINE:
        raise ValueError(f"{path}: a line has at most {MAXIMUM_LINE} bytes; the one at byte {offset} has more")
    try:
        return line.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: the line at byte {offset} is not UTF-8: {error.reason}") from error


def _source(dir: str, pattern: str, once: bool, fixed_delay: float) -> FileSource:  # noqa: A002 # the option's name
    return FileSource(dir, pattern, once, fixed_delay)


def _sink(dir: str, format: Literal["json", "csv"]) -> FileBolt:  # noqa: A002 # the options' names
    return FileBolt(dir, ["payload"], format)


def _a_folder(text: str) -> None:
    if not text or "\0" in text or "://" in text:
        raise ValueError(f"Expected the path of a folder, got {text!r:.100}")


def _a_pattern(text: str) -> None:
    if not text or "/" in text or "\0" in text or "**" in text:
        raise ValueError(f"Expected a pattern of names, without '/' and '**', got {text!r:.100}")


SOURCE: Final = ModuleDeclaration(
    "source",
    "file",
    "Emits the lines of the files in a folder, each file once.",
    _source,
    (
        Option("dir", "text", None, "The folder.", check=_a_folder),
        Option("pattern", "text", "*", "Which files, as a shell pattern.", check=_a_pattern),
        Option("once", "boolean", "false", "End after the last file, instead of waiting for new ones."),
        Option("fixedDelay", "number", "5", "Seconds between two looks for new files.", minimum=0.001),
    ),
)

SINK: Final = ModuleDeclaration(
    "sink",
    "file",
    "Writes each payload to files in a folder, exactly once where the run has a checkpoint.",
    _sink,
    (
        Option("dir", "text", None, "The folder; it is made if it is missing.", check=_a_folder),
        Option("format", "text", "json", "JSON objects with a `payload` each, or CSV.", choices=("json", "csv")),
    ),
)
