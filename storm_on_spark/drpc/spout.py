"""`DRPCSpout`: emits the requests of a function."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from storm_on_spark.api.component import BaseRichSpout, Waker
from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.text.wording import kind_of
from storm_on_spark.cluster.errors import AuthenticationError
from storm_on_spark.drpc.addresses import DRPCSettings, address_of
from storm_on_spark.drpc.connection import Address, DRPCConnection
from storm_on_spark.drpc.errors import DRPCExecutionException
from storm_on_spark.drpc.fetching import Fetched, Fetcher
from storm_on_spark.drpc.return_info import write_return_info

if TYPE_CHECKING:
    from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
    from storm_on_spark.api.task.collector import SpoutOutputCollector
    from storm_on_spark.api.task.context import TopologyContext

log = logging.getLogger(__name__)

_FAIL_SECS = 5.0


class HasInvocations(Protocol):
    """A DRPC server of this process, such as `LocalDRPC`."""

    @property
    def invocations(self) -> Address:
        """Where topologies fetch requests."""


class _NoWaker:
    """Wakes nobody: the spout is asked again and again."""

    def __call__(self) -> None:
        pass

    def watch(self, descriptor: int) -> None:
        pass

    def unwatch(self, descriptor: int) -> None:
        pass


class _NoState:
    """Stands for the spout where its attributes are saved: there is nothing to save."""


class DRPCSpout(BaseRichSpout):
    """Emits the requests of a function: their arguments, and `return-info`, which `ReturnResults` needs.

    Its message is the request: one that fails in the topology, or times out there, fails for its caller too
    (FAILED_REQUEST). It is not emitted again.

    Args:
        function: whose requests.
        drpc: a server of this process; None for the servers of `drpc.servers`, of all of which requests are emitted.

    Raises:
        InvalidTopologyError: the function is not text.

    Example:
        >>> from storm_on_spark import TopologyBuilder
        >>> builder = TopologyBuilder()
        >>> _ = builder.set_spout("drpc", DRPCSpout("exclaim"))
    """

    def __init__(self, function: str, drpc: HasInvocations | None = None) -> None:
        given: object = function
        if not isinstance(given, str) or not given:
            raise InvalidTopologyError(f"DRPCSpout takes the name of a function, not {kind_of(function)}")
        self.function = function
        self._server = None if drpc is None else drpc.invocations

    @property
    def state_holder(self) -> _NoState:
        """The object whose attributes are saved."""
        return _NoState()

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares the fields."""
        declarer.declare(Fields("args", "return-info"))

    def open(self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector) -> None:
        """Prepares the task.

        Raises:
            ConfigError: the configuration names no server.
        """
        self._collector = collector
        self._waker: Waker = _NoWaker()
        self._requests: deque[Fetched] = deque()
        #: Whether what was emitted has yet to get on its way: the executor sends it when a call emits nothing.
        self._emitted = False
        self._fetchers: list[Fetcher] = []
        self._connections: dict[Address, DRPCConnection] = {}
        if self._server is not None:
            self._servers = [self._server]
        else:
            settings = DRPCSettings.of(conf)
            self._servers = [address_of(conf, host, settings.invocations_port) for host in settings.hosts()]

    def woken_by(self, wake: Waker) -> None:
        """Keeps what makes a request be emitted at once."""
        self._waker = wake

    def next_tuple(self) -> None:
        """Emits a request."""
        if not self._fetchers:
            self._fetchers = [Fetcher(server, self.function, self._requests, self._waker) for server in self._servers]
        if not self._requests:
            if self._emitted:
                self._emitted = False  # the next question is asked when this request is on its way
                return
            for fetcher in self._fetchers:
                fetcher.fetch()
        try:
            request = self._requests.popleft()
        except IndexError:
            return
        info = write_return_info(request.id, request.server, own_login=self._server is not None)
        self._collector.emit([request.arguments, info], message_id=(request.server, request.id))
        self._emitted = True

    def fail(self, message_id: Any) -> None:
        """Fails the request."""
        server, request_id = message_id
        connection = self._connections.setdefault(
            server, DRPCConnection(server, "DistributedRPCInvocations", _FAIL_SECS)
        )
        for attempts_left in (1, 0):
            try:
                connection.call("failRequest", request_id)
                return
            except (OSError, AuthenticationError, DRPCExecutionException) as error:
                # The server may have closed a connection that was idle.
                connection.close()
                if not attempts_left:
                    log.warning("a request can't be failed at %s: %s", server, error)

    def deactivate(self) -> None:
        """Fetches nothing more; what was fetched is emitted with the next activation."""
        self._stop()

    def close(self) -> None:
        """Ends it; requests that were fetched and not emitted fail."""
        self._stop()
        while self._requests:
            request = self._requests.popleft()
            self.fail((request.server, request.id))
        for connection in self._connections.values():
            connection.close()

    def _stop(self) -> None:
        fetchers, self._fetchers = self._fetchers, []
        for fetcher in fetchers:
            fetcher.stop()
        for fetcher in fetchers:
            fetcher.join(_FAIL_SECS)
