"""Refuses requests that `auth` does not know, and changes by users who may only read, before any handler runs."""

from __future__ import annotations

import hashlib
import hmac
from typing import Final
from urllib.parse import unquote

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from storm_on_spark.cluster.errors import AuthenticationError
from storm_on_spark.cluster.http.auth import Authentication, Caller, StaleNonceError
from storm_on_spark.cluster.http.messages import refusal

CALLER: Final = "storm_on_spark.caller"
"""Key of a request's scope: the name of who sent it."""
TRUSTED: Final = "storm_on_spark.trusted"
"""Key of a request's scope: whether its sender has the cluster's token, or the cluster needs none."""
BEHALF: Final = "Storm-On-Behalf-Of"
"""Header by which what belongs to the cluster says for whom it asks."""
_READS: Final = ("GET", "HEAD")


def caller_of(request: Request) -> str:
    """Returns who sent a request; empty if that is not known."""
    return str(request.scope.get(CALLER, ""))


def is_trusted(request: Request) -> bool:
    """Returns whether the sender of a request has the cluster's token, or the cluster needs none."""
    return bool(request.scope.get(TRUSTED, False))


class Guard:
    """Refuses requests that are not authenticated.

    Args:
        app: what it guards.
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
            caller = self._authentication.caller(headers, scope["method"], target)
        except AuthenticationError as error:
            response = refusal(error)
            if not self._authentication.required:
                response.status_code = 403
            for challenge in self._authentication.challenges(isinstance(error, StaleNonceError)):
                response.headers.append("WWW-Authenticate", challenge)
            await response(scope, receive, send)
            return
        if not caller.may_change and scope["method"] not in _READS:
            refused = refusal(
                AuthenticationError(f"{caller.name} may read, and change nothing: nimbus.admins says who may")
            )
            refused.status_code = 403
            await refused(scope, receive, send)
            return
        scope = {**scope, CALLER: _named(caller, headers), TRUSTED: caller.trusted}
        await self._app(scope, receive if caller.body is None else _checked(receive, caller.body), send)


def _checked(receive: Receive, expected: str) -> Receive:
    """Returns what receives a body, and refuses it at its end if it is not the one that was signed."""
    digest = hashlib.sha256()

    async def checked() -> Message:
        message = await receive()
        if message["type"] == "http.request":
            digest.update(message.get("body", b""))
            if not message.get("more_body", False) and not hmac.compare_digest(digest.hexdigest(), expected):
                raise AuthenticationError("the body differs from the one that the proof signs")
        return message

    return checked


def _named(caller: Caller, headers: dict[str, str]) -> str:
    """Returns the user of a request: the one who logged in, or the one that a holder of the token names."""
    if caller.name not in ("", "token"):
        return caller.name
    return unquote(headers.get(BEHALF.lower(), ""))[:200] or caller.name
