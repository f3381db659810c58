"""The format of a spout log's records.

A segment is a row of records; a record is one *cut*: everything emitted since the last one, together with the snapshot
of the spout at that moment, so that log and spout can never disagree.

    header   magic "SLOG", version u16, reserved u16, entries u32, tuples u32, messages u32, first u64, clock i64,
             snapshot u64, body u64, crc u32 of the index, crc u32 of the header up to here
    index    entries * (target i32, length u32, crc u32)
    bodies   the chunks, one after the other

`target` is the task that a chunk is for, or SNAPSHOT or MESSAGE_IDS. What is for acker task n, counted from 0,
has the target ACKER - n: ackers are numbered after all components, so their tasks may be others when the log is read
after a restart. `snapshot` is the position of the record that holds the snapshot, since an unchanged one isn't written
again; it is never in an earlier segment. `first` is the number of the first message with an id, `clock` the time of
the topology in ms. All checksums are CRC-32. Little endian.

A record of a few tuples is for the most part like the ones before, so it may be *brief*:

    magic "SB", size u16, back u16, crc u32 of the record as it was and as it is here
    the record by raw deflate, with the ones before as the dictionary

The dictionary begins with the record that begins `back` bytes before, in the same segment, and isn't brief: the *key*.
Those after it, as they were, follow until there are `MOST_BRIEF` bytes; of more the last ones count. In a brief record
all checksums are 0, and `snapshot` is how far before the record that one begins.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from zlib import crc32

from storm_on_spark.api.text.wording import other_format
from storm_on_spark.runtime.spouts.log.lineage import NOBODY, Mark, WriterEpoch

VERSION = 4
SNAPSHOT = -2
MESSAGE_IDS = -3
ACKER = -16

_MAGIC = b"SLOG"
_HEADER = struct.Struct("<4sHHIIIQqQQII")
_CHECKED = _HEADER.size - 4
"""How much of the header its checksum covers."""
_ENTRY = struct.Struct("<iII")

HEADER_BYTES = _HEADER.size

_BRIEF = struct.Struct("<2sHHI")
_BRIEF_MAGIC = b"SB"
BRIEF_BYTES = _BRIEF.size
_MOST_BACK = (1 << 16) - 1
_WINDOW_BITS = -12
"""Of raw deflate. With more, a compressor takes longer to make than all the rest of a record."""
MOST_BRIEF = (1 << 12) - 262
"""Bytes that are all within the window; see `deflateSetDictionary` of zlib."""

Entry = tuple[int, bytes]
"""Target task (or SNAPSHOT, MESSAGE_IDS) and chunk."""


@dataclass(frozen=True)
class Cut:
    """A record's header."""

    position: int
    end: int
    """Position after the record: the offset that a micro-batch may end at."""
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
        """The record's end position and writer."""
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


class Key:
    """What the brief records are packed with that follow a record.

    Args:
        position: of that record.
        dictionary: its last bytes, and of some after it.
    """

    __slots__ = ("_packer", "dictionary", "position")

    def __init__(self, position: int, dictionary: bytes) -> None:
        self.position = position
        self.dictionary = dictionary
        self._packer: Any = None

    @classmethod
    def of(cls, position: int, record: bytes) -> Key:
        """Returns the key that a record at `position` is, which isn't brief."""
        return cls(position, record[-MOST_BRIEF:])

    @property
    def is_full(self) -> bool:
        """Whether it is the same for all records that follow."""
        return len(self.dictionary) == MOST_BRIEF

    def with_next(self, record: bytes) -> Key:
        """Returns the key of the records after a brief one, which is given as it was."""
        return self if self.is_full else Key.of(self.position, self.dictionary + record)

    def pack(self, record: bytes) -> bytes:
        """Returns a record by raw deflate."""
        if self._packer is None:
            self._packer = zlib.compressobj(6, zlib.DEFLATED, _WINDOW_BITS, 4, zlib.Z_DEFAULT_STRATEGY, self.dictionary)
        packer = self._packer.copy()  # it has gone through the dictionary
        packed: bytes = packer.compress(record) + packer.flush()
        return packed


