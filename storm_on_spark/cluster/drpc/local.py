"""`LocalDRPC`: a DRPC server of this process, for scripts, notebooks and tests."""

from __future__ import annotations

import contextlib
import secrets
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

from storm_on_spark.api.config import Config
from storm_on_spark.cluster.drpc.server import DRPCServer, Ports
from storm_on_spark.cluster.security.user_token import make_secret_file
from storm_on_spark.drpc.connection import Address
from storm_on_spark.runtime.processes.closing import Closing

_ANY: Final = Ports(0, 0, 0)


class LocalDRPC(Closing):
    """A DRPC server on free ports of loopback, with its own token. It serves from its creation until `close`.

    Spouts run in other processes, so this is a real server: they find its address and its token's file in the topology.

    Args:
        conf: configuration of the server, such as `drpc.request.timeout.secs`.

    Example:
        >>> with LocalDRPC() as drpc, LocalCluster() as cluster:                         # doctest: +SKIP
        ...     cluster.submit_topology("exclaim", {}, builder.create_local_topology(drpc))
        ...     drpc.execute("exclaim", "hello")
        'hello!'
    """

    def __init__(self, conf: Mapping[str, Any] | None = None) -> None:
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="storm-on-spark-drpc-"))
            token = Path(folder) / "token"
            make_secret_file(token, secrets.token_hex(32))
            own = {**(conf or {}), Config.NIMBUS_AUTH_TOKEN_FILE: str(token), Config.DRPC_BIND_ADDRESS: "127.0.0.1"}
            self._server = stack.enter_context(DRPCServer(own, _ANY))
            self._stack = stack.pop_all()

    @property
    def invocations(self) -> Address:
        """Where topologies fetch requests."""
        return self._server.invocations

    @property
    def calls(self) -> Address:
        """Where clients call it over Thrift."""
        return self._server.calls

    @property
    def url(self) -> str:
        """Where it is called over HTTP, with its token."""
        return self._server.url

    def execute(self, function: str, arguments: str) -> str:
        """Returns the result of a function; any thread may call it.

        Raises:
            DRPCExecutionException: there is no result; its type says why.
        """
        return self._server.execute(function, arguments)

    def close(self) -> None:
        """Ends the server; requests that wait end with SERVER_SHUTDOWN."""
        self._stack.close()

    shutdown = close

    def __reduce__(self) -> NoReturn:
        raise TypeError("a LocalDRPC belongs to its process; spouts need its address only: DRPCSpout(function, drpc)")
