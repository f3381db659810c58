"""Checks every request for a page before its handler: the host, the session, the role, and where a form comes from.

A browser also sends a cookie with requests of other sites' pages. So what changes something needs the token of its
session, and must come from a page of this server.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from storm_on_spark.cluster.errors import AuthenticationError, ForbiddenError
from storm_on_spark.cluster.security.addresses import asked_host, is_loopback
from storm_on_spark.cluster.security.permissions import Right
from storm_on_spark.web.access.sessions import Role, Session, Sessions, same

SAFE_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not `no-referrer`: browsers then hide the origin of forms, which is checked.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
"""Headers of every answer: nothing inline runs, nothing comes from elsewhere, nobody frames it."""


class Login(Protocol):
    """What a person can log in with, beside a code."""

    @property
    def required(self) -> bool:
        """Whether one must log in."""

    @property
    def ways(self) -> tuple[str, ...]:
        """`token` and `password`, where these exist."""

    def role(self, user: str, secret: str) -> tuple[str, Role] | None:
        """Returns name and role for a token (without a user) or a password; None if it is wrong."""

    def may(self, name: str, right: Right, topology_id: str) -> bool:
        """Returns whether an owner may do something with a topology, or with what belongs to all (empty)."""


@dataclass(frozen=True)
class CodesOnly:
    """No login but by code: for a run in a terminal."""

    required: bool = True
    ways: tuple[str, ...] = ()

    def role(self, user: str, secret: str) -> tuple[str, Role] | None:
        """Nobody has a password."""
        return None

    def may(self, name: str, right: Right, topology_id: str) -> bool:
        """Nobody is an owner."""
        return False


class Gate:
    """Who a request is from, and whether it may.

    Args:
        sessions: of this server.
        login: beside codes.
        port: of this server; browsers share cookies among the ports of a host, so it is part of the cookie's name.
        secure: whether the pages come over HTTPS.
        local: whether only this host can reach the server.
    """

    def __init__(
        self, sessions: Sessions, login: Login, port: int, *, secure: bool = False, local: bool = True
    ) -> None:
        self.sessions = sessions
        self.login = login
        self.cookie = f"storm-spark-{port}"
        self._secure = secure
        self._local = local

    def check_host(self, request: Request) -> None:
        """Refuses names of other hosts, which an attacker's name server may lead here.

        Raises:
            AuthenticationError: the name is another host's.
        """
        host = asked_host(request.headers.get("host", ""))
        if (self._local or not self.login.required) and not is_loopback(host):
            raise AuthenticationError(f"only this host is served, not {host[:80]!r}: use 127.0.0.1 or localhost")

    def is_private(self, request: Request) -> bool:
        """Whether nobody on the way can read what the browser sends."""
        return self._secure or is_loopback(asked_host(request.headers.get("host", "")))

    def session(self, request: Request) -> Session | None:
        """Returns the session of a request; None without one."""
        return self.sessions.find(request.cookies.get(self.cookie, ""))

    def check_form(self, request: Request, session: Session, csrf: str) -> None:
        """Refuses a form that is not of this server's own page for this session, or not of an operator.

        Raises:
            AuthenticationError: it is not.
        """
        self.check_origin(request)
        if not same(csrf, session.csrf):
            raise AuthenticationError("the form is not of this session: load its page again")

    def may(self, session: Session, right: Right, topology_id: str = "") -> bool:
        """Returns whether a session may do something."""
        if session.role == "operator" or right in ("open", "read"):
            return True
        if session.role == "reader":
            return right in ("topology read", "see all")
        return self.login.may(session.name, right, topology_id)

    def check_right(self, session: Session | None, right: Right, topology_id: str = "") -> None:
        """Refuses what a session may not.

        Raises:
            ForbiddenError: it may not.
        """
        if session is not None and not self.may(session, right, topology_id):
            what = "may read, and change nothing"
            if session.role == "owner":
                what = "may not do that here: a topology's owner, its topology.users and nimbus.admins may"
            raise ForbiddenError(f"{session.name} {what}")

    def check_origin(self, request: Request) -> None:
        """Refuses a form of another site's page.

        Raises:
            AuthenticationError: it comes from there.
        """
        origin = request.headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != request.headers.get("host"):
            raise AuthenticationError(f"a form must come from this server's own pages, not from {origin[:80]!r}")
        if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            raise AuthenticationError("a form must come from this server's own pages")

    def remember(self, response: Response, cookie: str) -> None:
        """Gives a browser its session."""
        response.set_cookie(
            self.cookie, cookie, max_age=7 * 86400, path="/", secure=self._secure, httponly=True, samesite="lax"
        )

    def forget(self, request: Request, response: Response) -> None:
        """Ends a browser's session."""
        self.sessions.end(request.cookies.get(self.cookie, ""))
        response.delete_cookie(self.cookie, path="/", secure=self._secure, httponly=True, samesite="lax")
