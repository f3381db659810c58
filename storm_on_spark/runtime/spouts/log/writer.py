"""A spout log, open for writing."""

from __future__ import annotations

import fcntl
import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar, Final

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.runtime.spouts.log.lineage import NOBODY, Line, Mark, Segment, WriterEpoch, line_of, newest
from storm_on_spark.runtime.spouts.log.reader import list_segments, named, records, whole_cuts
from storm_on_spark.runtime.spouts.log.record import SNAPSHOT, Cut, Entry, Key, MissingError, encode
from storm_on_spark.runtime.storage import Folder, name_of
from storm_on_spark.runtime.storage.durable import make_folder, sync_folder, write_all

log = logging.getLogger(__name__)

SEGMENT_BYTES = 16 << 20
_LOCK_SECONDS = 2.0
_MISSING = (
    "part of the checkpoint is missing. Either an older copy of the log was put back, or the machine was lost while "
    "topology.durability was 'process'. Put back a copy of the whole checkpoint, or start afresh with "
    "--reset-checkpoint"
)
_LOCK_POLL_SECONDS = 0.02


MOST_WITH_A_KEY: Final = 128
"""Brief records before there is a new key, as running numbers grow away from those in it.

Of 2,400 records of a sentence each has 105 bytes with a new one after 128, all counted; 112 after 32 or 1,000.
"""


