"""Which task a process executes, and when it last gave a sign of life: in memory that another process reads.

Native code that a bolt calls may hold the Python interpreter. Then no thread of that process can report anything.
"""

from __future__ import annotations

import mmap
import os
import struct
import threading
import time
from functools import lru_cache
from typing import Final

from storm_on_spark.runtime.processes.diagnostics import prints

_LABEL: Final = 248
"""Bytes for the task's label, padded with zeros. The time of the last sign of life follows."""
_BREATH: Final = struct.Struct("d")
SIZE: Final = _LABEL + _BREATH.size
_BREATH_SECS: Final = 0.5


class BusyPage:
    """The memory, as the process that executes tasks sees it.

    Args:
        file: a descriptor of a file that both processes have; it stays open.
    """

    def __init__(self, file: int) -> None:
        os.ftruncate(file, SIZE)
        self._memory = mmap.mmap(file, SIZE)

    def note_tasks(self) -> None:
        """Notes from now on which task this process executes. Each note takes 0.6 µs; a round takes some hundred."""
        prints.note_labels(self._note)

    def breathe(self) -> None:
        """Notes the time at intervals, on a thread that ends with the process."""
        _BREATH.pack_into(self._memory, _LABEL, time.monotonic())
        threading.Thread(target=self._breathe, name="breath", daemon=True).start()

    def _note(self, label: str) -> None:
        self._memory[:_LABEL] = _packed(label)

    def _breathe(self) -> None:
        while True:
            time.sleep(_BREATH_SECS)
            _BREATH.pack_into(self._memory, _LABEL, time.monotonic())


@lru_cache(maxsize=1 << 12)
def _packed(label: str) -> bytes:
    return label.encode("utf-8", "replace")[:_LABEL].ljust(_LABEL, b"\0")


def breathed_at(page: bytes) -> float:
    """Returns the time of the last sign of life, by the machine's monotonic clock."""
    at: float = _BREATH.unpack_from(page, _LABEL)[0]
    return at


def holder(page: bytes) -> str:
    """Returns the code that holds the interpreter of the process with this page, in words for a message.

    Example:
        >>> holder(b"[count:4] " + bytes(SIZE - 10))
        'component "count" (task 4), or what it calls,'
        >>> holder(b"")
        'a bolt, or what it calls,'
    """
    component, task = busy_task(page)
    return f'component "{component}" (task {task}), or what it calls,' if component else "a bolt, or what it calls,"


def busy_task(page: bytes) -> tuple[str, int | None]:
    """Returns the component and task that a page names; an empty name and None if it names none."""
    component, _, task = page[:_LABEL].rstrip(b"\0").decode("utf-8", "replace").strip("[] ").rpartition(":")
    return component, int(task) if task.isdecimal() else None
