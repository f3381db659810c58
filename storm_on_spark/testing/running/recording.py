"""Records in files, written by several processes at once and read by the test.

A record is a length and a pickle, appended by a single `write` to a file that was opened with O_APPEND:
records of different processes don't mix, and written records stay when the writer is killed.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from storm_on_spark.api.errors import StormError
from storm_on_spark.runtime.values import pickling

_LENGTH = struct.Struct("<I")

MAX_BYTES = 256 << 20
"""Most bytes of one file of records."""


class Recorder:
    """Appends to one file.

    Args:
        path: the file; created if it does not exist.
        max_bytes: the limit at which recording ends with an error, so that a runaway topology does not fill the disk.
    """

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES) -> None:
        self._path = path
        self._max_bytes = max_bytes
        # A file object: it closes its descriptor when the process drops it.
        self._file = path.open("ab", buffering=0)

    def write(self, record: tuple[Any, ...]) -> None:
        """Appends a record.

        Raises:
            StormError: the file has reached its limit.
        """
        body = pickling.dumps(record)
        size = os.fstat(self._file.fileno()).st_size
        if size + _LENGTH.size + len(body) > self._max_bytes:
            raise StormError(
                f"the capture file {self._path} is full: it has {size} bytes of at most {self._max_bytes}; "
                "capture fewer components, or give the topology less input"
            )
        self._file.write(_LENGTH.pack(len(body)) + body)

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


def read_records(path: Path) -> Iterator[tuple[Any, ...]]:
    """Yields the records of a file, except an incomplete one at the end, left by a kill."""
    data = path.read_bytes()
    at = 0
    while at + _LENGTH.size <= len(data):
        (length,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        if at + length > len(data):
            return
        yield pickling.loads(data[at : at + length])
        at += length
