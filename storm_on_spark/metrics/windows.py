"""Sums over windows of time: rings of buckets.

A window is a ring of 20 closed buckets and an open one. Buckets begin at multiples of their width on the topology's
timeline, so a window goes back to the beginning of a bucket: at least its whole length, and at most a twentieth more.

An amount is added once, to the slot of 30 s, which is the narrowest bucket. When a slot ends, its sums are added to the
wider buckets. Closed buckets are packed. A window keeps the sum of its closed buckets, and subtracts a bucket that
leaves the ring. So reading a window costs the same however long it is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Final

from storm_on_spark.api.info import ALL_TIME, WINDOWS
from storm_on_spark.metrics.amounts import Amounts, Key, add, pack, subtract, unpack

BUCKETS: Final = 20
"""As many as in Storm."""
SLOT_SECS: Final = 30


class Timeline:
    """The time of a topology's windows, in seconds since the epoch.

    While a process runs, it advances steadily, even if the machine's clock is set. It never goes back at a restart: if
    the clock is before the end of the last run, the timeline continues from that end.

    Args:
        wall: seconds since the epoch, at the start.
        monotonic: seconds.
        before: where the timeline of a former process ended.

    Example:
        >>> seconds = iter([10.0, 13.0])
        >>> Timeline(1_000.0, lambda: next(seconds), before=2_000.0).now()
        2003.0
    """

    def __init__(self, wall: float, monotonic: Callable[[], float], before: float = 0.0) -> None:
        self._monotonic = monotonic
        self._offset = max(wall, before) - monotonic()

    def now(self) -> float:
        """Returns the time."""
        return self._offset + self._monotonic()


class Ring:
    """The buckets of one window.

    Args:
        width: seconds of a bucket.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        #: Number of the open bucket: seconds since the epoch by `width`.
        self.index = 0
        self.open: Amounts = {}
        #: Closed buckets that aren't empty, oldest first.
        self.closed: deque[tuple[int, bytes]] = deque()
        #: The sums over all closed buckets.
        self.total: Amounts = {}

    def advance(self, index: int) -> None:
        """Closes the open bucket if a later one begins, and subtracts buckets that leave the ring."""
        if index > self.index:
            if self.open:
                self.closed.append((self.index, pack(self.open)))
                add(self.total, self.open)
                self.open = {}
            self.index = index
        while self.closed and self.closed[0][0] < self.index - BUCKETS:
            subtract(self.total, unpack(self.closed.popleft()[1]))

    def map(self, change: Callable[[Mapping[Key, int]], Amounts]) -> None:
        """Changes all amounts."""
        self.open, self.total = change(self.open), change(self.total)
        self.closed = deque((index, pack(change(unpack(data)))) for index, data in self.closed)


class Windows:
    """What was counted in the last 10 minutes, 3 hours, 1 day, and ever.

    Args:
        began: when counting began, in seconds of the timeline.

    Example:
        >>> windows = Windows(0.0)
        >>> windows.add({("split", 3, "emitted", "default", ""): 7}, 100.0)
        >>> windows.add({("split", 3, "emitted", "default", ""): 1}, 10_000.0)
        >>> [list(windows.sums(window, 10_000.0).values()) for window in ("600", "10800", ":all-time")]
        [[1], [8], [8]]
        >>> windows.covered("600", 10_000.0)
        610.0
    """

    def __init__(self, began: float) -> None:
        self.began = began
        #: When something was last added or read.
        self.seen = began
        self.rings = {name: Ring(secs // BUCKETS) for name, secs in WINDOWS.items() if secs is not None}
        self.ever: Amounts = {}
        #: The amounts of the open slot, which are in no ring yet.
        self._slot: Amounts = {}
        self._advance(began)

    def add(self, amounts: Mapping[Key, int], now: float) -> None:
        """Counts amounts. An earlier time than the last one counts as the last one.

        Args:
            amounts: by key.
            now: seconds of the timeline.
        """
        self._advance(now)
        add(self._slot, amounts)

    def sums(self, window: str, now: float) -> Amounts:
        """Returns the sums over a window; the caller may change them.

        Raises:
            KeyError: there is no such window.
        """
        self._advance(now)
        if window == ALL_TIME:
            found = dict(self.ever)
        else:
            ring = self.rings[window]
            found = dict(ring.total)
            add(found, ring.open)
        add(found, self._slot)
        return found

    def covered(self, window: str, now: float) -> float:
        """Returns how many seconds a window covers: from its first bucket, or from when counting began."""
        self._advance(now)
        begins = self.began
        if window != ALL_TIME:
            ring = self.rings[window]
            begins = max(begins, float((ring.index - BUCKETS) * ring.width))
        return max(0.0, self.seen - begins)

    def close_slot(self) -> None:
        """Adds the sums of the open slot to all buckets that contain it; after that, the buckets hold everything."""
        for ring in self.rings.values():
            add(ring.open, self._slot)
        add(self.ever, self._slot)
        self._slot = {}

    def map(self, change: Callable[[Mapping[Key, int]], Amounts]) -> None:
        """Changes all amounts, in the buckets and in their sums."""
        self.close_slot()
        for ring in self.rings.values():
            ring.map(change)
        self.ever = change(self.ever)

    def _advance(self, now: float) -> None:
        self.seen = max(self.seen, now)
        slot = int(self.seen // SLOT_SECS)
        narrowest = self.rings["600"]
        if slot == narrowest.index:
            return
        self.close_slot()
        for ring in self.rings.values():
            ring.advance(slot * SLOT_SECS // ring.width)
