"""How long a session lives for sure, as far as its client can know."""

from __future__ import annotations

from typing import Final

MARGIN: Final = 1 / 4
"""The part of a session's timeout that isn't counted on. The ensemble's leader, which expires sessions, learns of a
follower's clients every half tick, and a session's timeout is at least two ticks: so this is how old its knowledge may
be. What is left over, mostly all of it, is for clocks that don't run alike."""


class Lease:
    """The time for which ZooKeeper keeps a session, whatever happens.

    A session lives for its timeout after the server has last heard from it, and the server hears of a request after it
    was sent. So after an answer the client knows that the session lives until the request's departure plus the timeout,
    less a margin. A process that was stopped for longer finds its lease run out when it wakes up, before it has heard
    anything. (Gray and Cheriton, "Leases", 1989.)

    Only the answer to what a quorum has agreed to counts, a write or a transaction. A server that has lost the others
    still answers reads until it notices.

    Example:
        >>> lease = Lease()
        >>> lease.renew(session=7, sent_at=100.0, timeout=20.0)
        >>> lease.holds(7, now=114.9), lease.holds(7, now=115.0), lease.holds(8, now=100.0)
        (True, False, False)
    """

    def __init__(self) -> None:
        #: Session and end of its lease; replaced as a whole, so that any thread may look.
        self._lease: tuple[int | None, float] = (None, 0.0)

    def renew(self, session: int, sent_at: float, timeout: float) -> None:
        """Notes that a request that was sent then, in that session, has been answered."""
        holder, until = self._lease
        end = sent_at + timeout * (1 - MARGIN)
        self._lease = (session, max(until, end) if holder == session else end)

    def holds(self, session: int, now: float) -> bool:
        """Whether the session lives for sure."""
        holder, until = self._lease
        return holder == session and now < until
