"""Reading the segments of a store before they are asked for."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial

from storm_on_spark.runtime.spouts.log.lineage import Segment
from storm_on_spark.runtime.storage import Storage
from storm_on_spark.runtime.storage.background import in_background

_AT_ONCE = 8
"""How many segments are read at the same time, and so kept in memory."""


class Ahead:
    """Reads segments in order, a few at a time.

    Args:
        storage: the task's log.
        segments: those that will be asked for, in this order; some may be left out.
    """

    def __init__(self, storage: Storage, segments: Sequence[Segment]) -> None:
        self._storage = storage
        self._waiting = deque(segments)
        self._reading: deque[tuple[Segment, Future[bytes]]] = deque()

    def read(self, segment: Segment) -> bytes:
        """Returns a segment's bytes.

        Raises:
            OSError: it can't be read.
        """
        while self._reading and self._reading[0][0] != segment:
            self._reading.popleft()
        if not self._reading:
            while self._waiting and self._waiting[0] != segment:
                self._waiting.popleft()
        while self._waiting and len(self._reading) < _AT_ONCE:
            following = self._waiting.popleft()
            self._reading.append((following, in_background(partial(self._storage.read, str(following)), "log-reader")))
        if not self._reading:
            return self._storage.read(str(segment))
        return self._reading.popleft()[1].result()
