"""The requests of a server on its event loop: callers wait for outcomes, and topologies for requests."""

from __future__ import annotations

import asyncio
import concurrent.futures
import secrets
from collections import deque
from collections.abc import Callable, Iterable

from storm_on_spark.cluster.drpc.rules import Outcome, Request, Requests
from storm_on_spark.drpc.errors import DRPCExecutionException

MOST_WAITS = 1000
"""Fetches that wait at the same time; others get nothing at once."""


class Broker:
    """Connects callers and topologies. Only the event loop of the server calls it.

    Args:
        timeout_secs: how long a request may take.
        most_waiting: requests of a function that may wait to be fetched.
    """

    def __init__(self, timeout_secs: float, most_waiting: int) -> None:
        self.requests = Requests(timeout_secs, most_waiting, lambda: secrets.token_hex(16))
        #: Request -> what tells its caller how it ended.
        self._callers: dict[str, Callable[[Outcome], None]] = {}
        #: Function -> fetches that wait for a request.
        self._fetches: dict[str, deque[asyncio.Future[None]]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def fetching(self) -> int:
        """How many fetches wait."""
        return sum(map(len, self._fetches.values()))

    def submit(self, function: str, arguments: str, tell: Callable[[Outcome], None]) -> str:
        """Takes a request and returns its id.

        Args:
            function: whose request.
            arguments: of the request.
            tell: called once, when the request has ended, unless it is given up before.

        Raises:
            DRPCExecutionException: the request can't be taken.
        """
        loop = asyncio.get_running_loop()
        key = self.requests.submit(function, arguments, loop.time())
        self._callers[key] = tell
        self._watch(loop)
        self._wake(function)
        return key

    def give_up(self, key: str) -> None:
        """Forgets a request whose caller is gone."""
        self._callers.pop(key, None)
        self.requests.give_up(key)

    async def execute(self, function: str, arguments: str) -> str:
        """Returns the result of a request.

        Raises:
            DRPCExecutionException: there is none.
        """
        caller: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        key = self.submit(function, arguments, lambda outcome: finish(caller, outcome))
        try:
            return await caller
        finally:
            # The caller may be gone.
            self.give_up(key)

    def function_of(self, key: str) -> str | None:
        """Returns whose request it is; None if there is no such request (any more)."""
        return self.requests.function_of(key)

    def fetch_now(self, function: str, most: int) -> list[Request]:
        """Returns requests for a topology that wait now."""
        return self.requests.fetch(function, most)

    async def fetch(self, function: str, most: int, secs: float) -> list[Request]:
        """Returns requests for a topology; waits until there is one, but no longer than `secs`."""
        found = self.requests.fetch(function, most)
        if found or secs <= 0 or self._closed or self.fetching >= MOST_WAITS:
            return found
        loop = asyncio.get_running_loop()
        news: asyncio.Future[None] = loop.create_future()
        self._fetches.setdefault(function, deque()).append(news)
        timer = loop.call_later(secs, _tell, news)
        try:
            await news
        except asyncio.CancelledError:
            # The topology is gone: what woke this fetch is for another one.
            self._wake(function)
            raise
        finally:
            timer.cancel()
            self._leave(function, news)
        return self.requests.fetch(function, most)

    def result(self, key: str, result: str) -> None:
        """Takes a result; one for an unknown request changes nothing, as with Storm."""
        self._tell([self.requests.result(key, result)])

    def fail(self, key: str, error: DRPCExecutionException | None = None) -> None:
        """Takes that a request failed."""
        self._tell([self.requests.fail(key, error)])

    def close(self) -> None:
        """Ends all requests with SERVER_SHUTDOWN, and all fetches with nothing."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._tell(self.requests.shutdown())
        for waiting in self._fetches.values():
            for news in waiting:
                _tell(news)

    def _tell(self, outcomes: Iterable[Outcome | None]) -> None:
        for outcome in outcomes:
            tell = None if outcome is None else self._callers.pop(outcome.id, None)
            if outcome is not None and tell is not None:
                tell(outcome)

    def _wake(self, function: str) -> None:
        for news in self._fetches.get(function, ()):
            if not news.done():
                news.set_result(None)
                return

    def _leave(self, function: str, news: asyncio.Future[None]) -> None:
        waiting = self._fetches[function]
        waiting.remove(news)
        if not waiting:
            del self._fetches[function]

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        deadline = self.requests.next_deadline()
        if self._timer is None and deadline is not None and not self._closed:
            self._timer = loop.call_at(deadline, self._expire, loop)

    def _expire(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        self._tell(self.requests.expire(loop.time()))
        self._watch(loop)


def _tell(news: asyncio.Future[None]) -> None:
    if not news.done():
        news.set_result(None)


def finish(caller: asyncio.Future[str] | concurrent.futures.Future[str], outcome: Outcome) -> None:
    """Gives a caller the outcome of its request, if it still waits."""
    if caller.done():
        return
    if outcome.error is not None:
        caller.set_exception(outcome.error)
    elif outcome.result is not None:
        caller.set_result(outcome.result)
