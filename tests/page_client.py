"""A browser without a screen: requests with cookies, and what stands in a page."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import anyio
import httpx
from starlette.applications import Starlette

HOST = "http://127.0.0.1:8080"


class Client:
    """A browser's cookies, and requests to the application itself."""

    def __init__(self, app: Starlette) -> None:
        self._client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=HOST)
        self.cookies = self._client.cookies

    def get(self, to: str, **more: Any) -> httpx.Response:
        return anyio.run(lambda: self._client.get(to, **more))

    def post(self, to: str, **more: Any) -> httpx.Response:
        return anyio.run(lambda: self._client.post(to, **more))


class Elements(HTMLParser):
    """What a browser makes of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts: list[str | None] = []
        self.bad: list[str] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name.startswith("on") or name == "style":
                self.bad.append(f"{tag} {name}={value}")
            if name in ("href", "src", "action"):
                self.links.append(value or "")
        if tag == "script":
            self.scripts.append(dict(attrs).get("src"))
        if tag in ("img", "iframe", "object", "style"):
            self.bad.append(tag)
