"""Browsers that have logged in to a site."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from sample_site import SampleSite
from sample_streams import SampleStreams

from storm_on_spark.web.access.sessions import Role, Sessions

S = TypeVar("S")
DOCUMENT = Path(__file__).parents[3] / "docs" / "ui.md"
WALKS = os.environ.get("UI_WALKS")
"""The file for the seconds that walks took, if it is set."""


@dataclass
class Visit:
    """A browser that has logged in, and what its console said."""

    page: Any
    root: str
    said: list[str] = field(default_factory=list)
    clicks: int = 0
    """Since `begun`."""
    begun: float = 0.0

    def begin(self) -> None:
        """Opens the first page, from which a walk begins."""
        self.to("/ui/")
        self.clicks, self.begun = 0, time.monotonic()

    def click(self, locator: Any) -> None:
        """Clicks on something, which counts as a step of a walk."""
        locator.click()
        self.page.wait_for_load_state()
        self.clicks += 1

    def arrived(self, question: str) -> None:
        """Ends a walk: `docs/ui.md` has its clicks; its seconds go to the file that `UI_WALKS` names."""
        secs = time.monotonic() - self.begun
        row = next(line for line in DOCUMENT.read_text().splitlines() if line.startswith(f"| {question} |"))
        least, _, most = row.split("|")[3].strip().partition(" to ")
        assert int(least) <= self.clicks <= int(most or least), (question, self.clicks, row)
        if WALKS:
            with Path(WALKS).open("a") as file:
                file.write(json.dumps({"question": question, "clicks": self.clicks, "secs": round(secs, 2)}) + "\n")

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
