"""Records that the topology leaves outside Spark, one file per kind of event.

A record has a fixed size and is appended by a single `write` to a file opened with O_APPEND: records of different
processes don't mix, and what was written stays when the writer is killed. That makes the ledger a side effect in
Storm's sense: an action repeated after a fault is recorded twice.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

EMITS = "emits"
"""The spout emitted a message."""
ACKS = "acks"
"""The spout's `ack` was called."""
FAILS = "fails"
"""The spout's `fail` was called."""
SINK = "sink"
"""The last bolt executed a tuple."""

_RECORD = struct.Struct("<qiii")
DTYPE = np.dtype([("time", "<i8"), ("number", "<i4"), ("attempt", "<i4"), ("partner", "<i4")])
"""Monotonic time of the machine in ns, the message, how often it had failed before, the message it was joined with."""

Records = NDArray[np.void]

_files: dict[tuple[str, str], int] = {}


def note(folder: str, kind: str, number: int, attempt: int, partner: int = -1) -> None:
    """Appends a record to the ledger in `folder`."""
    file = _files.get((folder, kind))
    if file is None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        file = _files[folder, kind] = os.open(os.path.join(folder, kind), flags, 0o600)  # noqa: PTH118 # hot path
    os.write(file, _RECORD.pack(time.monotonic_ns(), number, attempt, partner))


def count(folder: Path, kind: str) -> int:
    """Returns the number of records of a kind."""
    path = folder / kind
    return path.stat().st_size // _RECORD.size if path.exists() else 0


def read(folder: Path, kind: str) -> Records:
    """Returns the records of a kind in the order in which they were written."""
    path = folder / kind
    data = path.read_bytes() if path.exists() else b""
    return np.frombuffer(data[: len(data) // _RECORD.size * _RECORD.size], DTYPE)


def roots(records: Records) -> NDArray[np.int64]:
    """Returns for each record the number of its root: a message that is emitted again is a new root."""
    keys: NDArray[np.int64] = records["number"].astype(np.int64) << 16 | records["attempt"]
    return keys


def resumed(folder: Path, after: int, tasks: Sequence[int] = (0, 1)) -> float | None:
    """Returns how many seconds after a moment messages were acked again that were emitted since, of each spout task.

    Args:
        folder: the ledger.
        after: the moment, in monotonic ns.
        tasks: the spout's tasks that count.

    Returns: None if that has not happened.
    """
    emits, acks = read(folder, EMITS), read(folder, ACKS)
    emits, acks = emits[emits["time"] > after], acks[acks["time"] > after]
    new = acks[np.isin(roots(acks), roots(emits))]
    # One task emits the even messages, the other the odd ones.
    firsts = [new["time"][new["number"] % 2 == task] for task in tasks]
    if not all(map(len, firsts)):
        return None
    return float(max(first.min() for first in firsts) - after) / 1e9