def encode(
    mark: Mark,
    entries: Sequence[Entry],
    *,
    tuples: int,
    messages: int,
    first: int,
    clock: int,
    snapshot: int,
    key: Key | None = None,
) -> tuple[Cut, bytes, Key]:
    """Returns a record, as its header and as bytes, and the key for the next.

    Args:
        mark: where it begins, and its writer.
        entries: the chunks.
        tuples: as in `Cut`, with all that follow.
        messages: their number.
        first: the first one's.
        clock: the topology's time.
        snapshot: a position.
        key: a record before it in its segment. With it the record is brief, if that saves half of it.
    """
    position = mark.position
    size = sum(len(body) for _, body in entries)
    counts = len(entries), tuples, messages, first, clock
    bodies = [body for _, body in entries]
    if key is not None and HEADER_BYTES + len(entries) * _ENTRY.size + size <= MOST_BRIEF:
        index = b"".join(_ENTRY.pack(target, len(body), 0) for target, body in entries)
        head = _HEADER.pack(_MAGIC, VERSION, 0, *counts, position - snapshot, size, 0, 0)
        record = b"".join((head, index, *bodies))
        brief = _brief(record, position, key)
        if brief is not None:
            return Cut(position, position + len(brief), *counts, snapshot, mark.epoch), brief, key.with_next(record)
    index = b"".join(_ENTRY.pack(target, len(body), crc32(body)) for target, body in entries)
    head = _HEADER.pack(_MAGIC, VERSION, 0, *counts, snapshot, size, crc32(index), 0)[:_CHECKED]
    record = b"".join((head, struct.pack("<I", crc32(head)), index, *bodies))
    return Cut(position, position + len(record), *counts, snapshot, mark.epoch), record, Key.of(position, record)


def _brief(record: bytes, position: int, key: Key) -> bytes | None:
    """Returns a record without checksums as a brief one; None if it should not be."""
    back = position - key.position
    if back > _MOST_BACK:
        return None
    packed = key.pack(record)
    if 2 * len(packed) > len(record):
        return None
    return _BRIEF.pack(_BRIEF_MAGIC, len(packed), back, crc32(packed, crc32(record))) + packed


class Brief(NamedTuple):
    """What stands before a brief record."""

    position: int
    start: int
    """Where what is packed begins."""
    end: int
    key: int
    """The position of its key."""
    checksum: int

    def unpack(self, packed: bytes, key: Key) -> bytes:
        """Returns the unpacked record.

        Raises:
            RecordError: it or its key is damaged.
        """
        what = f"the record at position {self.position}"
        unpacker = zlib.decompressobj(_WINDOW_BITS, key.dictionary)
        try:
            record = unpacker.decompress(packed, MOST_BRIEF + 1)
        except zlib.error as error:
            raise RecordError(f"is damaged: {what} doesn't follow from what is before it: {error}") from error
        if not unpacker.eof:
            raise RecordError(f"is damaged: {what} is cut short")
        if crc32(packed, crc32(record)) != self.checksum:
            raise RecordError(f"is damaged: {what} has the wrong checksum")
        return record

    def decode(self, record: bytes, epoch: WriterEpoch) -> tuple[Cut, list[Entry]]:
        """Returns what the record says that `unpack` has returned, and its chunks."""
        _, _, _, chunks, tuples, messages, first, clock, back, _, _, _ = _HEADER.unpack_from(record)
        snapshot = self.position - back
        entries: list[Entry] = []
        at = _HEADER.size + chunks * _ENTRY.size
        for target, length, _ in _ENTRY.iter_unpack(record[_HEADER.size : at]):
            entries.append((target, record[at : at + length]))
            at += length
        return Cut(self.position, self.end, chunks, tuples, messages, first, clock, snapshot, epoch), entries


def decode_brief(data: bytes, position: int) -> Brief | None:
    """Returns what a record's first bytes, at least `BRIEF_BYTES`, say if it is brief, or else None."""
    if not data.startswith(_BRIEF_MAGIC):
        return None
    _, size, back, checksum = _BRIEF.unpack_from(data)
    start = position + _BRIEF.size
    return Brief(position, start, start + size, position - back, checksum)


def decode_head(data: bytes, position: int, epoch: WriterEpoch) -> Head:
    """Returns what the header says that is in the `HEADER_BYTES` bytes at `position` of a segment of `epoch`.

    Raises:
        VersionError: it is of another version.
        RecordError: it is damaged.
    """
    magic, version, _, entries, tuples, messages, first, clock, snapshot, size, of_index, of_head = _HEADER.unpack(data)
    # Version 0 is what a page leaves that never reached the disk.
    if magic == _MAGIC and version not in (VERSION, 0):
        raise VersionError(other_format(f"at position {position}", version, VERSION))
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
    """Returns `body` if it is the chunk that the index describes.

    Raises:
        RecordError: it isn't.
    """
    if len(body) != length or crc32(body) != checksum:
        raise RecordError(f"is damaged: a chunk of the record at position {cut.position} has the wrong checksum")
    return body
