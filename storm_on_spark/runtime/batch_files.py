"""Files that belong to one micro-batch: outcomes and carried tuples.

One file a batch, written whole and renamed into place, so it is there or it isn't. Format, little endian:
magic "SBAT", version u16, reserved u16, chunks u32, then for each chunk length u32, crc u32, bytes; no more.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from zlib import crc32

from storm_on_spark.api.errors import CheckpointError

VERSION = 1
_HEAD = struct.Struct("<4sHHI")
_PART = struct.Struct("<II")
_MAGIC = b"SBAT"
_SUFFIX = ".bin"


class BatchFiles:
    """The files of one kind.

    Args:
        folder: where they are; made when missing.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def write(self, batch: int, chunks: Sequence[bytes]) -> None:
        """Writes a batch's file in place of one from an earlier attempt; without chunks there is none.

        Raises:
            OSError: the disk is full or fails; the file of the earlier attempt remains.
        """
        path = self._path(batch)
        temporary = path.with_suffix(".tmp")
        if not chunks:
            path.unlink(missing_ok=True)
            temporary.unlink(missing_ok=True)  # an earlier attempt may have been killed while it wrote
            return
        parts = [_HEAD.pack(_MAGIC, VERSION, 0, len(chunks))]
        for body in chunks:
            parts += [_PART.pack(len(body), crc32(body)), body]
        try:
            temporary.write_bytes(b"".join(parts))
            temporary.replace(path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise

    def read(self, batch: int) -> list[bytes]:
        """Returns the chunks of a batch.

        Raises:
            CheckpointError: the file is missing, damaged or of another version.
        """
        path = self._path(batch)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise CheckpointError(f"{path} is missing") from None
        if len(data) < _HEAD.size or data[:4] != _MAGIC:
            raise CheckpointError(f"{path} is no file of a micro-batch")
        _, version, reserved, count = _HEAD.unpack_from(data)
        if version != VERSION:
            raise CheckpointError(f"{path} has format version {version}; this release reads {VERSION}")
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
        return sorted(int(path.stem) for path in self.folder.glob(f"*{_SUFFIX}") if path.stem.isdigit())

    def delete(self, batch: int) -> None:
        """Removes a batch's file."""
        self._path(batch).unlink(missing_ok=True)

    def _path(self, batch: int) -> Path:
        return self.folder / f"{batch:012d}{_SUFFIX}"
