"""Returning the results of a DRPC stream to the callers."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from storm_on_spark.api.errors import FailedException
from storm_on_spark.api.tuple import Tuple
from storm_on_spark.cluster.errors import AuthenticationError
from storm_on_spark.drpc.connection import Address, DRPCConnection
from storm_on_spark.drpc.errors import DRPCExecutionException
from storm_on_spark.drpc.return_info import read_return_info
from storm_on_spark.trident.operations.functions import MultiReducer, TridentCollector

if TYPE_CHECKING:
    from storm_on_spark.api.task.context import TopologyContext

log = logging.getLogger(__name__)

_ANSWER_SECS: Final = 5.0


class ReturnResultsReducer(MultiReducer):
    """Returns the tuples of a stream, as JSON, to the caller whose `return-info` another stream has."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:  # noqa: D102
        self._conf = conf
        self._connections: dict[Address, DRPCConnection] = {}

    def init(self, collector: TridentCollector) -> list[list[Any]]:  # noqa: D102
        return [[], []]

    def execute(self, accumulator: Any, stream: int, tup: Tuple, collector: TridentCollector) -> None:  # noqa: D102
        accumulator[stream].append(tup[0] if stream == 0 else list(tup))

    def complete(self, accumulator: Any, collector: TridentCollector) -> None:
        """Returns the results.

        Raises:
            FailedException: they are not JSON, or the server can't be reached or refuses them.
        """
        callers, results = accumulator
        if not callers:
            return
        try:
            text = json.dumps(results)
        except (TypeError, ValueError) as error:
            raise FailedException(f"the results of a DRPC stream are not JSON: {error}") from error
        for caller in callers:
            self._return(caller, text)

    def _return(self, caller: Any, text: str) -> None:
        request, server = read_return_info(caller, self._conf)
        connection = self._connections.get(server)
        if connection is None:
            connection = self._connections[server] = DRPCConnection(server, "DistributedRPCInvocations", _ANSWER_SECS)
        for attempts_left in (1, 0):
            try:
                connection.call("result", request, text)
                return
            except (OSError, AuthenticationError, DRPCExecutionException) as error:
                # The server may have closed a connection that was idle.
                connection.close()
                if not attempts_left:
                    log.warning("a result can't be returned to %s: %s", server, error)
                    raise FailedException(f"a result can't be returned to {server}: {error}") from error
