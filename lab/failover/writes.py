"""Which processes write to a checkpoint: every driver, and every process of it, appends to a file there.

Two drivers on one checkpoint are visible there: their records are mixed.
"""

from __future__ import annotations

import os
import struct
import time
from pathlib import Path

RECORD = struct.Struct("<qq")
"""The driver's process id, and monotonic ns."""
FILE = "writes"


class Writer:
    """Appends records to `writes` in a checkpoint.

    Args:
        checkpoint: where.
        pause: seconds without a record after each one.
    """

    def __init__(self, checkpoint: Path, pause: float = 0.0) -> None:
        # Unlike a descriptor it can't be pickled, so it is not part of a spout's or bolt's state.
        self._file = (checkpoint / FILE).open("ab", buffering=0)
        # A driver and its processes are a separate session.
        self._driver = os.getsid(0)
        self._pause = round(pause * 1e9)
        self._last = 0

    def write(self) -> None:
        """Appends one, unless it is too early."""
        now = time.monotonic_ns()
        if now - self._last >= self._pause:
            self._last = now
            self._file.write(RECORD.pack(self._driver, now))


def writes(checkpoint: Path, last: int | None = None) -> list[tuple[int, int]]:
    """Returns who wrote to a checkpoint, and when, in the order of writing; only the last record, if requested."""
    path = checkpoint / FILE
    if not path.exists():
        return []
    with path.open("rb") as file:
        if last is not None:
            records = file.seek(0, os.SEEK_END) // RECORD.size
            file.seek(max(0, records - last) * RECORD.size)
        content = file.read()
    return [(pid, at) for pid, at in RECORD.iter_unpack(content[: len(content) // RECORD.size * RECORD.size])]
