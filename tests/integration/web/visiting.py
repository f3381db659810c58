"""Browsers that have logged in to a site."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from sample_site import SampleSite
from sample_streams import SampleStreams

from storm_on_spark.web.access.sessions import Role, Sessions

S = TypeVar("S")


@dataclass
class Visit:
    """A browser that has logged in, and what its console said."""

    page: Any
    root: str
    said: list[str] = field(default_factory=list)

    def to(self, where: str) -> None:
        """Opens a page of the site."""
        answer = self.page.goto(self.root + where)
        assert answer is not None
        assert answer.status == 200, where


@dataclass
class Behind(Generic[S]):
    """A site behind a server."""

    site: S
    sessions: Sessions
    root: str
    browser: Any
    visits: list[Visit] = field(default_factory=list)

    def visit(self, role: Role = "operator", **context: Any) -> Visit:
        """Logs a browser in."""
        page = self.browser.new_context(**context).new_page()
        found = Visit(page, self.root)
        page.on("console", lambda message: found.said.append(message.text))
        page.on("pageerror", lambda error: found.said.append(str(error)))
        page.goto(f"{self.root}/ui/login?code={self.sessions.new_code(role, role)}")
        self.visits.append(found)
        return found


Served = Behind[SampleSite]
ServedStreams = Behind[SampleStreams]
