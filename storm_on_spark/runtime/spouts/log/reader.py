"""Reading a range of a spout log, on any machine that sees its folder."""

from __future__ import annotations

import contextlib
import io
import logging
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.runtime.spouts.log.ahead import Ahead
from storm_on_spark.runtime.spouts.log.lineage import Line, Mark, Segment, WriterEpoch, counts, line_of, newest
from storm_on_spark.runtime.spouts.log.record import (
    BRIEF_BYTES,
    HEADER_BYTES,
    MOST_BRIEF,
    Brief,
    Cut,
    Entry,
    Key,
    MissingError,
    RecordError,
    VersionError,
    check_body,
    decode_brief,
    decode_head,
    decode_index,
)
from storm_on_spark.runtime.storage import Folder, name_of

log = logging.getLogger(__name__)


def list_segments(folder: Folder) -> list[Segment]:
    """Returns all segments in `folder` by position, including those that don't count."""
    if not isinstance(folder, Path):
        return sorted(filter(None, (Segment.parse(found.name) for found in folder.list_folder())))
    if not folder.is_dir():
        return []
    return sorted(filter(None, (Segment.parse(path.name) for path in folder.iterdir())))


def line_in(folder: Folder, epoch: WriterEpoch | None) -> Line:
    """Returns the segments in `folder` that count for a writer (None: the latest one)."""
    segments = list_segments(folder)
    epoch = newest(segments, Mark()) if epoch is None else epoch
    return [] if epoch is None else line_of(segments, epoch)


def iter_cuts(folder: Folder, start: int, end: int, epoch: WriterEpoch | None = None) -> Iterator[Cut]:
    """Yields the headers of the records from position `start` to `end`.

    Args:
        folder: the task's log.
        start: where a record begins.
        end: where one ends.
        epoch: of the writer whose record ends at `end`. None means the latest writer.

    Raises:
        CheckpointError: there is no whole record where one must be.
    """
    with named(folder):
        for record in records(folder, line_in(folder, epoch), start, end):
            yield record.cut


def read_entries(
    folder: Folder, start: int, end: int, wanted: Callable[[int], bool], epoch: WriterEpoch | None = None
) -> Iterator[tuple[Cut, int, bytes]]:
    """Yields (cut, target, chunk) of the records in [start, end) for the targets that `wanted` wants.

    Args:
        folder: the task's log.
        start: where a record begins.
        end: where one ends.
        wanted: which chunks to read.
        epoch: of the writer whose record ends at `end`. None means the latest writer.

    Raises:
        CheckpointError: a record or chunk is missing or damaged.
    """
    with named(folder):
        for record in records(folder, line_in(folder, epoch), start, end):
            for target, body in record.bodies(wanted):
                yield record.cut, target, body


class Steps:
    """Reads a part of a log once, in steps. A store's log may have an object for each of them, and is listed once.

    Args:
        folder: the task's log.
        start: the end of a record.
        end: that of a later one; what counts for its writer is read.
    """

    def __init__(self, folder: Folder, start: Mark, end: Mark) -> None:
        self._folder = folder
        self._position, self._end = start.position, end.position
        line = line_in(folder, end.epoch)
        self._continues = start.epoch == end.epoch or counts(line, start)
        #: By writer: where what counts of it ends, and begins.
        self._until = {live.segment.epoch: live.until for live in line}
        self._since = {live.segment.epoch: live.segment.base for live in reversed(line)}
        self._records = records(folder, line, start.position, end.position)

    def reach(self, mark: Mark) -> bool:
        """Returns whether the beginning and the record that ends at `mark` count for the writer of the last one."""
        if not self._continues or mark.epoch not in self._since:
            return False
        until = self._until[mark.epoch]
        return self._since[mark.epoch] <= mark.position and (until is None or mark.position <= until)

    def up_to(self, position: int) -> Iterator[Entry]:
        """Yields (target, chunk) from where the last step ended to the end of the record that ends at `position`.

        Raises:
            CheckpointError: a record is missing or damaged, or none ends there.
        """
        with named(self._folder):
            while self._position < position:
                record = next(self._records)
                yield from record.bodies(lambda _: True)
                self._position = record.cut.end
            if self._position > position:
                raise MissingError(f"has no record that ends at position {position}")
        if position == self._end:
            self.close()

    def close(self) -> None:
        """Closes the segment that is being read."""
        self._records.close()


class Record(NamedTuple):
    """A record with a valid header and index. Its chunks can be read until the next record is requested."""

    cut: Cut
    chunks: list[tuple[int, int, int]]
    """Target, length and checksum."""
    file: BinaryIO

    def bodies(self, wanted: Callable[[int], bool]) -> Iterator[Entry]:
        """Yields (target, chunk) for the targets that `wanted` wants.

        Raises:
            RecordError: a chunk is damaged.
        """
        offset = self.file.tell()
        for target, length, checksum in self.chunks:
            if wanted(target):
                self.file.seek(offset)
                yield target, check_body(self.file.read(length), length, checksum, self.cut)
            offset += length


class BriefRecord(NamedTuple):
    """A record that was brief."""

    cut: Cut
    entries: list[Entry]

    def bodies(self, wanted: Callable[[int], bool]) -> Iterator[Entry]:
        """Yields (target, chunk) for the targets that `wanted` wants."""
        return (entry for entry in self.entries if wanted(entry[0]))


