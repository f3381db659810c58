"""A spout log in a store, open for writing: every record is a separate object.

A store has no appending, so a segment has one record. That changes two things. A snapshot that did not change is not
written again with each record, so it may be in an earlier segment; trimming keeps that one. And to list and open
segments takes round trips, so the writer remembers where its records begin.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from typing import ClassVar

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.runtime.spouts.log.lineage import Mark, Segment, WriterEpoch, line_of
from storm_on_spark.runtime.spouts.log.reader import list_segments, named, records
from storm_on_spark.runtime.spouts.log.record import Cut
from storm_on_spark.runtime.spouts.log.writer import SEGMENT_BYTES, SpoutLog
from storm_on_spark.runtime.storage import Folder, Storage, name_of
from storm_on_spark.runtime.storage.background import in_background

log = logging.getLogger(__name__)


class StoredSpoutLog(SpoutLog):
    """The log of one spout task in a store, open for writing.

    Records written by `append` survive the loss of any machine of the cluster.

    Args:
        folder: where the segments are.
        segment_bytes: bytes after which an unchanged snapshot is written again.
        epoch: as for `SpoutLog`.
        planned: as for `SpoutLog`.
    """

    has_keys: ClassVar[bool] = False

    def __init__(
        self,
        folder: Storage,
        segment_bytes: int = SEGMENT_BYTES,
        *,
        epoch: WriterEpoch | None = None,
        planned: Mark = Mark(),  # noqa: B008 # it is immutable
    ) -> None:
        self._storage = folder
        super().__init__(folder, segment_bytes, epoch=epoch, planned=planned)
        #: The records that count and are not trimmed, by position, each with its segment.
        self._records: deque[tuple[Cut, Segment]] = deque()
        #: Records to delete, by position; a separate thread deletes them.
        self._doomed: deque[Segment] = deque()
        self._cleaning: Future[None] | None = None
        #: Whether segments may be left that are on no line, or that a trimming before a crash left behind.
        self._untidy = True
        by_base = {live.segment.base: live.segment for live in self._line if live.segment.base < self.end}
        if by_base:
            with named(folder):
                for record in records(folder, self._line, min(by_base), self.end):
                    cut = record.cut
                    self._records.append((cut, by_base[cut.position]))

    def _prepare(self) -> None:
        """Does nothing: a store needs no folder and has no lock."""

    @property
    def wants_snapshot(self) -> bool:
        """Whether the next record should carry its snapshot even if unchanged."""
        if self._segment is None or self.last is None:
            return True
        return self.end - self.last.snapshot > self._segment_bytes

    @property
    def base(self) -> int | None:
        """The position at which the segment begins that was written last; None before the first record."""
        return None if self._segment is None else self._segment.base

    def _add(self, cut: Cut, record: bytes, begins: bool) -> None:
        segment = self._following()
        try:
            self._storage.create(str(segment), record)
        except FileExistsError:
            raise CheckpointError(
                f"spout log {name_of(self._storage)} has another writer with epoch {self.epoch}"
            ) from None
        self._segment = segment
        self._records.append((cut, segment))

    def trim(self, position: int) -> None:
        """Deletes the records that end at or before `position`, but for the snapshot that one there needs."""
        if self._segment is None:
            return
        needed = min((cut.snapshot for cut, _ in self._records if cut.end >= position), default=position)
        position = min(position, needed)
        if self._untidy:
            self._untidy = False
            counting = {segment for segment, _ in line_of(list_segments(self._storage), self.epoch)}
            for segment in list_segments(self._storage):
                if segment not in counting and segment.base < position and segment.epoch <= self.epoch:
                    self._doomed.append(segment)
        while self._records and self._records[0][0].end <= position:
            self._doomed.append(self._records.popleft()[1])
        if self._doomed and (self._cleaning is None or self._cleaning.done()):
            self._cleaning = in_background(self._clean, "log-cleaner")

    def _clean(self) -> None:
        # In order, and none after one that failed: what is left begins somewhere and has no gaps.
        while self._doomed:
            try:
                self._storage.delete(str(self._doomed[0]))
            except OSError as error:
                log.debug("%s can't be deleted yet: %s", self._doomed[0], error)
                return
            self._doomed.popleft()

    def close(self) -> None:
        """Waits for pending deletions. Calling it again has no effect."""
        super().close()
        if self._cleaning is not None:
            self._cleaning.result()

    def bases(self) -> list[int]:
        """Returns where the segments begin that count for this writer, ascending."""
        return [cut.position for cut, _ in self._records]

    def cuts(self, start: int) -> Iterator[Cut]:
        """Yields the headers of the records from position `start` on."""
        return (cut for cut, _ in self._records if cut.position >= start)


def open_log(
    folder: Folder,
    segment_bytes: int = SEGMENT_BYTES,
    *,
    epoch: WriterEpoch | None = None,
    planned: Mark = Mark(),  # noqa: B008 # it is immutable
    sync: bool = False,
) -> SpoutLog:
    """Opens a log for writing, in a directory or in a store; see `SpoutLog`."""
    if isinstance(folder, Storage):
        return StoredSpoutLog(folder, segment_bytes, epoch=epoch, planned=planned)
    return SpoutLog(folder, segment_bytes, epoch=epoch, planned=planned, sync=sync)
