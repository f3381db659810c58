"""A spout that blocks on demand: each of its tasks has a file, and a process that locks the file blocks the task."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lab.load.topology import Load, Messages


class GatedMessages(Messages):
    """Messages whose `next_tuple` blocks, as it does where it asks a server that does not answer.

    Args:
        load: what to emit.
        folder: the ledger.
        gates: the folder with the tasks' files.
    """

    def __init__(self, load: Load, folder: str, gates: str) -> None:
        super().__init__(load, folder)
        self._gates = gates

    def open(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        """Starts before the first message."""
        super().open(conf, context, collector)
        self._gate = str(gate(Path(self._gates), context.this_task_index))

    def next_tuple(self) -> None:
        """Waits until nobody has locked the file, and emits one message if one is due."""
        with Path(self._gate).open() as file:
            fcntl.flock(file, fcntl.LOCK_SH)
        super().next_tuple()


def gate(folder: Path, task: int) -> Path:
    """Returns the file of a task of the spout, made if there is none."""
    path = folder / f"gate-{task}"
    path.touch()
    return path


@contextlib.contextmanager
def closed(path: Path) -> Iterator[None]:
    """Blocks a task for as long as the block lasts."""
    with path.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def waiting(path: Path) -> list[int]:
    """Returns the process ids of the tasks that wait at a file."""
    inode = path.stat().st_ino
    # Such as "31: -> FLOCK  ADVISORY  READ  7213 08:01:1835027 0 EOF".
    lines = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    return [int(words[5]) for words in lines if words[1] == "->" and words[6].endswith(f":{inode}")]
