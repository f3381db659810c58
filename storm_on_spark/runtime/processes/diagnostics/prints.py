"""Labels of printed lines: what a spout or bolt prints is preceded by component and task, and in a log by its time.

All processes of a topology share one stream. The printing task is known by thread, because a spout host has a thread
for each executor. A driver that a supervisor started writes a log, as do all processes that it starts: they inherit
`TIMED` in the environment.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final, TextIO

TIMED: Final = "STORM_SPARK_TIMED_LINES"
"""Variable of the environment of processes that put the time before each line."""

MARK: Final = b"\x1e"
"""First byte of a line that user code printed: ASCII's record separator."""


class _Speaker(threading.local):
    label = ""


_speaker = _Speaker()
_note: Callable[[str], None] | None = None


def note_labels(note: Callable[[str], None] | None) -> None:
    """Calls `note` with each new label from now on; for a process with one thread that executes tasks."""
    global _note  # as is standard output, of which the labels are
    _note = note


def are_noted() -> bool:
    """Returns whether a function gets each new label."""
    return _note is not None


def speaks(component: str, task: int) -> None:
    """Sets the task whose code this thread calls from now on.

    Example:
        >>> speaks("count", 4)
        >>> label()
        '[count:4] '
        >>> silent()
        >>> label()
        ''
    """
    _speaker.label = f"[{component}:{task}] "
    if _note is not None:
        _note(_speaker.label)


def silent() -> None:
    """Notes that this thread calls no task's code from now on."""
    _speaker.label = ""


def label() -> str:
    """Returns the label of lines that this thread prints."""
    return _speaker.label


class speaking:  # noqa: N801 - it is used like a function
    """Sets the task whose code this thread calls within the block."""

    __slots__ = ("_before", "_component", "_task")

    def __init__(self, component: str, task: int) -> None:
        self._component, self._task = component, task

    def __enter__(self) -> None:
        self._before = _speaker.label
        speaks(self._component, self._task)

    def __exit__(self, *_: object) -> None:
        _speaker.label = self._before
        if _note is not None:
            _note(self._before)


def stamp(now: float) -> str:
    """Returns a time in the form that Python's logs and Storm's have.

    Example:
        >>> stamp(time.mktime((2026, 11, 27, 13, 56, 10, 0, 0, -1)) + 0.1239)
        '2026-11-27 13:56:10,123 '
    """
    return f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(now))},{int(now * 1000) % 1000:03d} "


def is_timed() -> bool:
    """Returns whether this process puts the time before each line that it labels."""
    return TIMED in os.environ


class LabelledOutput(io.RawIOBase):
    """Puts the label of the printing task before each line, in a log with the time.

    Whole lines are written at once, since other threads and processes write to the same place.

    Args:
        descriptor: where it goes; it stays open.
        mark: bytes before each line and its label.
    """

    def __init__(self, descriptor: int, mark: bytes = b"") -> None:
        self._descriptor = descriptor
        self._mark = mark
        self._timed = is_timed()
        self._partial = b""

    def writable(self) -> bool:
        """Always true."""
        return True

    def fileno(self) -> int:
        """Returns the descriptor below; what is written there directly has no label."""
        return self._descriptor

    def write(self, data: object) -> int:
        """Writes the lines that are complete by now and returns the number of bytes taken."""
        taken = bytes(data)  # type: ignore[call-overload]
        *lines, self._partial = (self._partial + taken).split(b"\n")
        if lines:
            moment = stamp(time.time()) if self._timed else ""
            before = self._mark + f"{moment}{label()}".encode("utf-8", "replace")
            _write_all(self._descriptor, b"".join(before + line + b"\n" for line in lines))
        return len(taken)

    def close(self) -> None:
        """Ends the last line. The descriptor stays open."""
        if not self.closed and self._partial:
            self.write(b"\n")
        super().close()


def labelled(stream: TextIO, mark: bytes = b"") -> TextIO:
    """Returns a stream like `stream` that labels its lines."""
    stream.flush()
    buffer = io.BufferedWriter(LabelledOutput(stream.fileno(), mark))
    return io.TextIOWrapper(buffer, encoding="utf-8", errors="replace", line_buffering=True)


def label_all() -> None:
    """Labels what this process prints from now on."""
    sys.stdout, sys.stderr = labelled(sys.stdout), labelled(sys.stderr)


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


@contextlib.contextmanager
def marked_output() -> Iterator[None]:
    """Marks what is printed within the block."""
    before = sys.stdout, sys.stderr
    try:
        sys.stdout, sys.stderr = (labelled(stream, MARK) for stream in before)
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.close()
        sys.stdout, sys.stderr = before