def records(folder: Folder, line: Line, start: int, end: int) -> Generator[Record | BriefRecord]:
    """Yields the records of a line from position `start` to `end`.

    Raises:
        CheckpointError: there is no segment where one must be.
        MissingError: there is no whole record where one must be.
        RecordError: one is damaged or of another version.
    """
    ahead = _ahead(folder, [s for s, until in line if s.base < end and (until is None or until > start)])
    position = start
    for segment, until in line:
        if position >= end:
            return
        if until is not None and until <= position:
            continue
        if segment.base > position:
            break
        to = end if until is None else min(end, until)
        with _opened(folder, segment, ahead) as opened:
            while position < to:
                record = opened.record(position)
                if record is None or record.cut.end > to:
                    raise MissingError(f"has no whole record at position {position}; the log must reach to {to}")
                yield record
                position = record.cut.end
    if position < end:
        raise CheckpointError(
            f"spout log {name_of(folder)} has no segment for position {position}; it was trimmed or lost"
        )


def whole_cuts(folder: Folder, line: Line, start: int) -> Iterator[Cut]:
    """Yields the headers of the records after `start` up to the first incomplete one.

    Arbitrary bytes after the last whole record are not an error: a crashed machine may leave them.

    Raises:
        CheckpointError: what follows is another release's.
    """
    ahead = _ahead(folder, [segment for segment, until in line if until is None or until > start])
    position = start
    for segment, until in line:
        if until is not None and until <= position:
            continue
        if segment.base > position:
            return
        with _opened(folder, segment, ahead) as opened:
            while until is None or position < until:
                try:
                    record = opened.record(position)
                    for _ in record.bodies(lambda target: True) if record else ():
                        pass
                except VersionError as error:
                    raise CheckpointError(f"spout log {name_of(folder)} {error}") from None
                except RecordError as error:
                    log.warning(
                        "spout log %s %s; Spark has planned none of it, so it is left out", name_of(folder), error
                    )
                    return
                if record is None:
                    return
                yield record.cut
                position = record.cut.end


@contextlib.contextmanager
def named(folder: Folder) -> Iterator[None]:
    """Adds the log's name to an error."""
    try:
        yield
    except RecordError as error:
        raise CheckpointError(f"spout log {name_of(folder)} {error}") from None


class _SegmentFile:
    """A segment, open for reading."""

    def __init__(self, segment: Segment, file: BinaryIO, size: int) -> None:
        self._segment = segment
        self._file = file
        self._end = segment.base + size
        #: The key of what follows the brief record that was read last, and where that ends.
        self._key: Key | None = None
        self._read_to = segment.base

    def record(self, position: int) -> Record | BriefRecord | None:
        """Returns the record at a position, or None if it was cut short.

        Raises:
            RecordError: it is damaged or of another version.
        """
        data = self._read(position, HEADER_BYTES)
        if len(data) < BRIEF_BYTES:
            return None
        brief = decode_brief(data, position)
        if brief is not None:
            return self._brief(brief)
        if len(data) < HEADER_BYTES:
            return None
        head = decode_head(data, position, self._segment.epoch)
        if head.cut.end > self._end:
            return None
        return Record(head.cut, list(decode_index(self._file.read(head.index_bytes), head)), self._file)

    def _brief(self, brief: Brief) -> BriefRecord | None:
        if brief.end > self._end:
            return None
        key, at = self._key, self._read_to
        if key is None or brief.key != key.position or brief.position < at:
            key, at = self._find_key(brief)
        while not key.is_full and at != brief.position:
            between = self._between(brief, at)
            key, at = key.with_next(self._unpacked(between, key)), between.end
        record = self._unpacked(brief, key)
        self._key, self._read_to = key.with_next(record), brief.end
        return BriefRecord(*brief.decode(record, self._segment.epoch))

    def _find_key(self, brief: Brief) -> tuple[Key, int]:
        """Returns the key as it is after the record that a brief one names, and where that record ends."""
        if not self._segment.base <= brief.key < brief.position:
            raise RecordError(f"is damaged: the record at position {brief.position} has no key")
        head = decode_head(self._read(brief.key, HEADER_BYTES), brief.key, self._segment.epoch)
        start = max(brief.key, head.cut.end - MOST_BRIEF)
        return Key(brief.key, self._read(start, head.cut.end - start)), head.cut.end

    def _between(self, brief: Brief, position: int) -> Brief:
        """Returns the record at a position between a brief record and its key; it must have the same key."""
        data = self._read(position, BRIEF_BYTES)
        between = decode_brief(data, position) if len(data) == BRIEF_BYTES else None
        if between is None or between.key != brief.key or between.end > brief.position:
            raise RecordError(f"is damaged: the record at position {brief.position} doesn't follow from its key")
        return between

    def _unpacked(self, brief: Brief, key: Key) -> bytes:
        return brief.unpack(self._read(brief.start, brief.end - brief.start), key)

    def _read(self, position: int, size: int) -> bytes:
        self._file.seek(position - self._segment.base)
        return self._file.read(size)


def _ahead(folder: Folder, segments: Sequence[Segment]) -> Ahead | None:
    """Returns a read-ahead for segments of a store, because each takes a round trip or two."""
    return None if isinstance(folder, Path) or len(segments) < 2 else Ahead(folder, segments)


@contextlib.contextmanager
def _opened(folder: Folder, segment: Segment, ahead: Ahead | None) -> Iterator[_SegmentFile]:
    """Yields a segment, open for reading."""
    try:
        if isinstance(folder, Path):
            file: BinaryIO = (folder / str(segment)).open("rb")
            size = os.fstat(file.fileno()).st_size
        else:
            content = folder.read(str(segment)) if ahead is None else ahead.read(segment)
            file, size = io.BytesIO(content), len(content)
    except FileNotFoundError:
        raise CheckpointError(f"spout log {name_of(folder)} has lost its segment {segment}") from None
    with file:
        yield _SegmentFile(segment, file, size)
