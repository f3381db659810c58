"""Whether the work that waits, and state, grow over some minutes. Pure but for its lock: looks in, minima out."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from storm_on_spark.api.info import GrowthInfo

_PART_SECS: Final = 60.0
_MOST_PARTS: Final = 11
_LEAST_PARTS: Final = 3
"""The last one is not over yet; of the others two are compared."""


@dataclass
class _Part:
    """A minute, and the minimum of each value in it."""

    begun: float
    backlog: dict[int, int]
    state_bytes: int


class Growth:
    """Remembers the last ten minutes. Any thread may call it.

    The least values of two minutes are compared: between two micro-batches a backlog rises and falls, and only what
    remains behind all of them says that the topology doesn't keep up.

    Example:
        >>> growth = Growth()
        >>> found = [growth.look(30.0 * at, {1: 1000 * at + 5000 * (at % 2)}, 0) for at in range(7)]
        >>> found[:4], found[6].backlog_before, found[6].backlog, found[6].secs
        ([None, None, None, None], {1: 0}, {1: 4000}, 120.0)
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parts: deque[_Part] = deque(maxlen=_MOST_PARTS)

    def look(self, now: float, backlog: Mapping[int, int], state_bytes: int) -> GrowthInfo | None:
        """Notes a look, and returns how things were before; None before there are two whole minutes.

        Args:
            now: monotonic seconds.
            backlog: by spout task: tuples that wait.
            state_bytes: memory of state stores.
        """
        with self._lock:
            parts = self._parts
            if not parts or now - parts[-1].begun >= _PART_SECS:
                parts.append(_Part(now, dict(backlog), state_bytes))
            else:
                last = parts[-1]
                last.backlog = {task: min(least, backlog.get(task, 0)) for task, least in last.backlog.items()}
                last.state_bytes = min(last.state_bytes, state_bytes)
            while now - parts[0].begun > _PART_SECS * _MOST_PARTS:
                parts.popleft()
            if len(parts) < _LEAST_PARTS:
                return None
            first, whole = parts[0], parts[-2]
            return GrowthInfo(
                whole.begun - first.begun,
                dict(whole.backlog),
                dict(first.backlog),
                whole.state_bytes,
                first.state_bytes,
            )
