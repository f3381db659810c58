"""Where the time of the main thread goes: two readings of a clock for each thing that it does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from storm_on_spark.runtime.batches.live_process import Spent


class Lap:
    """What the thread does; the order is that of `Spent`. Plain numbers: an enumeration would double a lap."""

    WAITS: Final = 0
    READS: Final = 1
    EXECUTES: Final = 2
    LOGS: Final = 3
    TELLS: Final = 4
    SAVES: Final = 5


class Laps:
    """Adds up how long the thread does what. Another thread may read it.

    Args:
        clock: seconds.

    Example:
        >>> clock = iter([10.0, 10.25, 11.0])
        >>> laps = Laps(clock=lambda: next(clock))
        >>> laps.end(Lap.WAITS)
        >>> laps.end(Lap.EXECUTES)
        >>> laps.spent().waits, laps.spent().executes
        (0.25, 0.75)
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._at = clock()
        self._secs = [0.0] * (len(Spent._fields) - 1)
        self.rounds = 0

    def end(self, lap: int) -> None:
        """Counts the time since the last call for what has been done since."""
        now = self._clock()
        self._secs[lap] += now - self._at
        self._at = now

    def spent(self) -> Spent:
        """Returns the sums so far."""
        return Spent(self.rounds, *self._secs)
