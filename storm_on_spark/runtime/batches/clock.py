"""The topology's clock.

It counts the milliseconds that the topology has run, over all its restarts, and knows nothing of the wall clock: a
leap of that neither fails tuples nor holds back ticks.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """The source of a run's time."""

    def start(self, at_ms: int) -> None:
        """Starts the clock at the time at which the topology stopped last."""

    def now_ms(self) -> int:
        """Returns the topology's time in ms."""

    @property
    def started_at(self) -> float | None:
        """Monotonic time in s at which the clock showed the start time; None for a clock that is driven by hand."""


class SystemClock:
    """Runs with the machine's monotonic clock."""

    def __init__(self) -> None:
        self._at_ms = 0
        self._started_at = time.monotonic()

    def start(self, at_ms: int) -> None:
        """Starts the clock at `at_ms`."""
        self._at_ms = at_ms
        self._started_at = time.monotonic()

    def now_ms(self) -> int:
        """Returns the topology's time in ms."""
        return self._at_ms + int(1000 * (time.monotonic() - self._started_at))

    @property
    def started_at(self) -> float | None:
        """Monotonic time in s at which the clock was started."""
        return self._started_at


class ManualClock:
    """Stands still until a test moves it.

    Example:
        >>> clock = ManualClock()
        >>> clock.advance(seconds=30)
        >>> clock.now_ms()
        30000
    """

    def __init__(self) -> None:
        self._now_ms = 0

    def start(self, at_ms: int) -> None:
        """Moves the clock on to `at_ms` if it shows an earlier time."""
        self._now_ms = max(self._now_ms, at_ms)

    def now_ms(self) -> int:
        """Returns the topology's time in ms."""
        return self._now_ms

    def advance(self, seconds: float) -> None:
        """Moves the clock on."""
        self._now_ms += round(1000 * seconds)

    @property
    def started_at(self) -> float | None:
        """None: the clock is driven by hand."""
        return None
