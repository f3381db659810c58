"""The pages of a daemon, on the port of its REST interface: who may log in, and what goes to which."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from storm_on_spark.cluster.http.auth import Authentication
from storm_on_spark.cluster.http.guard import Guard, caller_of
from storm_on_spark.cluster.http.messages import answer
from storm_on_spark.cluster.security.permissions import Right
from storm_on_spark.web.access.sessions import Role, Sessions
from storm_on_spark.web.app import App
from storm_on_spark.web.rendering import ROOT

_CODE_SECS = 600.0


@dataclass(frozen=True)
class DaemonLogin:
    """What a daemon's own authentication lets in: the token, and users with passwords. Nobody is an owner."""

    authentication: Authentication

    @property
    def required(self) -> bool:
        """Whether one must log in."""
        return self.authentication.required

    @property
    def ways(self) -> tuple[str, ...]:
        """`token` and `password`, where these exist."""
        return (*(["token"] if self.required else []), *(["password"] if self.authentication.has_users else []))

    def role(self, user: str, secret: str) -> tuple[str, Role] | None:
        """Returns name and role for the token, or for a user's password."""
        known = self.authentication
        if not user:
            return ("token", "operator") if known.knows_token(secret.strip()) else None
        return (user, self.role_of(user)) if known.knows_password(user, secret) else None

    def role_of(self, user: str) -> Role:
        """Returns the role of a user who has proved to be that."""
        return "operator" if self.authentication.may_change(user) else "reader"

    def may(self, name: str, right: Right, topology_id: str) -> bool:
        """Returns whether an owner may do something."""
        return False


class DaemonPages:
    """Serves the pages beside a REST interface.

    Args:
        rest: that interface.
        pages: the pages.
        sessions: of these.
        authentication: of the daemon.
        login: the path at which whoever may change something gets a link that logs in one browser.
    """

    def __init__(
        self, rest: ASGIApp, pages: App[Any], sessions: Sessions, authentication: Authentication, login: str
    ) -> None:
        self._rest = rest
        self._pages = pages
        self._site = pages.asgi()
        self._sessions = sessions
        self._login = login
        self._codes = Guard(Starlette(routes=[Route(login, self._code, methods=["POST"])]), authentication)

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves a request: of the pages, or of REST."""
        where = str(scope.get("path", ""))
        if where == self._login:
            await self._codes(scope, receive, send)
        elif where == "/" or where == ROOT or where.startswith(f"{ROOT}/"):
            await self._site(scope, receive, send)
        else:
            await self._rest(scope, receive, send)

    def close(self) -> None:
        """Ends what is open."""
        self._pages.close()

    def role(self, request: Request) -> Role:
        """Returns the role that a link has for whoever asks for it."""
        return "operator"

    async def _code(self, request: Request) -> Response:
        """Answers whoever may change something with the path of a page that logs in one browser."""
        code = self._sessions.new_code(self.role(request), caller_of(request) or "local user", _CODE_SECS)
        return answer({"path": f"{ROOT}/login?code={code}"})
