"""The pages of streams, on the port of each admin."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from storm_on_spark.cluster.http.auth import Authentication
from storm_on_spark.cluster.http.guard import Guard, caller_of
from storm_on_spark.cluster.http.messages import answer
from storm_on_spark.cluster.security.permissions import Right
from storm_on_spark.web.access.gate import Gate
from storm_on_spark.web.access.sessions import Role, Sessions
from storm_on_spark.web.app import App
from storm_on_spark.web.pages.registry import STREAMS
from storm_on_spark.web.rendering import ROOT
from storm_on_spark.web.settings import UiSettings
from storm_on_spark.web.sites.streams import STREAM_ACTIONS, StreamsSite
from storm_on_spark.xd.admin.daemon import Offered

_LOGIN = "/ui-login"
_CODE_SECS = 600.0


@dataclass(frozen=True)
class AdminLogin:
    """What an admin's own authentication lets in: the token, and users with passwords. Streams have no owners."""

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
        if not known.knows_password(user, secret):
            return None
        return user, "operator" if known.may_change(user) else "reader"

    def may(self, name: str, right: Right, topology_id: str) -> bool:
        """Nobody is an owner."""
        return False


class StreamPages:
    """Adds the pages to the REST interface of an admin.

    Args:
        rest: that interface.
        offered: what the admin offers.
    """

    def __init__(self, rest: ASGIApp, offered: Offered) -> None:
        self._sessions = Sessions()
        login = AdminLogin(offered.authentication)
        gate = Gate(self._sessions, login, offered.port, secure=offered.secure, local=offered.local)
        actions = STREAM_ACTIONS if UiSettings.of(offered.conf).actions_enabled else ()
        site = StreamsSite(offered.parts, offered.picture, offered.address, offered.connected, actions)
        self._pages = App(site, gate, STREAMS)
        self._site = self._pages.asgi()
        self._rest = rest
        self._codes = Guard(Starlette(routes=[Route(_LOGIN, self._code, methods=["POST"])]), offered.authentication)

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves a request: of the pages, or of REST."""
        where = str(scope.get("path", ""))
        if where == _LOGIN:
            await self._codes(scope, receive, send)
        elif where == "/" or where == ROOT or where.startswith(f"{ROOT}/"):
            await self._site(scope, receive, send)
        else:
            await self._rest(scope, receive, send)

    def close(self) -> None:
        """Ends what is open."""
        self._pages.close()

    async def _code(self, request: Request) -> Response:
        """Answers whoever may change something with the path of a page that logs in one browser."""
        code = self._sessions.new_code("operator", caller_of(request) or "local user", _CODE_SECS)
        return answer({"path": f"{ROOT}/login?code={code}"})
