"""Fetching the requests of a function from one server, on a thread."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

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


class Fetched(NamedTuple):
    """A request, and where it came from."""

    server: Address
    id: str
    arguments: str


class Fetcher(threading.Thread):
    """Fetches requests until it is stopped. What breaks is connected again.

    Args:
        server: the server's service for topologies.
        function: whose requests.
        requests: gets them.
        wake: called when there are new ones.
    """

    def __init__(self, server: Address, function: str, requests: deque[Fetched], wake: Callable[[], None]) -> None:
        super().__init__(name=f"drpc-{server}", daemon=True)
        self._server = server
        self._function = function
        self._requests = requests
        self._wake = wake
        self._connection = DRPCConnection(server, "DistributedRPCInvocations", _ANSWER_SECS)
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Lets it end, also while it waits for the server."""
        self._stopped.set()
        self._connection.close()

    def run(self) -> None:
        """Fetches."""
        failures = 0
        waits = True
        while not self._stopped.is_set():
            room = MOST_FETCHED - len(self._requests)
            if room <= 0:
                self._stopped.wait(_POLL_SECS)
                continue
            try:
                if waits:
                    found = self._connection.call("fetchRequests", self._function, room, _WAIT_MS)
                else:
                    found = [
                        each for each in [self._connection.call("fetchRequest", self._function)] if each.request_id
                    ]
            except NotImplementedError:
                waits = False
                continue
            except (OSError, AuthenticationError, DRPCExecutionException) as error:
                if self._stopped.is_set():
                    break
                if failures == 0:
                    log.warning("requests of %r can't be fetched from %s: %s", self._function, self._server, error)
                self._connection.close()
                self._stopped.wait(_RETRY_SECS[min(failures, len(_RETRY_SECS) - 1)])
                failures += 1
                continue
            if failures:
                log.info("requests of %r are fetched from %s again", self._function, self._server)
                failures = 0
            if found:
                self._requests.extend(Fetched(self._server, each.request_id, each.func_args) for each in found)
                self._wake()
            elif not waits:
                self._stopped.wait(_POLL_SECS)
        self._connection.close()
