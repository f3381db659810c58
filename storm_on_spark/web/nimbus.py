"""The pages of a cluster, on the port of each of its Nimbuses."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from storm_on_spark.cluster.daemons.nimbus import Offered
from storm_on_spark.cluster.http.auth import Authentication
from storm_on_spark.cluster.http.guard import Guard, caller_of, is_trusted
from storm_on_spark.cluster.http.messages import answer
from storm_on_spark.cluster.nimbus.control import Control
from storm_on_spark.cluster.security.permissions import Right, Who
from storm_on_spark.web.access.gate import Gate
from storm_on_spark.web.access.sessions import Role, Sessions
from storm_on_spark.web.app import App
from storm_on_spark.web.pages.registry import TOPOLOGIES
from storm_on_spark.web.rendering import ROOT
from storm_on_spark.web.sites.cluster import ClusterSite

_LOGIN = "/api/v1/ui-login"
_CODE_SECS = 600.0


@dataclass(frozen=True)
class ClusterLogin:
    """What a Nimbus's own authentication lets in: the cluster's token, and users with passwords."""

    authentication: Authentication
    control: Control

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
        if self.control.permissions.by_topology and not self.control.permissions.is_admin(Who(user)):
            return user, "owner"
        return user, "operator" if known.may_change(user) else "reader"

    def may(self, name: str, right: Right, topology_id: str) -> bool:
        """Returns what the permissions of the cluster say."""
        base = self.control.snapshot().storms.get(topology_id)
        return self.control.permissions.may(right, Who(name), base)


class NimbusPages:
    """Adds the pages to the REST interface of a Nimbus.

    Args:
        rest: that interface.
        offered: what the Nimbus offers.
    """

    def __init__(self, rest: ASGIApp, offered: Offered) -> None:
        self._sessions = Sessions()
        login = ClusterLogin(offered.authentication, offered.control)
        gate = Gate(self._sessions, login, offered.port, secure=offered.secure, local=offered.local)
        self._pages = App(ClusterSite(offered.control), gate, TOPOLOGIES)
        self._site = self._pages.asgi()
        self._rest = rest
        self._permissions = offered.control.permissions
        codes = Starlette(routes=[Route(_LOGIN, self._code, methods=["POST"])])
        self._codes = Guard(codes, offered.authentication)

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
        permissions, who = self._permissions, Who(caller_of(request), is_trusted(request))
        role: Role = "operator" if not permissions.by_topology or permissions.is_admin(who) else "owner"
        code = self._sessions.new_code(role, caller_of(request) or "local user", _CODE_SECS)
        return answer({"path": f"{ROOT}/login?code={code}"})
