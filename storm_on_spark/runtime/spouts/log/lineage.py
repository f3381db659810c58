"""Which segments of a spout log count.

Every writer has a unique epoch and creates its own segments. Its first one begins where it found the
log's end, and names the epoch whose record ended there. So the writers of a log form a tree: two that don't know of
each other continue from the same place. Only one line through the tree counts, from the log's beginning to one writer:
of each earlier writer that is what it wrote before the next one began. Whatever a writer adds after that is on no line.

A segment is `BASE-EPOCH-PARENT.log` if it is the first of its writer, and `BASE-EPOCH.log` otherwise; `BASE` is the
position of its first byte.

    00000000000000000000-1.0.log           the first writer
    00000000000000004096-2.0-1.0.log       one that continued at 4096; later records of 1.0 don't count
    00000000000000009000-2.0.log           its next segment
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

_NAME = re.compile(r"(\d{20})-(\d{1,10})\.(\d{1,10})(?:-(\d{1,10})\.(\d{1,10}))?\.log", re.ASCII)


class WriterEpoch(NamedTuple):
    """The identity of a process that writes a spout log. Later ones are greater, whatever the clocks say.

    Example:
        >>> WriterEpoch(2, 0) > WriterEpoch(1, 7), str(WriterEpoch(1, 7))
        (True, '1.7')
    """

    owner: int
    """The number under which a start of the topology has claimed the checkpoint; see `storage.claims`."""
    start: int
    """How often the owner has restarted the process."""

    def __str__(self) -> str:
        return f"{self.owner}.{self.start}"


NOBODY = WriterEpoch(0, 0)
"""No writer: that of what is before a log's beginning."""


class Mark(NamedTuple):
    """A position between two records, and the writer of the record that ends there."""

    position: int = 0
    epoch: WriterEpoch = NOBODY


class Segment(NamedTuple):
    """A segment's name.

    Example:
        >>> str(Segment(4096, WriterEpoch(2, 0), WriterEpoch(1, 0)))
        '00000000000000004096-2.0-1.0.log'
        >>> Segment.parse("00000000000000009000-2.0.log")
        Segment(base=9000, epoch=WriterEpoch(owner=2, start=0), parent=None)
    """

    base: int
    epoch: WriterEpoch
    parent: WriterEpoch | None = None
    """Whose record ended at `base`, where that was another's."""

    def __str__(self) -> str:
        parent = "" if self.parent is None else f"-{self.parent}"
        return f"{self.base:020d}-{self.epoch}{parent}.log"

    @classmethod
    def parse(cls, name: str) -> Segment | None:
        """Parses a file name; returns None if it isn't a segment's."""
        found = _NAME.fullmatch(name)
        if found is None:
            return None
        base, owner, start, parents_owner, parents_start = found.groups()
        epoch = WriterEpoch(int(owner), int(start))
        parent = None if parents_owner is None else WriterEpoch(int(parents_owner), int(parents_start))
        # A line never goes back to a later writer, whatever the names of files say.
        return None if parent is not None and parent >= epoch else cls(int(base), epoch, parent)


class Live(NamedTuple):
    """A segment that counts up to a position, or as far as it goes for None."""

    segment: Segment
    until: int | None


Line = Sequence[Live]
"""What counts for a writer, in the order of positions."""


def line_of(segments: Iterable[Segment], epoch: WriterEpoch) -> Line:
    """Returns the segments that count for the writer with `epoch`.

    Example:
        >>> old, new = WriterEpoch(1, 0), WriterEpoch(2, 0)
        >>> segments = [Segment(0, old), Segment(80, old), Segment(50, new, old)]
        >>> [(str(segment.epoch), segment.base, until) for segment, until in line_of(segments, new)]
        [('1.0', 0, 50), ('2.0', 50, None)]
    """
    by_epoch: dict[WriterEpoch, list[Segment]] = {}
    for segment in segments:
        by_epoch.setdefault(segment.epoch, []).append(segment)
    line: list[Live] = []
    until: int | None = None
    writer: WriterEpoch | None = epoch
    while writer is not None:
        own = sorted(s for s in by_epoch.get(writer, ()) if until is None or s.base < until)
        for segment in reversed(own):
            line.append(Live(segment, until))
            until = segment.base
        writer = own[0].parent if own else None
    return line[::-1]


def newest(segments: Iterable[Segment], planned: Mark) -> WriterEpoch | None:
    """Returns the latest writer that knew everything that Spark has planned.

    A writer that didn't was started unknown to the coordinator, and Spark never read a record of it.

    Args:
        segments: all that there are.
        planned: the position up to which Spark has planned.

    Returns:
        None if no writer's line reaches it; NOBODY if the log is empty and nothing is planned.
    """
    segments = list(segments)
    for epoch in sorted({segment.epoch for segment in segments}, reverse=True):
        if planned.position == 0 or _passes(line_of(segments, epoch), planned):
            return epoch
    return NOBODY if planned.position == 0 else None


def counts(line: Line, mark: Mark) -> bool:
    """Returns whether the record that ends at `mark` is on a line; the log's beginning always is."""
    return mark.position == 0 or (bool(line) and _passes(line, mark))


def _passes(line: Line, mark: Mark) -> bool:
    """Whether the record that ends at `mark` is on the line, or was before it was trimmed."""
    first = line[0].segment
    if (first.base, first.parent) == mark:
        return True
    return any(
        live.segment.epoch == mark.epoch
        and live.segment.base <= mark.position
        and (live.until is None or mark.position <= live.until)
        for live in line
    )