class SpoutLog:
    """The log of one spout task, open for writing.

    It continues where the latest writer's line ends, in its own segments. Opening it writes nothing: the first segment
    is made with the first record.

    Args:
        folder: where the segments are; made when missing.
        segment_bytes: a segment that has grown beyond this is followed by a new one.
        epoch: this writer's, which no other process has; None, for the only user of a log,
            means the next one of the same owner.
        planned: where Spark's planning ends. Records before it must be whole; later ones count while they are.
        sync: whether a record must survive the loss of the machine when `append` returns.

    Raises:
        CheckpointError: the log doesn't reach what is planned, or is damaged up to there, or of another version.
        OSError: the folder can't be written.
    """

    has_keys: ClassVar[bool] = True
    """Whether records may be brief, as there are others in their segment: 105 of 491 bytes in real time."""

    def __init__(
        self,
        folder: Folder,
        segment_bytes: int = SEGMENT_BYTES,
        *,
        epoch: WriterEpoch | None = None,
        planned: Mark = Mark(),  # noqa: B008 # it is immutable
        sync: bool = False,
    ) -> None:
        self.folder = folder
        self._name = name_of(folder)
        self._segment_bytes = segment_bytes
        self._sync = sync
        #: The segment being written; none before the first record.
        self._segment: Segment | None = None
        self._file = self._lock = -1
        #: The last whole record; None in a new log.
        self.last: Cut | None = None
        #: What the next record may be packed with; none in a store.
        self._key: Key | None = None
        #: How many have been brief since.
        self._brief = 0
        #: Where the log ends, and the writer of the last record.
        self.written = Mark()
        self._prepare()
        segments = list_segments(folder)
        try:
            self._line = self._find_line(segments, planned)
        except BaseException:
            self.close()
            raise
        if epoch is None:
            latest = max((segment.epoch for segment in segments), default=NOBODY)
            epoch = WriterEpoch(max(1, latest.owner), latest.start + 1)
        self.epoch = epoch

    def _prepare(self) -> None:
        """Creates the folder and gives an earlier writer time to end."""
        make_folder(self._directory, sync=self._sync)
        self._lock = _locked(self._directory / "lock")

    @property
    def _directory(self) -> Path:
        assert isinstance(self.folder, Path), "a store has a log of its own kind"
        return self.folder

    def _find_line(self, segments: Sequence[Segment], planned: Mark) -> Line:
        """Returns what counts of the log, and finds the last record in that."""
        parent = newest(segments, planned)
        if parent is None:
            raise _too_short(self.folder, planned)
        line = line_of(segments, parent)
        if not line:
            return line
        # The one with the record that ends at what is planned, so that there is a last one also if the next is torn.
        first = max((s for s, _ in line if s.base < planned.position), default=line[0].segment)
        self.written = Mark(first.base, first.epoch if first.parent is None else first.parent)
        with named(self.folder):
            try:
                for record in records(self.folder, line, first.base, planned.position):
                    self.last = record.cut
            except MissingError as error:
                raise CheckpointError(
                    f"spout log {self._name} {error}, as Spark has planned micro-batches: {_MISSING}"
                ) from None
        for cut in whole_cuts(self.folder, line, first.base if self.last is None else self.last.end):
            self.last = cut
        if self.last is not None:
            self.written = self.last.mark
        elif first.base:
            raise _too_short(self.folder, planned)
        return line

    # --- writing ---------------------------------------------------------------

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
            snapshot: the spout's snapshot if it differs from the last one; a writer's first record needs one.

        Raises:
            CheckpointError: another process writes as this one.
            OSError: the disk is full or failed. No part of the record remains.
        """
        position = self.end
        begins = snapshot is not None and self.wants_snapshot
        if snapshot is not None:
            entries = [*entries, (SNAPSHOT, snapshot)]
            at = position
        else:
            assert self._segment is not None, "the first record of a writer needs a snapshot"
            assert self.last is not None
            at = self.last.snapshot
        cut, record, key = encode(
            Mark(position, self.epoch),
            entries,
            tuples=tuples,
            messages=messages,
            first=first,
            clock=clock,
            snapshot=at,
            key=None if begins or self._brief == MOST_WITH_A_KEY else self._key,
        )
        self._add(cut, record, begins)
        self.last, self.written = cut, cut.mark
        self._brief = self._brief + 1 if key.position != position else 0
        self._key = key if self.has_keys else None
        return cut

    def _add(self, cut: Cut, record: bytes, begins: bool) -> None:
        """Writes a record, which may begin a segment."""
        if begins:
            self._begin_segment(record)
        else:
            assert self._segment is not None
            self._write(self._file, record, cut.position - self._segment.base)

    @property
    def end(self) -> int:
        """The position after the last record."""
        return self.written.position

    @property
    def wants_snapshot(self) -> bool:
        """Whether the next record should carry its snapshot even if unchanged, so that a new segment can begin."""
        return self._segment is None or self.end - self._segment.base > self._segment_bytes

    @property
    def base(self) -> int | None:
        """The position at which the segment begins that is being written; None before the first record."""
        return None if self._segment is None else self._segment.base

    def _begin_segment(self, record: bytes) -> None:
        """Begins a new segment with a record."""
        segment = self._following()
        path = self._directory / str(segment)
        try:
            following = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            raise CheckpointError(f"spout log {self._name} has another writer with epoch {self.epoch}") from None
        try:
            self._write(following, record, 0)
            if self._sync:
                sync_folder(self._directory)
        except OSError:
            os.close(following)
            path.unlink()
            raise
        if self._file >= 0:
            os.close(self._file)
        self._file, self._segment = following, segment

    def _following(self) -> Segment:
        """Returns the segment that begins where the log ends."""
        return Segment(self.end, self.epoch, self.written.epoch if self._segment is None and self.end else None)

    def _write(self, file: int, record: bytes, size: int) -> None:
        try:
            write_all(file, record)
            if self._sync:
                os.fdatasync(file)
        except OSError:
            os.ftruncate(file, size)
            raise

    def trim(self, position: int) -> None:
        """Deletes the segments that end at or before `position`; the one being written stays.

        Segments on other lines are deleted as well: if they began before `position`, no reader will use them.
        """
        if self._segment is None:
            return
        segments = list_segments(self.folder)
        line = line_of(segments, self.epoch)
        needed = {segment for segment, until in line if until is None or until > position}
        for segment in segments:
            if segment not in needed and segment.base < position and segment.epoch <= self.epoch:
                (self._directory / str(segment)).unlink(missing_ok=True)

    def close(self) -> None:
        """Closes the files. Calling it again has no effect."""
        for file in (self._file, self._lock):
            if file >= 0:
                os.close(file)
        self._file = self._lock = -1

    # --- reading ---------------------------------------------------------------

    def bases(self) -> list[int]:
        """Returns where the segments begin that count for this writer, ascending."""
        return [segment.base for segment, _ in self._current_line()]

    def cuts(self, start: int) -> Iterator[Cut]:
        """Yields the headers of the records from position `start` on.

        Raises:
            CheckpointError: a record is missing or damaged.
        """
        with named(self.folder):
            for record in records(self.folder, self._current_line(), start, self.end):
                yield record.cut

    def entries(self, start: int, wanted: Callable[[int], bool]) -> Iterator[tuple[Cut, int, bytes]]:
        """Yields (cut, target, chunk) of the records from position `start` on for the targets that `wanted` wants.

        Raises:
            CheckpointError: a record or chunk is missing or damaged.
        """
        with named(self.folder):
            for record in records(self.folder, self._current_line(), start, self.end):
                for target, body in record.bodies(wanted):
                    yield record.cut, target, body

    def snapshot(self) -> bytes:
        """Returns the latest snapshot.

        Raises:
            CheckpointError: it is missing or damaged.
        """
        assert self.last is not None, "a new log has no snapshot"
        for _, _, whole in self.entries(self.last.snapshot, lambda target: target == SNAPSHOT):
            return whole
        raise CheckpointError(f"spout log {self._name} has no snapshot at position {self.last.snapshot}")

    def _current_line(self) -> Line:
        if self._segment is None:
            return [live for live in self._line if live.segment.base < self.end]
        return line_of(list_segments(self.folder), self.epoch)


def _too_short(folder: Folder, planned: Mark) -> CheckpointError:
    return CheckpointError(
        f"spout log {name_of(folder)} has no record of writer {planned.epoch} that ends at position "
        f"{planned.position}, up to which Spark has planned micro-batches: {_MISSING}"
    )


def _locked(path: Path) -> int:
    """Returns a file that this process holds locked, where the file system has locks.

    Nothing depends on it. It gives an earlier writer that is about to end the time to complete its last record, which
    would otherwise be emitted again. The lock is a POSIX one: children that a spout forks don't inherit it.
    """
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            if time.monotonic() < deadline:
                time.sleep(_LOCK_POLL_SECONDS)
                continue
            log.warning("%s is locked by another process; whatever it writes from now on is ignored", path)
        except OSError:
            pass  # no locks here
        return file
