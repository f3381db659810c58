"""The HTTP server of the source `http`: requests that wait until their messages are processed."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import threading
from collections import deque
from concurrent.futures import Future, InvalidStateError
from typing import Any, Final

import anyio
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from storm_on_spark.api.errors import SetupError
from storm_on_spark.cluster.http.limits import Limits
from storm_on_spark.cluster.http.messages import BODY_SECS, MAX_BODY, read_body
from storm_on_spark.cluster.http.server import HttpServer, listen
from storm_on_spark.cluster.security.addresses import asked_host, is_loopback
from storm_on_spark.cluster.security.tokens import read_tokens

#: Senders wait for their answers, and all senders behind a proxy have the same address.
_LIMITS: Final = Limits(connections=512, by_address=256)
_MOST_WAITING_BYTES: Final = 100_000_000
_MESSAGE_BYTES: Final = 100
"""Approximate memory of a message in addition to its text, in bytes."""
_NDJSON: Final = "application/x-ndjson"


class Post:
    """A request: its messages, and how many of them have not been processed yet."""

    def __init__(self, payloads: list[str], headers: dict[str, Any], size: int) -> None:
        self.payloads = payloads
        self.headers = headers
        self.size = size
        """Approximate memory that it takes while it waits, in bytes."""
        self.done: Future[bool] = Future()
        """Whether all messages were processed; None until that is known."""
        self._left = len(payloads)

    def settle(self) -> None:
        """Records that one of the messages was processed; called by one thread."""
        self._left -= 1
        if not self._left:
            self.end(True)

    def end(self, processed: bool) -> None:
        """Answers the sender, if it waits."""
        with contextlib.suppress(InvalidStateError):
            self.done.set_result(processed)


class PostServer:
    """Listens on its own thread, with the limits of all HTTP servers in Storm on Spark.

    Args:
        host: the address.
        port: 0 for any that is free.
        path: the only path; empty for all.
        token_file: a file with tokens, one of which a request must send; empty for none.
        waits: whether a sender gets its answer only once its messages were processed.
        max_bytes: of a body.
        timeout: seconds until a sender that waits gets 504.

    Answers: 200; 400 for a body that is not UTF-8, 401 without a token, 403 for the page of a browser, 404 for another
        path,
    405 for another method, 408 for a body that comes too slowly, 411 without a length, 413 for a body that is too long,
    431 for a head that is too long, 503 while too much waits, 504 when the processing takes too long.

    Raises:
        SetupError: the port is taken, the address does not exist, or the file of tokens can't be used.
    """

    def __init__(
        self, host: str, port: int, *, path: str, token_file: str, waits: bool, max_bytes: int, timeout: float
    ) -> None:
        self.path = path
        self.tokens = read_tokens(token_file) if token_file else ()
        self.waits = waits
        self.max_bytes = max_bytes
        self.timeout = timeout
        self.local = is_loopback(host)
        #: All change under the lock.
        self._waiting: deque[Post] = deque()
        self._waiting_bytes = 0
        self._closed = False
        #: Every request whose sender waits, also after `next_post`.
        self._open: set[Post] = set()
        self._lock = threading.Lock()
        try:
            listener = listen(host.strip("[]"), port)
        except SetupError as error:
            raise SetupError(f"http {error}") from error
        name = f"[{host.strip('[]')}]" if ":" in host else host
        self.address = f"http://{name}:{listener.getsockname()[1]}"
        self._server = HttpServer(self._serve, listener, _LIMITS)
        self._server.start()

    def next_post(self) -> Post | None:
        """Returns the request that has waited longest; None if none waits."""
        with self._lock:
            if not self._waiting:
                return None
            post = self._waiting.popleft()
            self._waiting_bytes -= post.size
            return post

    def close(self) -> None:
        """Stops listening. Senders that wait get 503."""
        with self._lock:
            self._closed = True
            self._waiting.clear()
            unanswered = list(self._open)
        for post in unanswered:
            post.end(False)
        self._server.close()

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            post = await self._post(request)
            if post.payloads:
                await self._have_processed(post)
            response = Response()
        except ClientDisconnect:
            response = Response(status_code=400)  # nobody reads it
        except _Refusal as refusal:
            headers = {"Allow": "POST"} if refusal.status == 405 else None
            response = PlainTextResponse(f"{refusal.message}\n", refusal.status, headers)
        await response(scope, receive, send)

    async def _post(self, request: Request) -> Post:
        """Checks a request, and returns its messages."""
        size = self._size(request)
        # A longer body gets more time, at the rate of the longest body that REST accepts.
        secs = BODY_SECS * max(1.0, size / MAX_BODY)
        try:
            body = await read_body(request, size, secs)
        except TimeoutError:
            raise _Refusal(408, f"expected {size} bytes within {secs:g} s") from None
        try:
            text = body.decode()
        except UnicodeDecodeError as error:
            raise _Refusal(400, f"expected UTF-8, got other bytes at {error.start}") from error
        kind = request.headers.get("content-type")
        many = kind is not None and kind.partition(";")[0].strip().lower() == _NDJSON
        payloads = [line for line in text.split("\n") if line.strip()] if many else [text]
        return Post(payloads, {} if kind is None else {"contentType": kind}, size + _MESSAGE_BYTES * len(payloads))

    def _size(self, request: Request) -> int:
        """Checks the head of a request, and returns the length of its body."""
        headers = request.headers
        if request.method != "POST":
            raise _Refusal(405, "expected POST")
        # Otherwise web pages open in a browser on this machine could post here.
        if "origin" in headers or (self.local and not is_loopback(asked_host(headers.get("host", "")))):
            raise _Refusal(403, "expected a request from a program on this machine, not from a web page")
        if self.tokens and not self._authorized(headers.get("authorization", "")):
            raise _Refusal(401, "expected Authorization: Bearer with a token from the file")
        if self.path and request.scope["raw_path"].decode("ascii") != self.path:
            raise _Refusal(404, f"expected the path {self.path}")
        length = headers.get("content-length")
        if length is None or "transfer-encoding" in headers:
            raise _Refusal(411, "expected a Content-Length")
        if int(length) > self.max_bytes:
            raise _Refusal(413, f"expected at most {self.max_bytes} bytes, got {length}")
        return int(length)

    def _authorized(self, header: str) -> bool:
        kind, _, given = header.partition(" ")
        matches = [hmac.compare_digest(given.strip().encode(), token.encode()) for token in self.tokens]
        return kind.lower() == "bearer" and any(matches)

    async def _have_processed(self, post: Post) -> None:
        if not self._put(post):
            raise _Refusal(503, "too many messages wait to be processed; post it again later")
        if not self.waits:
            return
        try:
            with anyio.fail_after(self.timeout):
                processed = await asyncio.wrap_future(post.done)
        except TimeoutError:
            raise _Refusal(504, f"not processed within {self.timeout:g} s; it may still be") from None
        finally:
            with self._lock:
                self._open.discard(post)
        if not processed:
            raise _Refusal(503, "the stream has ended; post it again later")

    def _put(self, post: Post) -> bool:
        """Queues a request. Returns False if the queue is full; an empty queue takes any request."""
        with self._lock:
            if self._closed or (self._waiting and self._waiting_bytes + post.size > _MOST_WAITING_BYTES):
                return False
            self._waiting.append(post)
            self._waiting_bytes += post.size
            if self.waits:
                self._open.add(post)
            return True


class _Refusal(Exception):  # noqa: N818 # no error of the server's
    def __init__(self, status: int, message: str) -> None:
        super().__init__(status, message)
        self.status = status
        self.message = message
