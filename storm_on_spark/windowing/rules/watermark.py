"""The watermark: the time up to which all tuples are assumed to have come."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

S = TypeVar("S")

Source = tuple[str, str]
"""Component and stream. Making a `GlobalStreamId` for each tuple would take half as long as all the rest."""


class WatermarkGenerator(Generic[S]):
    """Storm's `WaterMarkEventGenerator`, and streams that may fall silent.

    The watermark is the minimum, over all input streams, of each stream's latest timestamp, minus the lag. There is
    none until every stream has delivered. It never goes back. If all streams are silent, none of them holds back the
    others: then the watermark follows the latest one, as in Flink. Otherwise the last windows before the silence would
    stay open.

    Args:
        streams: the input streams.
        lag_ms: how far timestamps may be out of order.
        idle_ms: how long a stream may be silent before it no longer counts; None for ever.
        now_ms: the topology's time, from which streams that never deliver are silent.

    Example:
        >>> watermark = WatermarkGenerator(["a", "b"], lag_ms=10)
        >>> watermark.track("a", 100, 0), watermark.advance(0)
        (True, None)
        >>> watermark.track("b", 70, 0), watermark.advance(0), watermark.track("b", 59, 0)
        (True, 60, False)
    """

    def __init__(self, streams: Iterable[S], lag_ms: int = 0, idle_ms: int | None = None, now_ms: int = 0) -> None:
        #: The latest timestamp of each stream; None before it has delivered.
        self._latest: dict[S, int | None] = dict.fromkeys(streams)
        #: When each stream delivered last, by the topology's time.
        self._heard = dict.fromkeys(self._latest, now_ms)
        self._lag_ms, self._idle_ms = lag_ms, idle_ms
        #: The watermark. Storm begins at 0, so negative timestamps are late.
        self.last = 0

    def define(self, lag_ms: int, idle_ms: int | None) -> None:
        """Continues with another lag and another idle timeout."""
        self._lag_ms, self._idle_ms = lag_ms, idle_ms

    def track(self, stream: S, timestamp: int, now_ms: int) -> bool:
        """Takes the timestamp of a tuple; returns whether it came in time."""
        latest = self._latest.get(stream)
        if latest is None or timestamp > latest:
            self._latest[stream] = timestamp
        self._heard[stream] = now_ms
        return timestamp >= self.last

    def advance(self, now_ms: int) -> int | None:
        """Returns the new watermark, or None if it stays where it is."""
        idle = self._idle_ms
        latest = [
            timestamp
            for stream, timestamp in self._latest.items()
            if idle is None or now_ms - self._heard[stream] < idle
        ]
        known = [timestamp for timestamp in latest if timestamp is not None]
        if latest and len(known) == len(latest):
            watermark = min(known) - self._lag_ms
        elif not latest and (delivered := [time for time in self._latest.values() if time is not None]):
            watermark = max(delivered) - self._lag_ms
        else:
            return None
        if watermark <= self.last:
            return None
        self.last = watermark
        return watermark
