"""`/metrics` of a daemon: for everybody who only reads, and for no web page."""

from __future__ import annotations

from functools import partial

import anyio
import httpx
import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from storm_on_spark.cluster.http.auth import Authentication
from storm_on_spark.cluster.http.scraped import Scraped


async def _other(request: object) -> PlainTextResponse:
    return PlainTextResponse("other")


def ask(
    authentication: Authentication, method: str, path: str, headers: dict[str, str] | None = None
) -> httpx.Response:
    app = Starlette(routes=[Route("/other", _other), Route("/metrics", _other, methods=["POST"])])
    transport = httpx.ASGITransport(Scraped(app, authentication, lambda: b"up 1\n"))

    async def asked() -> httpx.Response:
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost:6627") as client:
            return await client.request(method, path, headers=headers)

    return anyio.run(asked)


def test_metrics_need_no_token_and_all_else_does() -> None:
    got = partial(ask, Authentication("hush"))
    answer = got("GET", "/metrics")
    assert answer.text == "up 1\n"
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert got("GET", "/other").status_code == 401
    assert got("POST", "/metrics").status_code == 401


@pytest.mark.parametrize("headers", [{"Host": "evil.example"}, {"Origin": "http://evil.example"}])
def test_without_tokens_other_sites_pages_read_nothing(headers: dict[str, str]) -> None:
    assert ask(Authentication(), "GET", "/metrics").status_code == 200
    assert ask(Authentication(), "GET", "/metrics", headers).status_code == 403
