"""The format of a spout log's records.

A segment is a row of records; a record is one *cut*: everything emitted since the last one, together with the snapshot
of the spout at that moment, so that log and spout can never disagree.

    header   magic "SLOG", version u16, reserved u16, entries u32, tuples u32, messages u32, first u64, clock i64,
             snapshot u64, body u64, crc u32 of the index, crc u32 of the header up to here
    index    entries * (target i32, length u32, crc u32)
    bodies   the chunks, one after the other

`target` is the task that a chunk is for, or SNAPSHOT, CHANGE or MESSAGE_IDS. What is for acker task n, counted from 0,
has the target ACKER - n: ackers are numbered behind all components, so their tasks may be others when the log is read
after a restart. `snapshot` is the position of the record that holds the snapshot, since an unchanged one isn't written
again; it never lies in an earlier segment. A CHANGE says how the snapshot of its own record differs from that one: raw
deflate, with that one as the dictionary. `first` is the number of the first message with an id, `clock` the topology's
time in ms. All checksums are CRC-32. Little endian.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from zlib import crc32

from storm_on_spark.runtime.spouts.log.lineage import NOBODY, Mark, WriterEpoch

VERSION = 2
"""Records of version 1 have no CHANGE."""
SNAPSHOT = -2
MESSAGE_IDS = -3
CHANGE = -4
ACKER = -16

_MAGIC = b"SLOG"
_HEADER = struct.Struct("<4sHHIIIQqQQII")
_CHECKED = _HEADER.size - 4
"""How much of the header its checksum covers."""
_ENTRY = struct.Struct("<iII")

HEADER_BYTES = _HEADER.size

Entry = tuple[int, bytes]
"""Target task (or SNAPSHOT, CHANGE, MESSAGE_IDS) and chunk."""


@dataclass(frozen=True)
class Cut:
    """A record's header."""

    position: int
    end: int
    """Position behind the record: the offset that a micro-batch may end at."""
    entries: int
    tuples: int
    messages: int
    first: int
    clock: int
    snapshot: int
    epoch: WriterEpoch = NOBODY
    """Of the writer; not in the record, but in the segment's name."""

    @property
    def mark(self) -> Mark:
        """Where the record ends, and whose it is."""
        return Mark(self.end, self.epoch)


class Head(NamedTuple):
    """What a header says."""

    cut: Cut
    index_bytes: int
    index_checksum: int


class RecordError(Exception):
    """There is no record of this release here.

    Args:
        reason: of a sentence about the log, what comes after its name.
    """


class VersionError(RecordError):
    """It is another release's."""


class MissingError(RecordError):
    """The log ends before it, or in it."""


_WINDOW_BITS = -12
"""Of raw deflate. With more, a compressor takes longer to make than all the rest of a record."""
_MOST_CHANGED = (1 << 12) - 262
"""Bytes of a snapshot that are all within the window; see `deflateSetDictionary` of zlib."""


def change(whole: bytes, snapshot: bytes) -> bytes | None:
    """Returns how a snapshot differs from one that is whole; None if it should be written as a whole, too.

    Example:
        >>> before, after = bytes(range(200)), bytes(range(199)) + b"!"
        >>> found = change(before, after)
        >>> len(found) < 20, changed(before, found) == after, change(b"", after)
        (True, True, None)
    """
    if len(whole) > _MOST_CHANGED or len(snapshot) > _MOST_CHANGED:
        return None
    packer = zlib.compressobj(1, zlib.DEFLATED, _WINDOW_BITS, 4, zlib.Z_DEFAULT_STRATEGY, whole)
    found = packer.compress(snapshot) + packer.flush()
    return found if 2 * len(found) <= len(snapshot) else None


def changed(whole: bytes, change: bytes) -> bytes:
    """Returns the snapshot that `change` was made of.

    Raises:
        RecordError: it was made with another one.
    """
    unpacker = zlib.decompressobj(_WINDOW_BITS, whole)
    try:
        found = unpacker.decompress(change)
    except zlib.error as error:
        raise RecordError(f"is damaged: a snapshot doesn't follow from the one before: {error}") from error
    if not unpacker.eof:
        raise RecordError("is damaged: the change of a snapshot is cut short")
    return found


def encode(
    mark: Mark,
    entries: Sequence[Entry],
    *,
    tuples: int,
    messages: int,
    first: int,
    clock: int,
    snapshot: int,
) -> tuple[Cut, bytes]:
    """Returns a record, as its header and as bytes.

    Args:
        mark: where it begins, and who writes it.
        entries: the chunks.
        tuples: as in `Cut`, with all that follow.
        messages: their number.
        first: the first one's.
        clock: the topology's time.
        snapshot: a position.
    """
    index = b"".join(_ENTRY.pack(target, len(body), crc32(body)) for target, body in entries)
    size = sum(len(body) for _, body in entries)
    head = _HEADER.pack(
        _MAGIC, VERSION, 0, len(entries), tuples, messages, first, clock, snapshot, size, crc32(index), 0
    )[:_CHECKED]
    record = b"".join((head, struct.pack("<I", crc32(head)), index, *(body for _, body in entries)))
    end = mark.position + len(record)
    return Cut(mark.position, end, len(entries), tuples, messages, first, clock, snapshot, mark.epoch), record


def decode_head(data: bytes, position: int, epoch: WriterEpoch) -> Head:
    """Returns what the header says that stands in the `HEADER_BYTES` bytes at `position` of a segment of `epoch`.

    Raises:
        VersionError: it is of another version.
        RecordError: it is damaged.
    """
    magic, version, _, entries, tuples, messages, first, clock, snapshot, size, of_index, of_head = _HEADER.unpack(data)
    # No release wrote version 0: that is what a page leaves that never reached the disk.
    if magic == _MAGIC and version > VERSION:
        raise VersionError(f"has format version {version} at position {position}; this release reads {VERSION}")
    if magic != _MAGIC or crc32(data[:_CHECKED]) != of_head:
        raise RecordError(f"is damaged: there is no record at position {position}")
    index_bytes = entries * _ENTRY.size
    end = position + _HEADER.size + index_bytes + size
    return Head(Cut(position, end, entries, tuples, messages, first, clock, snapshot, epoch), index_bytes, of_index)


def decode_index(data: bytes, head: Head) -> Iterator[tuple[int, int, int]]:
    """Yields (target, length, checksum) of the record's chunks.

    Raises:
        RecordError: it is damaged.
    """
    if crc32(data) != head.index_checksum:
        raise RecordError(f"is damaged: the index of the record at position {head.cut.position} has the wrong checksum")
    return _ENTRY.iter_unpack(data)


def check_body(body: bytes, length: int, checksum: int, cut: Cut) -> bytes:
    """Returns `body` if it is the chunk that the index tells of.

    Raises:
        RecordError: it isn't.
    """
    if len(body) != length or crc32(body) != checksum:
        raise RecordError(f"is damaged: a chunk of the record at position {cut.position} has the wrong checksum")
    return body
