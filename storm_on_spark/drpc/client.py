"""`DRPCClient`: asks a DRPC server, as Storm's `org.apache.storm.utils.DRPCClient` does."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final

from storm_on_spark.api.config import Config
from storm_on_spark.drpc.addresses import DRPCSettings, address_of
from storm_on_spark.drpc.connection import DRPCConnection
from storm_on_spark.drpc.errors import DRPCExceptionType, DRPCExecutionException

_FRAME_BYTES: Final = 256
"""Of a call, around its arguments."""
_GRACE_SECS: Final = 10.0
"""By which a client waits longer than the server does."""


class DRPCClient:
    """A client of a DRPC server. Any thread may use it; requests of one client follow one another.

    Args:
        conf: the cluster's configuration.
        host: of the server; the first of `drpc.servers` for None.
        port: of its Thrift service; `drpc.port` for None.
        timeout_secs: how long a request may take; for None as long as `drpc.request.timeout.secs` says, and some
            seconds more.

    Example:
        >>> with DRPCClient({"drpc.servers": ["localhost"]}) as client:      # doctest: +SKIP
        ...     client.execute("exclaim", "hello")
        'hello!'
    """

    def __init__(
        self,
        conf: Mapping[str, Any],
        host: str | None = None,
        port: int | None = None,
        timeout_secs: float | None = None,
    ) -> None:
        settings = DRPCSettings.of(conf)
        address = address_of(conf, host or settings.hosts()[0], settings.port if port is None else port)
        self._most = settings.most_bytes
        self._timeout = settings.timeout_secs + _GRACE_SECS if timeout_secs is None else timeout_secs
        self._connection = DRPCConnection(address, "DistributedRPC", self._timeout)
        self._lock = threading.Lock()

    def execute(self, function: str, arguments: str) -> str:
        """Returns the result of a function for arguments, which are text.

        Raises:
            DRPCExecutionException: there is no result; its type says why. INTERNAL_ERROR: the server takes no more
                requests, or it can't be reached, or the connection broke, and then the request may have been executed;
                or an argument is text that UTF-8 doesn't have.
            AuthenticationError: the server does not let this client in.
            TypeError: an argument is not text.
        """
        given: tuple[object, object] = (function, arguments)
        if not all(isinstance(each, str) for each in given):
            raise TypeError(f"execute takes two texts, not {type(function).__name__} and {type(arguments).__name__}")
        with self._lock:
            try:
                found: str = self._connection.call("execute", function, arguments)
            except TimeoutError as error:
                raise DRPCExecutionException(
                    f"{self._connection.address} has not answered within {self._timeout:g} s",
                    DRPCExceptionType.SERVER_TIMEOUT,
                ) from error
            except OSError as error:
                # A server says nothing to a call that is too long: it hangs up.
                size = len(arguments.encode())
                hint = f" (arguments of {size:,} bytes; {Config.DRPC_MAX_BUFFER_SIZE} is {self._most:,} here)"
                raise DRPCExecutionException(
                    f"the DRPC server {self._connection.address} can't be reached: {error.strerror or error}"
                    + (hint if size > self._most - _FRAME_BYTES else ""),
                    DRPCExceptionType.INTERNAL_ERROR,
                ) from error
        return found

    def close(self) -> None:
        """Ends the connection."""
        self._connection.close()

    def __enter__(self) -> DRPCClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
