"""The journal of one instance of a module: numbered records, each in its own file.

A record has what the instance emitted, how far it has read its inputs, and its state: one file, so all or nothing. A
number is used once: writing makes a hard link, which fails if the name exists. If two processes run the same instance,
one of them fails at its next record and ends. This alone fences a container that was paused, declared dead and resumed.

The folder may be local, or shared by all hosts if it has hard links (NFS does).
"""

from __future__ import annotations

import contextlib
import os
import pickle
import re
import uuid
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from storm_on_spark.api.errors import CheckpointError, StormError
from storm_on_spark.runtime.storage.durable import make_folder, sync_folder

_MAGIC: Final = b"XDR1"
_NAME: Final = re.compile(r"[0-9]{12}")
_BLOCK: Final = 4096


class TakenError(StormError, RuntimeError):
    """Another process has written the next record, so it runs this instance now."""


class Message(NamedTuple):
    """A message between modules."""

    payload: Any
    headers: dict[str, Any]
    key: int | None = None
    """The partition that the message belongs to; None for any."""


Positions = dict[str, tuple[int, int]]
"""Name of an input -> number of the record and of the message in it that come next."""


@dataclass(frozen=True)
class Record:
    """The result of one step of an instance."""

    messages: tuple[Message, ...] = ()
    positions: Positions = field(default_factory=dict)
    state: tuple[bytes | None, ...] = ()
    """The state of each component, in the order of the flow; None for a component without state."""
    emitted: tuple[Any, ...] = ()
    """Ids of the messages to ack at the source: it may have ended before it was told."""
    generation: str = ""
    """The generation of the deployment, and the number of instances."""


class Journal:
    """The records of an instance, in files.

    Args:
        folder: created with the first record.
        sync: whether a record must survive the loss of the machine, such as a power failure.

    Example:
        >>> import tempfile
        >>> journal = Journal(Path(tempfile.mkdtemp()))
        >>> size = journal.append(1, Record((Message("a", {}),)))
        >>> journal.last(), journal.read(1).messages[0].payload, journal.read(2)
        (1, 'a', None)
    """

    def __init__(self, folder: Path, *, sync: bool = False) -> None:
        self.folder = folder
        self._sync = sync

    def last(self) -> int:
        """Returns the number of the last record; 0 if there is none."""
        return max(self._numbers(), default=0)

    def first(self) -> int:
        """Returns the number of the first record that still exists; 0 if there is none."""
        return min(self._numbers(), default=0)

    def has(self, number: int) -> bool:
        """Whether a record exists."""
        return self._path(number).exists()

    def read(self, number: int) -> Record | None:
        """Returns a record; None if it does not exist.

        Raises:
            CheckpointError: the file is damaged.
        """
        path = self._path(number)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        body = data[8:]
        if data[:4] != _MAGIC or int.from_bytes(data[4:8], "big") != zlib.crc32(body):
            raise CheckpointError(f"the record {path} is damaged")
        found = pickle.loads(body)  # noqa: S301 # our own file, as trusted as a checkpoint
        assert isinstance(found, Record)
        return found

    def append(self, number: int, record: Record) -> int:
        """Writes the record after the last one; returns its size on the disk in bytes.

        Args:
            number: one more than that of the last record that the writer knows.
            record: the record.

        Raises:
            TakenError: there is such a record already.
        """
        body = pickle.dumps(record, pickle.HIGHEST_PROTOCOL)
        make_folder(self.folder, sync=self._sync)
        half = self.folder / f".{uuid.uuid4().hex}.tmp"
        try:
            with half.open("wb") as file:
                file.write(_MAGIC + zlib.crc32(body).to_bytes(4, "big") + body)
                if self._sync:
                    file.flush()
                    os.fsync(file.fileno())
            os.link(half, self._path(number))
        except FileExistsError:
            raise TakenError(f"another container has written record {number} of {self.folder}") from None
        finally:
            half.unlink(missing_ok=True)
        # The last record is never removed, so checking the one before is enough, without reading the folder.
        if not (number > 1 and self._path(number - 1).exists()) and self.last() != number:
            # The other process is so far ahead that it has removed the record of this number.
            self._path(number).unlink(missing_ok=True)
            raise TakenError(f"another container has written record {self.last()} of {self.folder}")
        if self._sync:
            sync_folder(self.folder)
        return _on_disk(len(body) + 8)

    def sizes(self) -> dict[int, int]:
        """Returns number -> size on the disk in bytes, for all existing records, in order."""
        found: dict[int, int] = {}
        for number in sorted(self._numbers()):
            with contextlib.suppress(FileNotFoundError):
                found[number] = _on_disk(self._path(number).stat().st_size)
        return found

    def remove(self, number: int) -> None:
        """Removes a record. It must not be the last one, which has the state."""
        self._path(number).unlink(missing_ok=True)

    def _numbers(self) -> list[int]:
        with contextlib.suppress(FileNotFoundError):
            return [int(path.name) for path in self.folder.iterdir() if _NAME.fullmatch(path.name)]
        return []

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:012}"


def _on_disk(size: int) -> int:
    """Returns the size of a file on the disk in bytes: whole blocks.

    >>> _on_disk(1)
    4096
    """
    return -(-size // _BLOCK) * _BLOCK
