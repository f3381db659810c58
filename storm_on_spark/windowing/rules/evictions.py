"""Eviction policies: which tuples are in a window, and which have left it for ever.

They are Storm's (`org.apache.storm.windowing.*EvictionPolicy`) with one exception. Storm's scan of an event-time window
stops at the first tuple that is further ahead than the lag, and misses later tuples of other streams. Here a window
holds all tuples of its time.
"""

from __future__ import annotations

from typing import NamedTuple

from storm_on_spark.windowing.content.queue import EventQueue, Part, Slice
from storm_on_spark.windowing.definition import Count, Extent


class Evicted(NamedTuple):
    """The tuples of a window, and those that have left it: parts of the queue, in order."""

    window: list[Part]
    expired: list[Part]


class TimeEviction:
    """Holds the tuples of a span of time that ends at the reference time, inclusive; its beginning is exclusive.

    Args:
        length_ms: the span, in milliseconds.
    """

    def __init__(self, length_ms: int) -> None:
        self._length_ms = length_ms

    def evict(self, queue: EventQueue, reference: int, limit: int | None = None) -> Evicted:
        """Returns the window's contents at a reference time."""
        start = reference - self._length_ms
        return Evicted(list(queue.between(start, reference)), list(queue.until(start)))


class CountEviction:
    """Holds the last tuples, a given number of them, in the order of their arrival.

    Args:
        length: the number.
        event_time: whether only tuples up to the reference time count.
    """

    def __init__(self, length: int, *, event_time: bool) -> None:
        self._length, self._event_time = length, event_time
        #: How many tuples the last window held.
        self.processed = 0

    def evict(self, queue: EventQueue, reference: int, limit: int | None = None) -> Evicted:
        """Returns the window's contents.

        Args:
            queue: the tuples.
            reference: the time up to which tuples count, if they have timestamps.
            limit: the number of those that count, from the first; None for all.
        """
        parts = list(queue.until(reference)) if self._event_time else [Part(part) for part in queue.slices()]
        size = sum(part.size for part in parts)
        count = size if limit is None else min(size, limit)
        leaving = max(0, (count if limit is None else limit) - self._length)
        expired, rest = _divided(parts, min(leaving, size))
        window, _ = _divided(rest, min(self._length, count))
        self.processed = sum(part.size for part in window)
        return Evicted(window, expired)


def _divided(parts: list[Part], number: int) -> tuple[list[Part], list[Part]]:
    """Divides parts into the first `number` tuples and the others."""
    first: list[Part] = []
    for at, part in enumerate(parts):
        if part.size > number:
            if not number:
                return first, parts[at:]
            places = range(part.slice.size) if part.places is None else part.places
            return [*first, Part(part.slice, places[:number])], [Part(part.slice, places[number:]), *parts[at + 1 :]]
        first.append(part)
        number -= part.size
    return first, []


Eviction = TimeEviction | CountEviction


def eviction_for(length: Extent, *, event_time: bool) -> Eviction:
    """Returns the policy for a window's length."""
    if isinstance(length, Count):
        return CountEviction(length.value, event_time=event_time)
    return TimeEviction(length.value)


class Previous(NamedTuple):
    """The previous window: the tuples that it held are not new in the next one."""

    next_sequence: int = 0
    """The first sequence number of the tuples that came after it."""
    reference: int | None = None
    """The time up to which tuples were in it, if they bring their time."""
    runs: tuple[tuple[int, int], ...] | None = None
    """The sequence numbers that it held, as first and last of runs; None if they follow from the other attributes."""

    def held(self, sequence: int, stamp: int) -> bool:
        """Returns whether it held a tuple."""
        if sequence >= self.next_sequence or (self.reference is not None and stamp > self.reference):
            return False
        return self.runs is None or any(first <= sequence <= last for first, last in self.runs)

    def held_all(self, part: Slice) -> bool:
        """Returns whether it held all tuples of a slice, as far as the slice's bounds tell."""
        before = part.last < self.next_sequence and (self.reference is None or part.high <= self.reference)
        return before and (
            self.runs is None or any(first <= part.first <= part.last <= last for first, last in self.runs)
        )


def runs_of(queue: EventQueue, parts: list[Part]) -> tuple[tuple[int, int], ...]:
    """Returns the sequence numbers of tuples as runs of neighbours."""
    runs: list[tuple[int, int]] = []
    for part in parts:
        if part.places is None and part.slice.last - part.slice.first == part.slice.size - 1:
            _append(runs, part.slice.first, part.slice.last)
            continue
        sequence = queue.marks(part.slice)[0]
        for place in range(part.slice.size) if part.places is None else part.places:
            _append(runs, sequence[place], sequence[place])
    return tuple(runs)


def _append(runs: list[tuple[int, int]], first: int, last: int) -> None:
    if runs and runs[-1][1] == first - 1:
        runs[-1] = runs[-1][0], last
    else:
        runs.append((first, last))
