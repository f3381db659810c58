"""Trigger policies: when a window is evaluated; Storm's (`org.apache.storm.windowing.*TriggerPolicy`).

A policy yields references: the time of an evaluation and, for event-time counts, the number of tuples that count.
`send` resumes it, and says whether that window held anything.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final, NamedTuple

from storm_on_spark.windowing.content.queue import EventQueue
from storm_on_spark.windowing.definition import Count, Extent
from storm_on_spark.windowing.rules.evictions import CountEviction, Eviction

_MOST_SAME: Final = 1000
"""So many evaluations of a window of tuples in a row may find the tuples of the one before."""


class Reference(NamedTuple):
    """An evaluation that is due."""

    time: int
    """By the topology's clock, or by the tuples' timestamps."""
    limit: int | None = None
    """How many tuples count, if the window is a number of tuples by timestamps."""


Due = Generator[Reference, bool, None]


class CountTrigger:
    """Evaluates after every `slide` tuples.

    Args:
        slide: a number of tuples.
    """

    def __init__(self, slide: int) -> None:
        self._slide, self._count = slide, 0

    def on_tuple(self, now: int) -> Due:
        """A tuple has come."""
        self._count += 1
        if self._count >= self._slide:
            self._count = 0
            yield Reference(now)


class TimeTrigger:
    """Evaluates at each multiple of a period of the topology's time.

    Args:
        slide_ms: the period.
        now: the topology's time.
    """

    def __init__(self, slide_ms: int, now: int) -> None:
        self._slide_ms = slide_ms
        self._next = self._after(now)

    def _after(self, now: int) -> int:
        return (now // self._slide_ms + 1) * self._slide_ms

    @property
    def last(self) -> int:
        """The time of the last evaluation."""
        return self._next - self._slide_ms

    def on_time(self, queue: EventQueue, now: int) -> Due:
        """The time has advanced to `now`."""
        while self._next <= now:
            if not len(queue):
                self._next = self._after(now)
                return
            due = self._next
            self._next += self._slide_ms
            yield Reference(due)


class WatermarkTimeTrigger:
    """Evaluates at each multiple of a period of the tuples' time, once the watermark has passed it.

    The first window ends at the earliest timestamp, rounded up. Gaps without tuples are skipped. A window that is a
    number of tuples always holds some, so Storm evaluates the last ones again throughout a gap, up to the watermark:
    for ever, if one tuple has a time thousands of years ahead. Here, after a thousand times the rest is skipped.

    Args:
        slide_ms: the period.
        eviction: of the window.
        evaluated: the time of the last evaluation, by an earlier policy; 0 for none.
    """

    #: Evaluations in a row that found the tuples of the one before. A class attribute, as older checkpoints lack it.
    _same = 0

    def __init__(self, slide_ms: int, eviction: Eviction, evaluated: int = 0) -> None:
        self._slide_ms, self._eviction = slide_ms, eviction
        #: The time of the last evaluation.
        self.last = evaluated
        self._next = (evaluated // slide_ms + 1) * slide_ms if evaluated else 0

    def on_watermark(self, queue: EventQueue, watermark: int) -> Due:
        """The watermark has advanced."""
        while self._next <= watermark:
            due = self._next
            if isinstance(self._eviction, CountEviction):
                self._same = 0 if queue.earliest(self.last, due) is not None else self._same + 1
                held = self._same <= _MOST_SAME and (yield Reference(due, queue.count_until(due)))
            else:
                held = yield Reference(due)
            if held:
                self.last = due
                self._next = due + self._slide_ms
                continue
            earliest = queue.earliest(due, watermark)
            if earliest is None:
                return
            self._next = -(-earliest // self._slide_ms) * self._slide_ms


class WatermarkCountTrigger:
    """Evaluates after every `slide` tuples up to the watermark.

    Args:
        slide: a number of tuples.
        eviction: of the window.
        evaluated: the time of the last evaluation; tuples up to it no longer count.
    """

    def __init__(self, slide: int, eviction: Eviction, evaluated: int = 0) -> None:
        self._slide, self._eviction = slide, eviction
        #: The time of the last evaluation.
        self.last = evaluated

    def on_watermark(self, queue: EventQueue, watermark: int) -> Due:
        """The watermark has advanced."""
        times, count, latest = [], 0, 0
        for part in queue.between(self.last, watermark):
            stamps = queue.marks(part.slice)[1]
            for place in range(part.slice.size) if part.places is None else part.places:
                latest = max(latest, stamps[place])
                count += 1
                if count % self._slide == 0:
                    times.append(latest)
        for time in times:
            limit = self._eviction.processed + self._slide if isinstance(self._eviction, CountEviction) else None
            self.last = time
            yield Reference(time, limit)


Trigger = CountTrigger | TimeTrigger | WatermarkTimeTrigger | WatermarkCountTrigger


def trigger_for(slide: Extent, eviction: Eviction, *, event_time: bool, now: int, evaluated: int = 0) -> Trigger:
    """Returns the policy for a window's slide."""
    if isinstance(slide, Count):
        return WatermarkCountTrigger(slide.value, eviction, evaluated) if event_time else CountTrigger(slide.value)
    return WatermarkTimeTrigger(slide.value, eviction, evaluated) if event_time else TimeTrigger(slide.value, now)
