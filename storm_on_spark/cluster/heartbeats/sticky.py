"""Which of several Pacemakers a writer uses. No I/O, no clock.

A writer has its own order, in which it prefers the servers, and stays with the first that works. One that failed
is left alone for a while, longer each time in a row; then it is tried again. So a server that comes back is used again,
and writers spread over the servers as they did before.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

FIRST_SECS: Final = 0.1
MOST_SECS: Final = 5.0
"""Of a pause after a failure, as in Storm: between half of it and all of it, by chance."""


class Sticky:
    """A writer's choice.

    Args:
        servers: all of them.
        chance: shuffles them, and varies the pauses, so that the writers of one server don't all come back at once.

    Example:
        >>> sticky = Sticky(["p1", "p2"], random.Random(1))
        >>> first = sticky.choose(0.0)
        >>> sticky.failed(first, 0.0)
        >>> sticky.choose(0.0) == first, sticky.choose(60.0) == first
        (False, True)
    """

    def __init__(self, servers: Sequence[str], chance: random.Random) -> None:
        self._order = list(servers)
        chance.shuffle(self._order)
        self._chance = chance
        #: Server -> how often it failed in a row, and when it may be tried again.
        self._failures: dict[str, tuple[int, float]] = {}

    def choose(self, now: float) -> str | None:
        """Returns the server to use; None while all of them are left alone."""
        for server in self._order:
            if server not in self._failures or self._failures[server][1] <= now:
                return server
        return None

    def due(self) -> float:
        """Returns when the next server that failed may be tried again."""
        return min(at for _, at in self._failures.values())

    def worked(self, server: str) -> None:
        """Notes that a server did what it was asked."""
        self._failures.pop(server, None)

    def failed(self, server: str, now: float) -> None:
        """Notes that a server did not."""
        times = self._failures.get(server, (0, 0.0))[0] + 1
        most = min(MOST_SECS, FIRST_SECS * 2.0 ** min(times - 1, 16))
        self._failures[server] = times, now + most * self._chance.uniform(0.5, 1.0)
