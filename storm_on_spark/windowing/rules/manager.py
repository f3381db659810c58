"""The windows of one task: tuples, times and watermarks in, windows to be evaluated out."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from typing import NamedTuple

from storm_on_spark.api.tuple import Tuple
from storm_on_spark.windowing.content.queue import EventQueue, Part, joined
from storm_on_spark.windowing.definition import Duration, WindowDefinition
from storm_on_spark.windowing.rules.evictions import CountEviction, Previous, eviction_for, runs_of
from storm_on_spark.windowing.rules.triggers import (
    CountTrigger,
    Due,
    TimeTrigger,
    WatermarkCountTrigger,
    WatermarkTimeTrigger,
    trigger_for,
)
from storm_on_spark.windowing.rules.watermark import Source, WatermarkGenerator


class Activation(NamedTuple):
    """A window to be evaluated. After the evaluation, the queue no longer has the expired tuples."""

    window: list[Part]
    """The tuples that it holds; if it has none, the bolt does not see it."""
    expired: list[Part]
    """The tuples that have left the window since the previous one."""
    previous: Previous
    """The previous window, whose tuples are not new in this one."""
    start: int | None
    """The time at which the window begins, exclusive; None if its length is a number of tuples."""
    end: int | None
    """The time at which it ends, inclusive; None if neither length nor slide is a time."""
    number: int
    """The number of this window, among those of the task."""


class WindowManager:
    """Storm's `WindowManager`, with the policies for one definition. It can be pickled; call `attach` afterwards.

    Args:
        definition: of the window.
        streams: the input streams.
        now: the topology's time, in ms.

    Example:
        >>> from storm_on_spark.runtime.state.keyvalue.state import StoredState
        >>> from storm_on_spark.testing import make_tuple
        >>> from storm_on_spark.windowing import Count
        >>> manager = WindowManager(WindowDefinition(Count(3), Count(2)), [], 0)
        >>> manager.queue.attach(StoredState())
        >>> for number in range(6):
        ...     for window in manager.add(make_tuple([number]), 0):
        ...         print([tup[0] for part in window.window for tup in manager.queue.tuples(part)])
        [0, 1]
        [1, 2, 3]
        [3, 4, 5]
    """

    def __init__(self, definition: WindowDefinition, streams: Iterable[Source], now: int) -> None:
        self.queue = EventQueue()
        self.watermark = WatermarkGenerator(streams, definition.lag_ms, definition.idle_ms, now)
        self._previous = Previous()
        #: The number of windows so far.
        self.windows = 0
        self._dropped: list[Part] = []
        self._define(definition, now, 0)

    def define(self, definition: WindowDefinition, now: int) -> None:
        """Continues with another length, slide, lag or idle timeout, over the tuples that are there."""
        self.watermark.define(definition.lag_ms, definition.idle_ms)
        trigger = self._trigger
        evaluated = trigger.last if isinstance(trigger, (WatermarkTimeTrigger, WatermarkCountTrigger)) else 0
        self._define(definition, now, evaluated)

    def _define(self, definition: WindowDefinition, now: int, evaluated: int) -> None:
        self.definition = definition
        self._eviction = eviction_for(definition.length, event_time=definition.event_time)
        self._trigger = trigger_for(
            definition.slide, self._eviction, event_time=definition.event_time, now=now, evaluated=evaluated
        )

    def add(self, tup: Tuple, now: int) -> Iterator[Activation]:
        """A tuple without a timestamp has come."""
        # A tuple that comes at the time of an evaluation, but after it, belongs to the next window.
        last = self._trigger.last if isinstance(self._trigger, TimeTrigger) else -1
        self.queue.add(tup, now if now > last else last + 1)
        if isinstance(self._trigger, CountTrigger):
            yield from self._evaluated(self._trigger.on_tuple(now))

    def add_event(self, tup: Tuple, stream: Source, stamp: int, now: int) -> bool:
        """A tuple with a timestamp has come; returns whether it came in time."""
        if not self.watermark.track(stream, stamp, now):
            return False
        self.queue.add(tup, stamp)
        return True

    def on_time(self, now: int) -> Iterator[Activation]:
        """The topology's time has advanced to `now`."""
        if isinstance(self._trigger, TimeTrigger):
            yield from self._evaluated(self._trigger.on_time(self.queue, now))

    def on_watermark(self, now: int) -> Iterator[Activation]:
        """A new watermark is due."""
        watermark = self.watermark.advance(now)
        if watermark is not None and isinstance(self._trigger, (WatermarkTimeTrigger, WatermarkCountTrigger)):
            yield from self._evaluated(self._trigger.on_watermark(self.queue, watermark))

    def settle(self) -> None:
        """Prepares for being written, at the end of a micro-batch."""
        self.queue.settle()

    def drop(self, window: list[Part]) -> None:
        """Removes the tuples of the present window after its evaluation."""
        self._dropped = window

    def _evaluated(self, due: Due) -> Generator[Activation, None, None]:
        held: bool | None = None
        while True:
            try:
                reference = next(due) if held is None else due.send(held)
            except StopIteration:
                return
            window, expired = self._eviction.evict(self.queue, *reference)
            held = bool(window)
            previous, self._previous = self._previous, self._now_previous(reference.time, window)
            if window or expired:
                self.windows += held
                yield Activation(window, expired, previous, *self._bounds(reference.time), self.windows)
                self.queue.remove(joined([*expired, *self._dropped]))
                self._dropped = []

    def _now_previous(self, reference: int, window: list[Part]) -> Previous:
        if not window:
            return Previous()
        event_time = self.definition.event_time
        runs = runs_of(self.queue, window) if event_time and isinstance(self._eviction, CountEviction) else None
        return Previous(self.queue.next_sequence, reference if event_time else None, runs)

    def _bounds(self, reference: int) -> tuple[int | None, int | None]:
        length = self.definition.length
        if isinstance(length, Duration):
            return reference - length.value, reference
        return None, reference if self.definition.timers else None
