"""The spout log: an append-only record of what a spout task emitted.

A micro-batch must be repeatable, so what a spout emits is written here before Spark hears of it, and a batch is a
range of positions. The log of a task is a folder of segments, each named by the position of its first byte. A segment
is a row of records; a record is one *cut*: everything emitted since the last one, together with the snapshot of the
spout at that moment, so that log and spout can never disagree.

    header   magic "SLOG", version u16, reserved u16, entries u32, tuples u32, messages u32, first u64, clock i64,
             snapshot u64, body u64, crc u32 of the index, crc u32 of the header up to here
    index    entries * (target i32, length u32, crc u32)
    bodies   the chunks, one after the other

`target` is the task that a chunk is for, or SNAPSHOT or MESSAGE_IDS. What is for acker task n, counted from 0, has the
target ACKER - n: ackers are numbered behind all components, so their tasks may be others when the log is read after a
restart. `snapshot` is the position of the record that holds the snapshot, since an unchanged one isn't written again;
it never lies in an earlier segment. `first` is the number of the first message with an id, `clock` the topology's time
in ms. All checksums are CRC-32.

A crash can cut the last record short, wherever it was being written; such a rest was never given to Spark and is
dropped. The header has a checksum of its own, so that a damaged one can't pass for a record that was cut short.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO
from zlib import crc32

from storm_on_spark.api.errors import CheckpointError

VERSION = 1
SNAPSHOT = -2
MESSAGE_IDS = -3
ACKER = -16
SEGMENT_BYTES = 16 << 20

_MAGIC = b"SLOG"
_HEADER = struct.Struct("<4sHHIIIQqQQII")
_CHECKED = _HEADER.size - 4
"""How much of the header its checksum covers."""
_ENTRY = struct.Struct("<iII")
_SUFFIX = ".log"

Entry = tuple[int, bytes]
"""Target task (or SNAPSHOT, MESSAGE_IDS) and chunk."""


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


class SpoutLog:
    """The log of one spout task, open for writing. One process at a time writes a log.

    Args:
        folder: where the segments are; made when missing.
        segment_bytes: a segment that has grown beyond this is followed by a new one.

    Raises:
        CheckpointError: a record before the last is damaged, or of another version.
        OSError: the folder can't be written.
    """

    def __init__(self, folder: Path, segment_bytes: int = SEGMENT_BYTES) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._segment_bytes = segment_bytes
        #: The last complete record; None in a new log.
        self.last: Cut | None = None
        segments = list_segments(folder) or [0]
        while True:
            self._base = self.end = segments.pop()
            for cut in iter_cuts(folder, self._base, None):
                self.last, self.end = cut, cut.end
            if self.last is not None or not segments:
                break
            # A crash came between making this segment and completing its first record.
            (folder / segment_name(self._base)).unlink()
        self._file = self._open(self._base, 0)
        os.ftruncate(self._file, self.end - self._base)

    def append(
        self,
        entries: Sequence[Entry],
        *,
        tuples: int,
        messages: int,
        first: int,
        clock: int,
        snapshot: bytes | None,
    ) -> Cut:
        """Writes one record and returns its header.

        Args:
            entries: the chunks.
            tuples: how many tuples they hold.
            messages: how many of these have message ids.
            first: the number of the first of these.
            clock: the topology's time in ms.
            snapshot: the spout's snapshot if it differs from the last one; the first record needs one.

        Raises:
            OSError: the disk is full or fails; nothing of the record remains.
        """
        position = self.end
        if snapshot is not None:
            entries = [*entries, (SNAPSHOT, snapshot)]
            at = position
        else:
            assert self.last is not None, "the first record of a log needs a snapshot"
            at = self.last.snapshot
        index = b"".join(_ENTRY.pack(target, len(body), crc32(body)) for target, body in entries)
        size = sum(len(body) for _, body in entries)
        head = _HEADER.pack(
            _MAGIC, VERSION, 0, len(entries), tuples, messages, first, clock, at, size, crc32(index), 0
        )[:_CHECKED]
        record = b"".join((head, struct.pack("<I", crc32(head)), index, *(body for _, body in entries)))
        if snapshot is not None and self.wants_snapshot:
            self._roll(record)
        else:
            self._write(self._file, record, position - self._base)
        self.end = position + len(record)
        self.last = Cut(position, self.end, len(entries), tuples, messages, first, clock, at)
        return self.last

    @property
    def wants_snapshot(self) -> bool:
        """Whether the next record should carry its snapshot even if unchanged, so that a new segment can begin."""
        return self.end - self._base > self._segment_bytes

    @property
    def base(self) -> int:
        """The position at which the segment begins that is being written."""
        return self._base

    def trim(self, position: int) -> None:
        """Deletes the segments that end at or before `position`; the one being written stays."""
        segments = list_segments(self.folder)
        for base, following in pairwise(segments):
            if following <= position:
                (self.folder / segment_name(base)).unlink(missing_ok=True)

    def close(self) -> None:
        """Closes the file; without effect the second time."""
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)

    def _roll(self, record: bytes) -> None:
        """Begins a new segment with a record."""
        following = self._open(self.end, os.O_EXCL)
        try:
            self._write(following, record, 0)
        except OSError:
            os.close(following)
            (self.folder / segment_name(self.end)).unlink()
            raise
        os.close(self._file)
        self._file, self._base = following, self.end

    def _open(self, base: int, flags: int) -> int:
        return os.open(
            self.folder / segment_name(base), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | flags, 0o600
        )

    @staticmethod
    def _write(file: int, record: bytes, size: int) -> None:
        try:
            view = memoryview(record)
            while view:
                view = view[os.write(file, view) :]
        except OSError:
            os.ftruncate(file, size)
            raise


def segment_name(base: int) -> str:
    """Returns the file name of the segment that begins at position `base`."""
    return f"{base:020d}{_SUFFIX}"


def list_segments(folder: Path) -> list[int]:
    """Returns the first positions of the segments in `folder`, ascending."""
    if not folder.is_dir():
        return []
    return sorted(int(path.stem) for path in folder.iterdir() if path.suffix == _SUFFIX and path.stem.isdigit())


def iter_cuts(folder: Path, start: int, end: int | None) -> Iterator[Cut]:
    """Yields the headers of the records from position `start` to `end`, or to the last complete one for None.

    Raises:
        CheckpointError: there is no whole record where one must be.
    """
    for cut, _, _ in _records(folder, start, end):
        yield cut


def read_entries(folder: Path, start: int, end: int, wanted: Callable[[int], bool]) -> Iterator[tuple[Cut, int, bytes]]:
    """Yields (cut, target, chunk) of the records in [start, end) for the targets that `wanted` wants.

    Raises:
        CheckpointError: a record or chunk is missing or damaged.
    """
    for cut, index, file in _records(folder, start, end):
        offset = file.tell()
        for target, length, checksum in _ENTRY.iter_unpack(index):
            if wanted(target):
                file.seek(offset)
                body = file.read(length)
                if len(body) != length or crc32(body) != checksum:
                    raise CheckpointError(
                        f"spout log {folder} is damaged: a chunk of the record at position {cut.position} "
                        "has the wrong checksum"
                    )
                yield cut, target, body
            offset += length


def _records(folder: Path, start: int, end: int | None) -> Iterator[tuple[Cut, bytes, BinaryIO]]:
    segments = list_segments(folder)
    position = start
    while end is None or position < end:
        base = max((s for s in segments if s <= position), default=None)
        following = min((s for s in segments if s > position), default=None)
        if base is None:
            if end is None:
                return
            raise CheckpointError(f"spout log {folder} has no segment for position {position}; it was trimmed or lost")
        with (folder / segment_name(base)).open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            while end is None or position < end:
                if following is not None and position >= following:
                    break
                file.seek(position - base)
                found = _read_header(file, folder, position, size - (position - base))
                if found is None:
                    if end is None and following is None:
                        return
                    raise CheckpointError(
                        f"spout log {folder} has no whole record at position {position}; "
                        f"the log must reach to {end if end is not None else following}"
                    )
                cut, index = found
                yield cut, index, file
                position = cut.end


def _read_header(file: BinaryIO, folder: Path, position: int, available: int) -> tuple[Cut, bytes] | None:
    """Returns the record's header and index, or None when the record was cut short.

    Raises:
        CheckpointError: it is damaged or of another version.
    """
    if available < _HEADER.size:
        return None
    head = file.read(_HEADER.size)
    magic, version, _, entries, tuples, messages, first, clock, snapshot, size, of_index, of_head = _HEADER.unpack(head)
    if magic == _MAGIC and version != VERSION:
        raise CheckpointError(
            f"spout log {folder} has format version {version} at position {position}; this release reads {VERSION}"
        )
    if magic != _MAGIC or crc32(head[:_CHECKED]) != of_head:
        raise CheckpointError(f"spout log {folder} is damaged: there is no record at position {position}")
    length = _HEADER.size + entries * _ENTRY.size + size
    if available < length:
        return None
    index = file.read(entries * _ENTRY.size)
    if crc32(index) != of_index:
        raise CheckpointError(
            f"spout log {folder} is damaged: the index of the record at position {position} has the wrong checksum"
        )
    return Cut(position, position + length, entries, tuples, messages, first, clock, snapshot), index
