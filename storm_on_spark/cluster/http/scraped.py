"""`/metrics` of a daemon, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from storm_on_spark.cluster.http.auth import Authentication
from storm_on_spark.cluster.http.guard import Guard

TEXT = "text/plain; version=0.0.4; charset=utf-8"


class Scraped:
    """Answers `GET /metrics`, and lets the guarded `app` answer everything else.

    Metrics only tell, so they need no token, which would be one for changes, too. Where requests need none anyway, the
    guard refuses those that a web page sends.

    Args:
        app: what the guard protects.
        authentication: who may ask it.
        read: returns the text; called in a thread.
    """

    def __init__(self, app: ASGIApp, authentication: Authentication, read: Callable[[], bytes]) -> None:
        self._guarded = Guard(app, authentication)
        self._read = read
        self._metrics: ASGIApp = self._answer if authentication.required else Guard(self._answer, authentication)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves a request."""
        asked = scope["type"] == "http" and scope["path"] == "/metrics" and scope["method"] in ("GET", "HEAD")
        await (self._metrics if asked else self._guarded)(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        body = await run_in_threadpool(self._read)
        headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
        await Response(body, 200, headers, TEXT)(request.scope, receive, send)
