"""How many tuples a micro-batch may hold.

At most what is configured; fewer where that many would take too long. Tuples that a slow bolt executes, or that become
hundreds on their way, would otherwise wait for a micro-batch of minutes, and time out in the one after it.
"""

from __future__ import annotations

from storm_on_spark.runtime.spouts.messages import FIRST_TUPLES

_LEAST_AT_FIRST = 100
"""The first micro-batch also starts Python workers: that it took long says little of its tuples."""
_GROWTH = 4.0


class BatchSize:
    """The limit, by how long the last micro-batches took.

    Args:
        most: tuples.
        seconds: that a micro-batch should take at most.

    Example:
        >>> size = BatchSize(1000, 5.0)
        >>> size.began(1000, now=0.0), size.ended(now=20.0), size.limit
        (None, None, 250)
        >>> size.began(250, now=21.0), size.ended(now=22.0), size.limit
        (None, None, 1000)
    """

    def __init__(self, most: int, seconds: float) -> None:
        self.limit = min(most, FIRST_TUPLES)
        self._most = most
        self._seconds = seconds
        self._least = _LEAST_AT_FIRST
        #: Tuples of the micro-batch that is running, and when it began.
        self._running: tuple[int, float] | None = None

    def began(self, tuples: int, now: float) -> None:
        """Notes that a micro-batch with this many spout tuples begins at the monotonic time `now`, in s."""
        self._running = tuples, now

    def ended(self, now: float) -> None:
        """Notes that it is committed, and sets the limit for the next one."""
        running, self._running = self._running, None
        if running is None or running[0] == 0:
            return
        tuples, began = running
        took = max(1e-3, now - began)
        if took > self._seconds:
            self.limit = min(self.limit, max(self._least, int(tuples * self._seconds / took)))
        elif tuples >= self.limit / 2:
            self.limit = min(self._most, max(self.limit, int(tuples * min(_GROWTH, self._seconds / took))))
        self._least = 1

    def share(self, tasks: int) -> int:
        """Returns how many tuples each of `tasks` spout tasks gives to a micro-batch."""
        return max(1, self.limit // max(1, tasks))

    def for_each(self, tasks: int) -> int:
        """Returns how many tuples each of all spout tasks may have ready for a micro-batch.

        As long as nothing takes too long that is all of them, for one task may have most of the tuples.
        """
        return self._most if self.limit == self._most else self.share(tasks)
