"""The logs of drivers over HTTP, one part of a log at a time.

As Storm's logviewer it is on every host with drivers, but as a thread of the supervisor, not as a separate daemon.

    GET /api/v1/log?file=ID/PORT/worker.log&start=BYTE&length=BYTES

answers with the bytes themselves, and says in headers where they start and how long the file is. A negative `start`
counts from the end. Nothing is read but what drivers have printed.

    GET /api/v1/logs?topology=NAME_OR_ID

answers with the logs of a topology that are here, or of all if none is named: the newest first, also of
one that no longer exists.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from storm_on_spark.api.config import Config
from storm_on_spark.api.errors import NotAliveError, SetupError
from storm_on_spark.cluster.code.checksums import check_topology_id, open_regular
from storm_on_spark.cluster.errors import ClusterError, CodeError, RecordError
from storm_on_spark.cluster.http.auth import Authentication
from storm_on_spark.cluster.http.messages import LOG_SIZE, LOG_START, answer, refusal
from storm_on_spark.cluster.http.scraped import Scraped
from storm_on_spark.cluster.http.server import HttpServer, listen
from storm_on_spark.cluster.security.addresses import is_loopback
from storm_on_spark.cluster.security.tls import Tls
from storm_on_spark.cluster.supervisor.old_logs import logs_in, logs_of
from storm_on_spark.cluster.supervisor.settings import LogSettings
from storm_on_spark.metrics.prometheus import process_text
from storm_on_spark.runtime.processes.closing import Service

MOST_BYTES: Final = 1 << 20
"""Of one answer."""

_FILE = re.compile(r"([^/]{1,200})/(\d{1,5})/((?:worker|events)\.log(?:\.1)?)")


def read_part(folder: Path, file: str, start: int, length: int) -> tuple[bytes, int, int]:
    """Returns a part of a log, where it starts, and the size of the file at this moment.

    Args:
        folder: with the logs of all topologies.
        file: `ID/PORT/worker.log`, or `worker.log.1` for what came before it; `events.log` has samples of tuples.
        start: first byte; negative counts from the end. Behind the end there is nothing.
        length: most bytes.

    Raises:
        RecordError: that is not the name of a log.
        NotAliveError: there is no such log.
    """
    found = _FILE.fullmatch(file)
    if found is None:
        raise RecordError(f"?file={file[:220]!r} is not a driver's log; expected ID/PORT/worker.log")
    try:
        path = folder / check_topology_id(found[1]) / found[2] / found[3]
        with open_regular(path) as log:
            size = log.seek(0, 2)
            first = min(size, start if start >= 0 else max(0, size + start))
            log.seek(first)
            return log.read(max(0, min(length, MOST_BYTES, size - first))), first, size
    except (CodeError, OSError) as error:
        raise NotAliveError(f"there is no log {file[:220]}") from error


class LogServer(Service):
    """Shows the logs in a folder.

    Args:
        settings: of the supervisor.
        authentication: who may read logs.
        folder: with the logs: `ID/PORT/worker.log`.
        host: by which others know this host.
        tls: serves HTTPS with it.

    Raises:
        SetupError: it can't listen, or others could reach it without authentication.
    """

    def __init__(
        self, settings: LogSettings, authentication: Authentication, folder: Path, host: str, tls: Tls | None = None
    ) -> None:
        self._folder = folder
        bind = settings.bind_address
        if not authentication.required and not is_loopback(bind):
            raise SetupError(
                f"{Config.SUPERVISOR_LOGS_BIND_ADDRESS} {bind!r} can be reached from other hosts: set "
                f"{Config.NIMBUS_AUTH_TOKEN_FILE}, or bind to 127.0.0.1"
            )
        try:
            listener = listen(bind, settings.port)
        except SetupError:
            # There may be several supervisors on a host, so the answer has the address.
            listener = listen(bind, 0)
        self.address = f"{'localhost' if is_loopback(bind) else host}:{listener.getsockname()[1]}"
        routes = [
            Route("/api/v1/log", self._log, methods=["GET"]),
            Route("/api/v1/logs", self._logs, methods=["GET"]),
        ]
        app = Starlette(routes=routes)
        served = Scraped(app, authentication, lambda: process_text([]))
        self._server = HttpServer(served, listener, tls=None if tls is None else tls.server)

    def start(self) -> None:
        """Starts it and returns when it serves."""
        self._server.start()

    def close(self) -> None:
        """Ends it."""
        self._server.close()

    async def _log(self, request: Request) -> Response:
        query = request.query_params
        try:
            start, length = (_number(query.get(name, default)) for name, default in _DEFAULTS.items())
            data, first, size = await run_in_threadpool(read_part, self._folder, query.get("file", ""), start, length)
        except (ClusterError, NotAliveError) as error:
            return refusal(error)
        headers = {
            LOG_START: str(first),
            LOG_SIZE: str(size),
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
        }
        return Response(data, headers=headers, media_type="text/plain; charset=utf-8")

    async def _logs(self, request: Request) -> Response:
        wanted = request.query_params.get("topology", "")
        found = await run_in_threadpool(lambda: logs_of(logs_in(self._folder), wanted))
        rows = [{**msgspec.to_builtins(each), "file": each.file} for each in found]
        return answer({"logs": rows})


_DEFAULTS: Final = {"start": str(-MOST_BYTES), "length": str(MOST_BYTES)}


def _number(text: str) -> int:
    if not re.fullmatch(r"-?\d{1,15}", text):
        raise RecordError(f"{text[:80]!r} is not a number of bytes")
    return int(text)
