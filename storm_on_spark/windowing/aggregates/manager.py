"""The windows of one task that keeps aggregations: like `WindowManager`, over panes instead of tuples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import gcd
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.windowing.aggregates.panes import Panes
from storm_on_spark.windowing.definition import Count, WindowDefinition
from storm_on_spark.windowing.rules.watermark import Source, WatermarkGenerator

Entries = Iterable[tuple[Any, Any]]
"""A tuple's contribution: keys, and the input of the aggregations for each."""


class Due(NamedTuple):
    """A window to be evaluated."""

    changed: Any
    """What `advance` of the panes has returned."""
    start: int | None
    end: int | None
    number: int
    """The number of this window, among those of the task."""


def check_panes(definition: WindowDefinition) -> None:
    """Checks that a window can be made of panes.

    Raises:
        InvalidTopologyError: length and slide have different units.
    """
    if type(definition.length) is not type(definition.slide) or (
        definition.event_time and isinstance(definition.length, Count)
    ):
        raise InvalidTopologyError(
            f"a window of {definition} can't be kept by slides, for which length and slide must both be durations, or "
            "both numbers of tuples that bring no time; use a BaseWindowedBolt without with_aggregate"
        )


class PaneStore(Protocol):
    """The contents of panes."""

    def earliest(self, start: int, end: int) -> int | None:
        """Returns the first pane with contents from `start` to before `end`, or None."""

    def advance(self, start: int, end: int) -> Any:
        """Moves the window to the panes from `start` to before `end`; returns the changes."""

    def carry_over(self, changed: Any) -> None:
        """Keeps the result of `advance` for the next window, because this one is empty and is not evaluated."""

    def settle(self) -> None:
        """Prepares for being written."""

    def __len__(self) -> int: ...


P = TypeVar("P", bound=PaneStore)


class PaneManager(Generic[P]):
    """The windows of one task, over panes. It can be pickled.

    Args:
        definition: of the window, of a kind that `check_panes` accepts.
        panes: with the partial results or rows.
        streams: the input streams.
        now: the topology's time, in ms.
    """

    def __init__(self, definition: WindowDefinition, panes: P, streams: Iterable[Source], now: int) -> None:
        self.definition = definition
        self.panes = panes
        self.watermark = WatermarkGenerator(streams, definition.lag_ms, definition.idle_ms, now)
        self.windows = 0
        self._length, self._slide = definition.length.value, definition.slide.value
        self._width = gcd(self._length, self._slide)
        #: The end of the next window: a time, or a number of tuples; None before the first window by the tuples' own
        #: time.
        self._next: int | None = None if definition.event_time else self._after(now)
        self._came = 0

    def _after(self, now: int) -> int:
        """Returns the first end of a window after `now`."""
        return (now // self._slide + 1) * self._slide

    def _pane(self, at: int) -> int:
        """Returns the pane of a time, or of a tuple by its number from 1: panes exclude their beginning."""
        return (at - 1) // self._width

    def _pane_of_now(self, now: int) -> int:
        """Returns the pane of a tuple that comes now; at a window's end, after its evaluation, that is the next one."""
        assert self._next is not None, "windows begin at once where tuples bring no time"
        return self._pane(max(now, self._next - self._slide + 1))

    def on_time(self, now: int) -> Iterator[Due]:
        """The topology's time has advanced to `now`."""
        if isinstance(self.definition.slide, Count):
            return
        while self._next is not None and self._next <= now:
            if not len(self.panes):
                self._next = self._after(now)
                return
            yield from self._evaluated(self._next)

    def on_watermark(self, now: int) -> Iterator[Due]:
        """A new watermark is due."""
        watermark = self.watermark.advance(now)
        if watermark is None:
            return
        while True:
            start = -(1 << 62) if self._next is None else self._pane(self._next - self._length + 1)
            earliest = self.panes.earliest(start, self._pane(watermark) + 1)
            if earliest is None:
                return
            # Gaps are skipped: the next window ends at the next multiple of the slide with contents.
            end = -(-(earliest + 1) * self._width // self._slide) * self._slide
            end = end if self._next is None else max(end, self._next)
            if end > watermark:
                return
            yield from self._evaluated(end)

    def _evaluated(self, end: int) -> Iterator[Due]:
        first, last = self._pane(end - self._length + 1), self._pane(end) + 1
        holds = self.panes.earliest(first, last) is not None
        changed = self.panes.advance(first, last)
        self._next = end + self._slide
        if not holds:
            self.panes.carry_over(changed)
        else:
            self.windows += 1
            timed = not isinstance(self.definition.length, Count)
            yield Due(changed, end - self._length if timed else None, end if timed else None, self.windows)

    def settle(self) -> None:
        """Prepares for being written, at the end of a micro-batch."""
        self.panes.settle()


class AggregateManager(PaneManager[Panes]):
    """The windows of one task that keeps partial results by key."""

    def add(self, entries: Entries, now: int) -> Iterator[Due]:
        """A tuple that brings no time has come."""
        self._came += 1
        counts = isinstance(self.definition.slide, Count)
        pane = self._pane(self._came) if counts else self._pane_of_now(now)
        for key, given in entries:
            self.panes.add(key, pane, given)
        if counts and self._came == self._next:
            yield from self._evaluated(self._came)

    def is_late(self, stream: Source, stamp: int, now: int) -> bool:
        """A tuple that brings its time has come; returns whether it came too late."""
        return not self.watermark.track(stream, stamp, now)

    def add_event(self, entries: Entries, stamp: int) -> None:
        """Adds the contribution of a tuple that came in time."""
        for key, given in entries:
            self.panes.add(key, self._pane(stamp), given)
