"""A Pacemaker server: an event loop on its own thread."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
import threading
from collections.abc import Mapping
from typing import Any, Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route

from storm_on_spark.cluster.http.server import HttpServer, listen
from storm_on_spark.cluster.pacemaker.clients import Clients
from storm_on_spark.cluster.pacemaker.connection import Connection, TlsGate
from storm_on_spark.cluster.pacemaker.metrics import Metrics
from storm_on_spark.cluster.pacemaker.settings import ServerSettings
from storm_on_spark.cluster.security.addresses import is_loopback
from storm_on_spark.runtime.processes.closing import Service

logger = logging.getLogger(__name__)

_BACKLOG: Final = 4096
_SPARE_FILES: Final = 64


class PacemakerServer(Service):
    """A Pacemaker.

    Args:
        conf: the cluster's configuration.
        port: in the place of `pacemaker.port`; 0 is any free one.

    Raises:
        SetupError: the configuration says nothing that it could run by, or its port is taken.

    Example:
        >>> with PacemakerServer({"pacemaker.port": 6699}) as server:      # doctest: +SKIP
        ...     server.address
        '127.0.0.1:6699'
    """

    def __init__(self, conf: Mapping[str, Any], port: int | None = None) -> None:
        settings = ServerSettings.from_conf(conf, port)
        _warn_if_open(settings)
        _allow_files(settings.limits.connections + _SPARE_FILES)
        self._tls = settings.tls
        self.clients = Clients(settings)
        with contextlib.ExitStack() as stack:
            self._listener = stack.enter_context(contextlib.closing(listen(settings.host, settings.port)))
            self._metrics: HttpServer | None = None
            if settings.metrics_port is not None:
                self._metrics = HttpServer(
                    metrics_app(self.clients.metrics), listen(settings.host, settings.metrics_port)
                )
            stack.pop_all()
        self._loop = asyncio.new_event_loop()
        self._ended = asyncio.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pacemaker", daemon=True)

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._listener.getsockname()[1])

    @property
    def address(self) -> str:
        """`host:port`."""
        return f"{self._listener.getsockname()[0]}:{self.port}"

    def start(self) -> None:
        """Starts it and returns when it serves."""
        self._thread.start()
        self._ready.wait()
        if self._metrics is not None:
            self._metrics.start()
        logger.info("serving address=%s method=%s", self.address, self.clients.operations.rules.method)

    def close(self) -> None:
        """Ends it: what came whole is answered, then all connections are closed."""
        if self._metrics is not None:
            self._metrics.close()
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._ended.set)
            self._thread.join()
        elif not self._loop.is_closed():
            self._loop.close()
        self._listener.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            asyncio.set_event_loop(None)
            self._loop.close()

    def _connection(self) -> asyncio.Protocol:
        return Connection(self.clients) if self._tls is None else TlsGate(self.clients, self._tls)

    async def _serve(self) -> None:
        server = await self._loop.create_server(
            self._connection,
            sock=self._listener,
            backlog=_BACKLOG,
        )
        self._ready.set()
        while not self._ended.is_set():
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._ended.wait(), self.clients.limits.sweep_secs)
            self.clients.sweep()
        server.close()
        await self.clients.close()


def metrics_app(metrics: Metrics) -> Starlette:
    """Returns what serves `/metrics`, as Prometheus' text, and `/metrics.json`, with Storm's names."""

    async def text(request: Request) -> PlainTextResponse:
        return PlainTextResponse(metrics.prometheus(), media_type="text/plain; version=0.0.4")

    async def json(request: Request) -> JSONResponse:
        return JSONResponse(metrics.storm())

    return Starlette(routes=[Route("/metrics", text), Route("/metrics.json", json)])


def _warn_if_open(settings: ServerSettings) -> None:
    if is_loopback(settings.host):
        if settings.rules.method == "NONE":
            logger.warning("Every user of this host may read and write heartbeats: pacemaker.auth.method is NONE")
        return
    if settings.rules.method == "NONE":
        logger.warning(
            "Anybody who reaches %s may read and write heartbeats: pacemaker.auth.method is NONE", settings.host
        )
    elif not settings.rules.writes:
        logger.warning("Anybody who reaches %s may write heartbeats: pacemaker.auth.writes is false", settings.host)
    if settings.tls is None:
        logger.warning("Other hosts can reach %s without TLS: heartbeats can be read on the network", settings.host)


def _allow_files(files: int) -> None:
    """Raises the limit of open files to what connections may need, as far as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = files if hard == resource.RLIM_INFINITY else min(files, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        if wanted < files:
            logger.warning("The system allows %d open files, which is less than pacemaker.max.connections", hard)
