"""A server that answers whoever may ask."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from storm_on_spark.cluster.errors import AuthenticationError
from storm_on_spark.cluster.http.auth import Authentication
from storm_on_spark.cluster.http.guard import Guard
from storm_on_spark.cluster.http.messages import refusal
from storm_on_spark.cluster.http.server import HttpServer, listen


@contextlib.contextmanager
def serving(authentication: Authentication) -> Iterator[tuple[str, list[tuple[str, str, bytes]]]]:
    """Yields the address of a server and what it has done."""
    done: list[tuple[str, str, bytes]] = []

    async def do(request: Request) -> Response:
        try:
            body = await request.body()
        except AuthenticationError as error:
            return refusal(error)
        done.append((request.method, str(request.url.path), body))
        return Response("done")

    app = Starlette(routes=[Route("/api/v1/{rest:path}", do, methods=["GET", "POST", "PUT"])])
    listener = listen("127.0.0.1", 0)
    port = listener.getsockname()[1]
    with HttpServer(Guard(app, authentication), listener):
        yield f"http://127.0.0.1:{port}/api/v1", done
