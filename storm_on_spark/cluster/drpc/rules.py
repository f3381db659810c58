"""The requests of a DRPC server: which wait, which are being worked on, and when they end. No I/O, no clock.

    submit  ->  waits in its function's queue  ->  fetch  ->  is worked on  ->  result or fail  ->  ended
                                   |                                |
                                   +------------------------------->+--->  expire or shutdown   ->  ended

A request ends once; whatever comes for it afterwards is for an unknown id.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from storm_on_spark.drpc.errors import DRPCExceptionType, DRPCExecutionException, check_text

MOST_NAME: Final = 200
"""Characters of a function's name."""
MOST_REQUESTS: Final = 10_000
"""Unfinished requests of one server, of all functions."""
MOST_FETCHED_CHARACTERS: Final = 1 << 20
"""Arguments that are handed out at a time, unless a single request has more: a topology refuses an answer above 32 MB,
and what it is handed is lost with it."""


@dataclass(frozen=True)
class Request:
    """A request that a topology is to work on."""

    id: str
    arguments: str


@dataclass(frozen=True)
class Outcome:
    """How a request ended: with a result, or with an error."""

    id: str
    result: str | None = None
    error: DRPCExecutionException | None = None


@dataclass
class _Open:
    function: str
    request: Request
    deadline: float


class Requests:
    """The unfinished requests of one server.

    Args:
        timeout_secs: how long a request may take.
        most_waiting: requests of a function that may wait to be fetched.
        new_id: makes an id that nobody can guess.

    Example:
        >>> requests = Requests(600, 128, iter(["a1", "a2"]).__next__)
        >>> requests.submit("exclaim", "hello", now=0.0), requests.fetch("exclaim", 10)
        ('a1', [Request(id='a1', arguments='hello')])
        >>> requests.result("a1", "hello!"), requests.result("a1", "again")
        (Outcome(id='a1', result='hello!', error=None), None)
    """

    def __init__(self, timeout_secs: float, most_waiting: int, new_id: Callable[[], str]) -> None:
        self._timeout = timeout_secs
        self._most_waiting = most_waiting
        self._new_id = new_id
        self._open: dict[str, _Open] = {}
        #: Function -> ids of the requests that wait, oldest first.
        self._waiting: dict[str, deque[str]] = {}
        #: Deadline and id, soonest first; of requests that have ended by now, too.
        self._deadlines: list[tuple[float, str]] = []
        self._closed = False

    def __len__(self) -> int:
        return len(self._open)

    def submit(self, function: str, arguments: str, now: float) -> str:
        """Takes a request and returns its id.

        Raises:
            DRPCExecutionException: the server ends, the name is none, the arguments can't be handed out, or too many
                wait.
        """
        if self._closed:
            raise _shut_down()
        check_text(function)
        check_text(arguments)
        if not 0 < len(function) <= MOST_NAME:
            raise DRPCExecutionException(
                f"the name of a function has 1 to {MOST_NAME} characters, and this one {len(function):,}",
                DRPCExceptionType.INTERNAL_ERROR,
            )
        waiting = len(self._waiting.get(function, ()))
        if waiting >= self._most_waiting or len(self._open) >= MOST_REQUESTS:
            raise DRPCExecutionException(
                f"{waiting} requests for {function!r} wait for a topology already (drpc.queue.size), of "
                f"{len(self._open)} unfinished ones; try again later",
                DRPCExceptionType.INTERNAL_ERROR,
            )
        key = self._new_id()
        deadline = now + self._timeout
        self._open[key] = _Open(function, Request(key, arguments), deadline)
        self._waiting.setdefault(function, deque()).append(key)
        heapq.heappush(self._deadlines, (deadline, key))
        return key

    def function_of(self, key: str) -> str | None:
        """Returns whose request it is; None if there is no such request (any more)."""
        known = self._open.get(key)
        return None if known is None else known.function

    def fetch(self, function: str, most: int) -> list[Request]:
        """Returns up to `most` requests that wait, the oldest first; they are worked on from now on."""
        found: list[Request] = []
        queue, characters = self._waiting.get(function), 0
        while queue and len(found) < most:
            request = self._open[queue[0]].request
            characters += len(request.arguments)
            if found and characters > MOST_FETCHED_CHARACTERS:
                break
            queue.popleft()
            found.append(request)
        self._tidy(function)
        return found

    def result(self, key: str, result: str) -> Outcome | None:
        """Ends a request with its result; None if there is no such request (any more)."""
        return Outcome(key, result=result) if self._end(key) else None

    def fail(self, key: str, error: DRPCExecutionException | None = None) -> Outcome | None:
        """Ends a request that failed; None if there is no such request (any more)."""
        return Outcome(key, error=error or DRPCExecutionException("the request failed")) if self._end(key) else None

    def give_up(self, key: str) -> None:
        """Forgets a request whose client is gone."""
        self._end(key)

    def next_deadline(self) -> float | None:
        """Returns when the next request expires; None if there is none."""
        while self._deadlines and self._deadlines[0][1] not in self._open:
            heapq.heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def expire(self, now: float) -> list[Outcome]:
        """Ends the requests that have taken too long."""
        found: list[Outcome] = []
        while (deadline := self.next_deadline()) is not None and deadline <= now:
            _, key = heapq.heappop(self._deadlines)
            function = self._open[key].function
            self._end(key)
            text = f"{function!r} has not answered within {self._timeout:g} s (drpc.request.timeout.secs)"
            found.append(Outcome(key, error=DRPCExecutionException(text, DRPCExceptionType.SERVER_TIMEOUT)))
        return found

    def shutdown(self) -> list[Outcome]:
        """Ends all requests, and takes no more."""
        self._closed = True
        found = [Outcome(key, error=_shut_down()) for key in self._open]
        self._open.clear()
        self._waiting.clear()
        return found

    def _end(self, key: str) -> bool:
        known = self._open.pop(key, None)
        if known is None:
            return False
        queue = self._waiting.get(known.function, ())
        if key in queue:
            self._waiting[known.function].remove(key)
            self._tidy(known.function)
        return True

    def _tidy(self, function: str) -> None:
        """Forgets an empty queue: names come from outside."""
        if not self._waiting.get(function, True):
            del self._waiting[function]


def _shut_down() -> DRPCExecutionException:
    return DRPCExecutionException("the DRPC server ends", DRPCExceptionType.SERVER_SHUTDOWN)
