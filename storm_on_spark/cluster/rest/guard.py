"""The door of an ASGI application."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from storm_on_spark.cluster.errors import AuthenticationError
from storm_on_spark.cluster.rest.auth import Authentication, StaleNonceError
from storm_on_spark.cluster.rest.messages import refusal


class Guard:
    """Lets nobody through who may not ask.

    Args:
        app: what is behind it.
        authentication: who may ask.
    """

    def __init__(self, app: ASGIApp, authentication: Authentication) -> None:
        self._app = app
        self._authentication = authentication

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves a request, or refuses it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        target = scope["raw_path"].decode("latin-1")
        if scope["query_string"]:
            target += "?" + scope["query_string"].decode("latin-1")
        try:
            self._authentication.check(headers, scope["method"], target)
        except AuthenticationError as error:
            response = refusal(error)
            if not self._authentication.required:
                response.status_code = 403
            for challenge in self._authentication.challenges(isinstance(error, StaleNonceError)):
                response.headers.append("WWW-Authenticate", challenge)
            await response(scope, receive, send)
            return
        await self._app(scope, receive, send)
