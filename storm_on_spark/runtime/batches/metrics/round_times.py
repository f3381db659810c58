"""The time of rounds, second by second, from what a live process says of itself. Pure: sums in, differences out."""

from __future__ import annotations

from collections import deque
from typing import Final

from storm_on_spark.api.times import WAITS, RoundTime
from storm_on_spark.runtime.batches.live_process import Spent, Status

_MOST: Final = 40
_LEAST_SECS: Final = 1.0
_STALE_SECS: Final = 60.0
"""Once tuples have waited for micro-batches this long, earlier rounds say nothing about now."""
_WHAT: Final = {
    "reads": "reads tuples",
    "executes": "bolts and ackers",
    "logs": "logs rounds",
    "tells": "tells spouts",
    "saves": "saves state",
    "waits": WAITS,
}
"""Fields of `Spent`, in the order in which they are shown, and their names for people."""


class RoundTimes:
    """The last seconds of rounds. Used by one thread; others may read it.

    Example:
        >>> times = RoundTimes()
        >>> for at, executes, emitted in ((10.0, 1.0, 500), (11.0, 1.25, 800)):
        ...     times.look(at, Status(7, True, Spent(40 * int(at), executes=executes)), (0.0, 0.0), emitted)
        >>> [(each.secs, each.rounds, each.tuples, each.parts["bolts and ackers"]) for each in times.last()]
        [(1.0, 40, 300, 250.0)]
    """

    def __init__(self) -> None:
        self._last: deque[RoundTime] = deque(maxlen=_MOST)
        #: What was seen before: when, of which process, and all sums.
        self._before: tuple[float, int, Spent, tuple[float, float], int] | None = None

    def look(self, now: float, status: Status | None, spouts: tuple[float, float], emitted: int) -> None:
        """Takes in what is true at the moment.

        Args:
            now: seconds since the epoch.
            status: of the live process; None if there is none.
            spouts: seconds in which all spouts have emitted, and in which they have written their logs.
            emitted: tuples of all spouts.
        """
        if self._last and now - self._last[-1].time > _STALE_SECS:
            self._last.clear()
        if status is None:
            return
        before, seen = self._before, (now, status.pid, status.spent, spouts, emitted)
        if before is None or before[1] != status.pid or now < before[0]:
            self._before = seen
            return
        then, _, spent, (emitting, writing), tuples = before
        if now - then < _LEAST_SECS:
            return
        self._before = seen
        rounds = status.spent.rounds - spent.rounds
        if not rounds and not status.live:
            return  # tuples wait for micro-batches
        parts = {"spouts emit": 1e3 * (spouts[0] - emitting), "spouts write": 1e3 * (spouts[1] - writing)}
        for name, words in _WHAT.items():
            parts[words] = 1e3 * (getattr(status.spent, name) - getattr(spent, name))
        rounded = {words: round(max(0.0, spent), 1) for words, spent in parts.items()}
        self._last.append(RoundTime(now, round(now - then, 3), rounds, max(0, emitted - tuples), rounded))

    def last(self) -> tuple[RoundTime, ...]:
        """Returns them, oldest first."""
        return tuple(self._last)
