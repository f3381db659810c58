"""The bolts around those that answer requests: `PrepareRequest`, `JoinResult`, `ReturnResults`."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

from storm_on_spark.api.component import BaseBasicBolt, BaseRichBolt
from storm_on_spark.api.config import Config
from storm_on_spark.api.config.settings import Settings
from storm_on_spark.api.errors import FailedException
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.streams.stream import DEFAULT_STREAM
from storm_on_spark.cluster.errors import AuthenticationError
from storm_on_spark.drpc.connection import DRPCConnection
from storm_on_spark.drpc.errors import DRPCExecutionException
from storm_on_spark.drpc.return_info import parse_return_info

if TYPE_CHECKING:
    from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
    from storm_on_spark.api.task.collector import BasicOutputCollector, OutputCollector
    from storm_on_spark.api.task.context import TopologyContext
    from storm_on_spark.api.tuple import Tuple

log = logging.getLogger(__name__)

ARGS_STREAM: Final = DEFAULT_STREAM
RETURN_STREAM: Final = "ret"
ID_STREAM: Final = "id"
_ANSWER_SECS: Final = 5.0
_TIMER: Final = "join"
_LIVES: Final = 3


class PrepareRequest(BaseBasicBolt):
    """Splits what a `DRPCSpout` emits: arguments, return information and an announcement, each with the request's id.

    Its streams are `default` (request, args), `ret` (request, return) and `id` (request).
    """

    stateless = True

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Splits a request."""
        # The server's id: nobody can guess it, and it is the same if this is executed again.
        request = parse_return_info(tup[1]).id
        collector.emit([request, tup[0]], ARGS_STREAM)
        collector.emit([request, tup[1]], RETURN_STREAM)
        collector.emit([request], ID_STREAM)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares the three streams."""
        declarer.declare_stream(ARGS_STREAM, Fields("request", "args"))
        declarer.declare_stream(RETURN_STREAM, Fields("request", "return"))
        declarer.declare_stream(ID_STREAM, Fields("request"))


@dataclass(frozen=True)
class _Timeout(Settings):
    timeout_secs: Annotated[int, Config.TOPOLOGY_MESSAGE_TIMEOUT_SECS]


class JoinResult(BaseRichBolt):
    """Joins the result of a request with its return information, by the request's id, the first value of both.

    Emits `result`, as text, and `return-info`. What finds no partner fails after `topology.message.timeout.secs`.

    Args:
        return_component: the component that emits return information.

    Example:
        >>> from storm_on_spark.testing import make_tuple, run_bolt
        >>> result = make_tuple(["r1", 7], ["id", "result"], component="bolt0")
        >>> info = make_tuple(["r1", "{...}"], ["request", "return"], component="prepare-request", stream="ret")
        >>> run_bolt(JoinResult("prepare-request"), [result, info]).values()
        [('7', '{...}')]
    """

    stateless = False

    def __init__(self, return_component: str) -> None:
        self._return_component = return_component

    def declare_timers(self, conf: Mapping[str, Any]) -> Mapping[str, int]:
        """Declares the timer by which half of a pair expires."""
        return {_TIMER: _Timeout.of(conf).timeout_secs * 500}

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Keeps the collector."""
        self._collector = collector
        #: Request -> its result, or its return information, and the turns of the timer that it has seen.
        self._results: dict[Hashable, tuple[Tuple, int]] = {}
        self._returns: dict[Hashable, tuple[Tuple, int]] = {}

    def execute(self, tup: Tuple) -> None:
        """Takes one of the two, and emits when both are there."""
        if tup.is_timer:
            self._expire()
            self._collector.ack(tup)
            return
        request = tup[0]
        is_return = tup.source_component == self._return_component
        mine, others = (self._returns, self._results) if is_return else (self._results, self._returns)
        if request not in others:
            # As in Storm, of several results of a request the last one before its return information counts.
            mine[request] = (tup, 0)
            return
        other, _ = others.pop(request)
        result, returned = (other, tup) if is_return else (tup, other)
        self._collector.emit([str(result[1]), returned[1]], anchors=[result, returned])
        self._collector.ack(result)
        self._collector.ack(returned)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares the fields."""
        declarer.declare(Fields("result", "return-info"))

    def _expire(self) -> None:
        for halves in (self._results, self._returns):
            for request, (tup, turns) in list(halves.items()):
                if turns + 1 < _LIVES:
                    halves[request] = (tup, turns + 1)
                else:
                    del halves[request]
                    self._collector.fail(tup)


class ReturnResults(BaseBasicBolt):
    """Returns results to the DRPC servers that the requests came from. Input: the result, as text, and `return-info`.

    A result that can't be returned fails its tuple, and so the request.
    """

    stateless = True

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Begins without a connection."""
        self._conf = conf
        #: Host, port and login files -> the connection.
        self._connections: dict[object, DRPCConnection] = {}

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Returns a result.

        Raises:
            FailedException: the server can't be reached, or refuses it.
        """
        info = parse_return_info(tup[1])
        known = (info.host, info.port, info.login)
        connection = self._connections.get(known)
        if connection is None:
            server = info.server(self._conf)
            connection = self._connections[known] = DRPCConnection(server, "DistributedRPCInvocations", _ANSWER_SECS)
        for attempts_left in (1, 0):
            try:
                connection.call("result", info.id, str(tup[0]))
                return
            except (OSError, AuthenticationError, DRPCExecutionException) as error:
                # The server may have closed a connection that was idle.
                connection.close()
                if not attempts_left:
                    log.warning("a result can't be returned to %s: %s", connection.address, error)
                    raise FailedException(f"a result can't be returned to {connection.address}: {error}") from error

    def cleanup(self) -> None:
        """Ends the connections."""
        for connection in self._connections.values():
            connection.close()
