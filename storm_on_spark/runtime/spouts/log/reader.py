"""Reading a range of a spout log, on any machine that sees its folder."""

from __future__ import annotations

import contextlib
import io
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.runtime.spouts.log.ahead import Ahead
from storm_on_spark.runtime.spouts.log.lineage import Line, Mark, Segment, WriterEpoch, line_of, newest
from storm_on_spark.runtime.spouts.log.record import (
    HEADER_BYTES,
    Cut,
    Head,
    MissingError,
    RecordError,
    VersionError,
    check_body,
    decode_head,
    decode_index,
)
from storm_on_spark.runtime.storage import Folder, name_of

log = logging.getLogger(__name__)


def list_segments(folder: Folder) -> list[Segment]:
    """Returns all segments in `folder`, by position; also those that don't count."""
    if not isinstance(folder, Path):
        return sorted(filter(None, (Segment.parse(found.name) for found in folder.list_folder())))
    if not folder.is_dir():
        return []
    return sorted(filter(None, (Segment.parse(path.name) for path in folder.iterdir())))


def line_in(folder: Folder, epoch: WriterEpoch | None) -> Line:
    """Returns what counts in `folder` for a writer; for the latest one for None."""
    segments = list_segments(folder)
    epoch = newest(segments, Mark()) if epoch is None else epoch
    return [] if epoch is None else line_of(segments, epoch)


def iter_cuts(folder: Folder, start: int, end: int, epoch: WriterEpoch | None = None) -> Iterator[Cut]:
    """Yields the headers of the records from position `start` to `end`.

    Args:
        folder: the task's log.
        start: where a record begins.
        end: where one ends.
        epoch: of the writer whose record ends at `end`; the latest writer's for None.

    Raises:
        CheckpointError: there is no whole record where one must be.
    """
    with named(folder):
        for record in records(folder, line_in(folder, epoch), start, end):
            yield record.head.cut


def read_entries(
    folder: Folder, start: int, end: int, wanted: Callable[[int], bool], epoch: WriterEpoch | None = None
) -> Iterator[tuple[Cut, int, bytes]]:
    """Yields (cut, target, chunk) of the records in [start, end) for the targets that `wanted` wants.

    Args:
        folder: the task's log.
        start: where a record begins.
        end: where one ends.
        wanted: which chunks to read.
        epoch: of the writer whose record ends at `end`; the latest writer's for None.

    Raises:
        CheckpointError: a record or chunk is missing or damaged.
    """
    with named(folder):
        for record in records(folder, line_in(folder, epoch), start, end):
            for target, body in record.bodies(wanted):
                yield record.head.cut, target, body


class Record(NamedTuple):
    """A record with a sound header and index; its bodies can be read until the next record is asked for."""

    head: Head
    chunks: list[tuple[int, int, int]]
    file: BinaryIO

    def bodies(self, wanted: Callable[[int], bool]) -> Iterator[tuple[int, bytes]]:
        """Yields (target, chunk) for the targets that `wanted` wants.

        Raises:
            RecordError: a chunk is damaged.
        """
        offset = self.file.tell()
        for target, length, checksum in self.chunks:
            if wanted(target):
                self.file.seek(offset)
                yield target, check_body(self.file.read(length), length, checksum, self.head.cut)
            offset += length


def records(folder: Folder, line: Line, start: int, end: int) -> Iterator[Record]:
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
        with _opened(folder, segment, ahead) as (file, size):
            while position < to:
                record = _read_record(file, size, segment, position)
                if record is None or record.head.cut.end > to:
                    raise MissingError(f"has no whole record at position {position}; the log must reach to {to}")
                yield record
                position = record.head.cut.end
    if position < end:
        raise CheckpointError(
            f"spout log {name_of(folder)} has no segment for position {position}; it was trimmed or lost"
        )


def whole_cuts(folder: Folder, line: Line, start: int) -> Iterator[Cut]:
    """Yields the headers of the records behind `start` as long as they are whole.

    An end of the records is not an error, whatever bytes follow: a machine that died may leave any rest.

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
        with _opened(folder, segment, ahead) as (file, size):
            while until is None or position < until:
                try:
                    record = _read_record(file, size, segment, position)
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
                yield record.head.cut
                position = record.head.cut.end


@contextlib.contextmanager
def named(folder: Folder) -> Iterator[None]:
    """Says which log it is that has an error."""
    try:
        yield
    except RecordError as error:
        raise CheckpointError(f"spout log {name_of(folder)} {error}") from None


def _read_record(file: BinaryIO, size: int, segment: Segment, position: int) -> Record | None:
    """Returns the record at a position of a segment, or None if it was cut short.

    Raises:
        RecordError: it is damaged or of another version.
    """
    end = segment.base + size
    if position + HEADER_BYTES > end:
        return None
    file.seek(position - segment.base)
    head = decode_head(file.read(HEADER_BYTES), position, segment.epoch)
    if head.cut.end > end:
        return None
    return Record(head, list(decode_index(file.read(head.index_bytes), head)), file)


def _ahead(folder: Folder, segments: Sequence[Segment]) -> Ahead | None:
    """Returns what reads segments of a store before they are asked for: each takes a round trip or two."""
    return None if isinstance(folder, Path) or len(segments) < 2 else Ahead(folder, segments)


@contextlib.contextmanager
def _opened(folder: Folder, segment: Segment, ahead: Ahead | None) -> Iterator[tuple[BinaryIO, int]]:
    """Yields a segment's file and its size."""
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
        yield file, size
