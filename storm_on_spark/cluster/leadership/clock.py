"""A clock that all leaders share: ZooKeeper's.

A leader writes down until when a topology that is killed may run, and how long a submission has waited; the next leader
goes by that. Their machines' clocks may differ by anything. So neither counts: a leader learns what time it is for
ZooKeeper from the write by which it claims leadership, and from then on goes by the time that has passed since.
"""

from __future__ import annotations

import time
from collections.abc import Callable


class ClusterClock:
    """Seconds since the epoch, by the clock of ZooKeeper, as far as it is known.

    Args:
        now: this machine's, of use until ZooKeeper's is known.
        monotonic: seconds that only ever pass.

    Example:
        >>> local, passed = [1000.0], [5.0]
        >>> clock = ClusterClock(lambda: local[0], lambda: passed[0])
        >>> clock()
        1000.0
        >>> clock.set(400.0)
        >>> passed[0], local[0] = 8.0, 99999.0
        >>> clock()
        403.0
    """

    def __init__(self, now: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._monotonic = monotonic
        #: What ZooKeeper's clock says when the monotonic one says 0; replaced as a whole, by one thread.
        self._zero: float | None = None

    def __call__(self) -> float:
        """Returns the time."""
        zero = self._zero
        return self._now() if zero is None else zero + self._monotonic()

    def set(self, zookeeper: float) -> None:
        """Takes in what ZooKeeper's clock says at this moment."""
        self._zero = zookeeper - self._monotonic()
