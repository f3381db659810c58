"""Noticing native code that holds the Python interpreter of a worker, so that no Python thread can run.

So a native thread, that of `faulthandler`, counts the time. A Python thread resets it at each
look. If it can't for `topology.task.stall.secs`, the stacks are written to a file and the process ends; Spark runs the
task again in another worker. Before the stacks, the file has the task that is executed, as `diagnostics.busy` notes it.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import re
import time
from pathlib import Path
from typing import ClassVar, Final

from storm_on_spark.runtime.processes.diagnostics import prints
from storm_on_spark.runtime.processes.diagnostics.busy import SIZE, BusyPage, busy_task, holder

_FOLDER: Final = "holding"
_MOST_BYTES: Final = 1 << 16
_TIME: Final = re.compile(r"Timeout \((.+)\)!")
_FRAME: Final = re.compile(r'^  (File ".*", line \d+ in .*)$', re.MULTILINE)


class HolderWatch:
    """Ends this process when native code holds its interpreter for too long.

    Args:
        stall_secs: how long.
        folder: the topology's own folder in the checkpoint, or one of this machine.
    """

    #: The one that counts: a worker may execute tasks of several runs.
    _current: ClassVar[HolderWatch | None] = None

    def __init__(self, stall_secs: float, folder: Path) -> None:
        self._stall_secs = stall_secs
        notes = folder / _FOLDER
        # A run that has ended has removed its folder, which must not be created again.
        notes.mkdir(mode=0o700, exist_ok=True)
        self._path = notes / f"{time.time_ns():020d}-{os.getpid()}"
        with self._path.open("w+b") as file:
            self._page = BusyPage(file.fileno())
        self._stacks = self._path.open("ab")

    @classmethod
    def counts(cls) -> bool:
        """Returns whether one counts in this process."""
        return cls._current is not None

    def enter(self) -> None:
        """Counts from here on, for this run."""
        if HolderWatch._current is not self:
            HolderWatch._current = self
            self._page.note_tasks()
            self.look()

    def look(self) -> None:
        """Begins to count again: Python runs."""
        if HolderWatch._current is self and not self._stacks.closed:
            faulthandler.dump_traceback_later(self._stall_secs, exit=True, file=self._stacks)

    def close(self) -> None:
        """Counts no more."""
        if HolderWatch._current is self:
            HolderWatch._current = None
            faulthandler.cancel_dump_traceback_later()
            prints.note_labels(None)
        self._stacks.close()
        self._path.unlink(missing_ok=True)


def read_held(folder: Path) -> list[tuple[str, int | None, str]]:
    """Returns component, task and a sentence of each that held an interpreter until its worker was ended.

    Args:
        folder: the topology's own folder in the checkpoint.
    """
    return [_told(content) for _, content in _held(folder)]


def take_held(folder: Path) -> list[tuple[str, int | None, str]]:
    """Returns the same. Each is returned to only one caller, and removed."""
    found = []
    for path, content in _held(folder):
        with contextlib.suppress(FileNotFoundError):  # another process has taken it
            path.unlink()
            found.append(_told(content))
    return found


def clear_held(folder: Path, *, all_of_them: bool = False) -> None:
    """Removes what was written when workers were ended, or, at a new start, all files."""
    with contextlib.suppress(OSError):
        paths = list((folder / _FOLDER).iterdir()) if all_of_them else [path for path, _ in _held(folder)]
        for path in paths:
            path.unlink(missing_ok=True)


def _held(folder: Path) -> list[tuple[Path, bytes]]:
    found = []
    with contextlib.suppress(OSError):
        for path in sorted((folder / _FOLDER).iterdir()):
            with contextlib.suppress(OSError), path.open("rb") as file:
                if len(content := file.read(_MOST_BYTES)) > SIZE:
                    found.append((path, content))
    return found


def _told(content: bytes) -> tuple[str, int | None, str]:
    page, stacks = content[:SIZE], content[SIZE:].decode("utf-8", "replace")
    # The main thread's stack is the last one, and its innermost frame the first there.
    time_of, frame = _TIME.search(stacks), _FRAME.search(stacks.rpartition("Thread ")[2])
    passed = time_of[1] if time_of else "longer than allowed"
    where = f": {frame[1]}" if frame else ""
    return (
        *busy_task(page),
        f"{holder(page)} has held the Python interpreter for {passed} (topology.task.stall.secs){where}",
    )
