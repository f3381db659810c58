"""When a task has got all tuples of a request: counts in, "it is complete" out. No I/O, no clock.

Each upstream task reports how many tuples of the request it has sent to this task. The request is complete when every
upstream task has reported, the task has acked as many tuples as they reported together, and the request itself has been
announced, if it has to be. Then this task reports to its own downstream tasks.

The algorithm is that of Storm's `CoordinatedBolt`.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

T = TypeVar("T")

LIVES: Final = 3
"""Turns of `expired` that an unfinished request outlives at most; with two turns per timeout T, from T to 1.5 T."""


@dataclass
class Request(Generic[T]):
    """What a task knows of one request."""

    announced: bool
    reports: int = 0
    expected: int = 0
    """Tuples that upstream tasks have reported."""
    received: int = 0
    """Tuples that were acked."""
    sent: dict[int, int] = field(default_factory=dict)
    """Downstream task -> tuples that were sent to it."""
    held: list[T] = field(default_factory=list)
    """Tuples that are acked once the request is complete."""
    failed: bool = False
    turns: int = 0


class Coordination(Generic[T]):
    """The unfinished requests of one task.

    Args:
        reports: how many upstream tasks report; 0 if this task gets a single tuple per request.
        announced: whether each request is announced with a separate tuple.

    Example:
        >>> requests = Coordination(reports=2, announced=False)
        >>> requests.report("r1", 1), requests.is_complete("r1")
        (None, False)
        >>> requests.acked("r1"), requests.report("r1", 0), requests.is_complete("r1")
        (None, None, True)
    """

    def __init__(self, reports: int, announced: bool) -> None:
        self._reports = reports
        self._announced = announced
        self._open: dict[Hashable, Request[T]] = {}

    def __len__(self) -> int:
        return len(self._open)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._open

    def begin(self, key: Hashable) -> Request[T]:
        """Returns a request, which is new if it isn't known."""
        found = self._open.get(key)
        if found is None:
            found = self._open[key] = Request(announced=not self._announced)
        return found

    def announce(self, key: Hashable) -> None:
        """Notes that the request was announced."""
        self.begin(key).announced = True

    def report(self, key: Hashable, count: int) -> None:
        """Notes that an upstream task has sent `count` tuples of the request to this task, and will send no more."""
        request = self.begin(key)
        request.reports += 1
        request.expected += count

    def sent(self, key: Hashable, tasks: list[int]) -> None:
        """Notes that a tuple of the request was sent to tasks; ignored if the request is no longer known."""
        request = self._open.get(key)
        if request is not None:
            for task in tasks:
                request.sent[task] = request.sent.get(task, 0) + 1

    def acked(self, key: Hashable) -> None:
        """Notes that a tuple of the request was processed."""
        request = self._open.get(key)
        if request is not None:
            request.received += 1

    def fail(self, key: Hashable) -> None:
        """Notes that a tuple of the request failed, and with it the request."""
        request = self._open.get(key)
        if request is not None:
            request.failed = True

    def is_complete(self, key: Hashable) -> bool:
        """Returns whether nothing more of the request will come, and all of it was processed."""
        request = self._open.get(key)
        if request is None or request.failed or not request.announced:
            return False
        return not self._reports or (request.reports == self._reports and request.expected == request.received)

    def end(self, key: Hashable) -> Request[T]:
        """Forgets a request and returns what was known of it."""
        return self._open.pop(key)

    def expired(self) -> list[tuple[Hashable, Request[T]]]:
        """Returns, and forgets, the requests that have been unfinished for `LIVES` turns; called at every turn."""
        for request in self._open.values():
            request.turns += 1
        keys = [key for key, request in self._open.items() if request.turns >= LIVES]
        return [(key, self._open.pop(key)) for key in keys]
