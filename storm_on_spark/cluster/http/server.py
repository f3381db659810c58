"""The one HTTP server of this package: for REST, logs, metrics, and the source `http` of streams."""

from __future__ import annotations

import asyncio
import contextlib
import math
import socket
import ssl
import threading
from typing import Final, cast

import uvicorn
from starlette.types import ASGIApp

from storm_on_spark.api.errors import SetupError
from storm_on_spark.cluster.http.connection import Connections
from storm_on_spark.cluster.http.frames import FrameService
from storm_on_spark.cluster.http.limits import DEFAULT, Limits
from storm_on_spark.runtime.processes.closing import Service

_START_SECS: Final = 10.0
_STOP_SECS: Final = 3


def listen(host: str, port: int) -> socket.socket:
    """Returns a socket that listens; port 0 is any free one.

    Raises:
        SetupError: the address can't be used.
    """
    try:
        (family, kind, protocol, _, address), *_ = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        found = socket.socket(family, kind, protocol)
    except OSError as error:
        raise SetupError(f"can't listen on {host}:{port}: {error.strerror or error}") from error
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(128)
    except OSError as error:
        found.close()
        raise SetupError(f"can't listen on {host}:{port}: {error.strerror or error}") from error
    return found


class HttpServer(Service):
    """Serves an application on its own thread.

    Args:
        app: the application.
        listener: of `listen`; closed with the server.
        limits: how many connections it bears, for how long, and how long a head.
        tls: serves HTTPS with it; None for HTTP.
        frames: what answers connections that have frames instead of HTTP; None for nothing.
    """

    def __init__(
        self,
        app: ASGIApp,
        listener: socket.socket,
        limits: Limits = DEFAULT,
        tls: ssl.SSLContext | None = None,
        frames: FrameService | None = None,
    ) -> None:
        self._listener = listener
        self._connections = Connections(limits, tls, frames)
        config = uvicorn.Config(
            app,
            loop="asyncio",
            http=cast(type[asyncio.Protocol], self._connections.protocol),
            ws="none",
            interface="asgi3",
            proxy_headers=False,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            h11_max_incomplete_event_size=limits.head_bytes,
            timeout_keep_alive=math.ceil(limits.idle_secs),
            timeout_graceful_shutdown=_STOP_SECS,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, name="http", daemon=True)
        self._ready = threading.Event()

    def start(self) -> None:
        """Starts it and returns when it serves.

        Raises:
            SetupError: it doesn't.
        """
        self._thread.start()
        # What listens takes connections already; they wait until the loop runs.
        if not self._ready.wait(_START_SECS) or not self._thread.is_alive():
            raise SetupError("the HTTP server did not start; see the log")

    def stop(self) -> None:
        """Lets it end; any thread may."""
        self._server.should_exit = True

    def close(self) -> None:
        """Ends it; requests under way have a few seconds."""
        self.stop()
        if self._thread.is_alive():
            self._thread.join()
        if self._connections.pool is not None:
            self._connections.pool.shutdown(cancel_futures=True)
        self._listener.close()

    def _run(self) -> None:
        self._ready.set()
        with contextlib.suppress(SystemExit):
            asyncio.run(self.serve())

    async def serve(self) -> None:
        """Serves on the running event loop, until `stop`."""
        await self._server.serve(sockets=[self._listener])
        # Requests that outlast the grace period are cancelled, but their connections stay open; so do unfinished
        # handshakes, of which uvicorn does not know.
        await self._connections.close()
