"""Files that belong to one micro-batch: outcomes and carried tuples.

One file a batch, written atomically: it exists complete or not at all; after a power loss one that was not
forced to the disk may be empty. What forces it there is the barrier before Spark commits the batch.

Format, little endian:
magic "SBAT", version u16, reserved u16, chunks u32, then for each chunk length u32, crc u32, bytes; no more.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from zlib import crc32

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.api.text.wording import other_format
from storm_on_spark.runtime.storage import Folder, as_storage

VERSION = 1
_HEAD = struct.Struct("<4sHHI")
_PART = struct.Struct("<II")
_MAGIC = b"SBAT"
_SUFFIX = "bin"


class BatchFiles:
    """The files of one kind. One process writes them at a time, through one object of this class.

    Args:
        folder: where they are.
    """

    def __init__(self, folder: Folder) -> None:
        self._storage = as_storage(folder)
        #: The batches that have a file, once they were listed: one process writes.
        self._written: set[int] | None = None

    def write(self, batch: int, chunks: Sequence[bytes]) -> None:
        """Writes a batch's file in place of one from an earlier attempt; without chunks there is none.

        Raises:
            OSError: the disk is full or fails; the file of the earlier attempt remains.
        """
        if not chunks:
            self.delete(batch)
            return
        parts = [_HEAD.pack(_MAGIC, VERSION, 0, len(chunks))]
        for body in chunks:
            parts += [_PART.pack(len(body), crc32(body)), body]
        self._batches().add(batch)
        self._storage.put(_name(batch), b"".join(parts))

    def read(self, batch: int) -> list[bytes]:
        """Returns the chunks of a batch.

        Raises:
            CheckpointError: the file is missing, damaged or of another version.
        """
        path = f"{self._storage.url}/{_name(batch)}"
        try:
            data = self._storage.read(_name(batch))
        except FileNotFoundError:
            raise CheckpointError(f"{path} is missing") from None
        if len(data) < _HEAD.size or data[:4] != _MAGIC:
            raise CheckpointError(f"{path} is not a file of a micro-batch")
        _, version, reserved, count = _HEAD.unpack_from(data)
        if version != VERSION:
            raise CheckpointError(other_format(path, version, VERSION))
        chunks, offset = [], _HEAD.size
        for _ in range(count):
            if offset + _PART.size > len(data):
                raise CheckpointError(f"{path} is cut short")
            length, checksum = _PART.unpack_from(data, offset)
            offset += _PART.size
            body = data[offset : offset + length]
            if len(body) != length or crc32(body) != checksum:
                raise CheckpointError(f"{path} is damaged: a chunk has the wrong checksum")
            chunks.append(body)
            offset += length
        if offset != len(data) or reserved:
            raise CheckpointError(f"{path} is damaged: it says that it has {count} chunks")
        return chunks

    def batches(self) -> list[int]:
        """Returns the batches that have a file, ascending."""
        return sorted(self._batches())

    def delete(self, batch: int) -> None:
        """Removes a batch's file."""
        if batch in self._batches():
            self._storage.delete(_name(batch))
            self._batches().discard(batch)

    def delete_after(self, last: int) -> None:
        """Removes the files of all batches after `last`."""
        for batch in self.batches():
            if batch > last:
                self.delete(batch)

    def _batches(self) -> set[int]:
        if self._written is None:
            names = (found.name.partition(".") for found in self._storage.list_folder())
            self._written = {int(stem) for stem, _, suffix in names if suffix == _SUFFIX and stem.isdecimal()}
        return self._written


def _name(batch: int) -> str:
    return f"{batch:012d}.{_SUFFIX}"
