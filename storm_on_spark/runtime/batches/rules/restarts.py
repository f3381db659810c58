"""When a spout host that died is started again."""

from __future__ import annotations

from collections.abc import Sequence


class RestartPolicy:
    """When a host that died is started again, as Storm's supervisor does with a worker, but not for ever.

    Args:
        pauses: seconds before each restart in a row; after the last of them the host is given up.
        healthy_secs: a host that ran this long counts as healthy: its failures are forgotten.

    Example:
        >>> policy = RestartPolicy(pauses=(0.0, 1.0), healthy_secs=60)
        >>> policy.next_pause(3.0), policy.next_pause(3.0), policy.next_pause(3.0)
        (0.0, 1.0, None)
        >>> policy.next_pause(3600.0)
        0.0
    """

    def __init__(self, pauses: Sequence[float] = (0.0, 0.5, 1.0, 2.0, 4.0), healthy_secs: float = 60.0) -> None:
        self._pauses = tuple(pauses)
        self._healthy_secs = healthy_secs
        self.restarts = 0
        """Restarts in a row."""

    def next_pause(self, ran_secs: float) -> float | None:
        """Returns how long to wait before the next start of a host that ran for `ran_secs`; None to give up."""
        if ran_secs >= self._healthy_secs:
            self.restarts = 0
        if self.restarts == len(self._pauses):
            return None
        self.restarts += 1
        return self._pauses[self.restarts - 1]
