"""Fetching the requests of a function from one server, without a thread for what comes."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from storm_on_spark.api.component import Waker
from storm_on_spark.cluster.errors import AuthenticationError
from storm_on_spark.drpc.connection import Address, DRPCConnection
from storm_on_spark.drpc.errors import DRPCExecutionException

log = logging.getLogger(__name__)

MOST_FETCHED: Final = 256
"""Requests that wait in a spout's task to be emitted."""
_WAIT_MS: Final = 10_000
_ANSWER_SECS: Final = 20.0
_POLL_SECS: Final = 0.005
"""Between two questions to a server that doesn't wait itself: Storm's."""
_RETRY_SECS: Final = (0.1, 0.5, 1.0, 2.0, 5.0)
_QUESTION: Final = "fetchRequests"
_TROUBLE: Final = (OSError, AuthenticationError, DRPCExecutionException)


class Fetched(NamedTuple):
    """A request, and where it came from."""

    server: Address
    id: str
    arguments: str


class Fetcher:
    """Fetches requests from one server until it is stopped. What breaks is connected again.

    A thread connects, which may take long. The connection is then the spout's: its thread asks the question that waits
    at the server, rests until the answer comes, and reads it. A second thread in between would cost each request two
    switches of threads. Only a server of Storm's own, which has no such question, is asked again and again by a thread.

    Args:
        server: the server's service for topologies.
        function: whose requests.
        requests: gets them.
        waker: wakes the spout's thread.
    """

    def __init__(self, server: Address, function: str, requests: deque[Fetched], waker: Waker) -> None:
        self._server = server
        self._function = function
        self._requests = requests
        self._waker = waker
        self._stopped = threading.Event()
        self._failures = 0
        #: What the thread has connected, and the spout has not taken over.
        self._made: DRPCConnection | None = None
        #: The spout's connection, and when its question was asked; None if none is.
        self._connection: DRPCConnection | None = None
        self._descriptor = -1
        self._asked_at: float | None = None
        self._thread = self._begin()

    def fetch(self) -> None:
        """Takes requests that have come, and asks for more. It does not wait; the spout's thread calls it."""
        connection = self._connection
        if connection is None:
            connection = self._take_over()
            if connection is None:
                return
        try:
            if self._asked_at is not None:
                answer = connection.answer(_QUESTION)
                if answer is not None:
                    self._asked_at = None
                    self._heard()
                    self._take(answer.value)
                    if self._requests:
                        return  # they come first; the next question follows with the next call
                elif time.monotonic() - self._asked_at > _ANSWER_SECS:
                    raise TimeoutError(f"{self._server} does not answer")
            if self._asked_at is None and len(self._requests) < MOST_FETCHED:
                connection.ask(_QUESTION, self._function, MOST_FETCHED - len(self._requests), _WAIT_MS)
                self._asked_at = time.monotonic()
        except _TROUBLE as error:
            self._leave()
            self._failed(error)
            self._thread = self._begin()

    def stop(self) -> None:
        """Lets it end. Requests that have come by now are taken."""
        self._stopped.set()
        connection = self._connection or self._take_over()
        if connection is not None and self._asked_at is not None:
            with contextlib.suppress(*_TROUBLE):
                answer = connection.answer(_QUESTION)
                if answer is not None:
                    self._take(answer.value)
        self._leave()

    def join(self, secs: float) -> None:
        """Waits for the end of its thread."""
        self._thread.join(secs)
        made, self._made = self._made, None
        if made is not None:
            made.close()

    def _begin(self) -> threading.Thread:
        thread = threading.Thread(target=self._run, name=f"drpc-{self._server}", daemon=True)
        thread.start()
        return thread

    def _take_over(self) -> DRPCConnection | None:
        connection, self._made = self._made, None
        if connection is not None:
            self._connection, self._descriptor = connection, connection.fileno()
            self._waker.watch(self._descriptor)
        return connection

    def _leave(self) -> None:
        connection, self._connection, self._asked_at = self._connection, None, None
        if connection is not None:
            self._waker.unwatch(self._descriptor)  # the connection may have closed it already
            connection.close()

    def _take(self, found: Iterable[Any]) -> None:
        self._requests.extend(Fetched(self._server, each.request_id, each.func_args) for each in found)

    def _heard(self) -> None:
        if self._failures:
            log.info("requests of %r are fetched from %s again", self._function, self._server)
            self._failures = 0

    def _failed(self, error: Exception) -> None:
        if self._failures == 0:
            log.warning("requests of %r can't be fetched from %s: %s", self._function, self._server, error)
        self._failures += 1

    def _run(self) -> None:
        """Connects; asks servers of Storm's own until it is stopped."""
        connection = DRPCConnection(self._server, "DistributedRPCInvocations", _ANSWER_SECS)
        waits = True
        if self._failures:
            self._pause()
        while not self._stopped.is_set():
            if len(self._requests) >= MOST_FETCHED:
                self._stopped.wait(_POLL_SECS)
                continue
            try:
                if waits:
                    found = connection.call(_QUESTION, self._function, 1, 0)
                else:
                    found = [each for each in [connection.call("fetchRequest", self._function)] if each.request_id]
            except NotImplementedError:
                waits = False
                continue
            except _TROUBLE as error:
                if self._stopped.is_set():
                    break
                connection.close()
                self._failed(error)
                self._pause()
                continue
            self._take(found)
            if waits:
                self._made = connection
                self._waker()
                return
            self._heard()
            if found:
                self._waker()
            else:
                self._stopped.wait(_POLL_SECS)
        connection.close()

    def _pause(self) -> None:
        self._stopped.wait(_RETRY_SECS[min(self._failures, len(_RETRY_SECS)) - 1])
