"""The HTTP server of the source `http`: requests with limits, that wait until their messages are processed."""

from __future__ import annotations

import contextlib
import hmac
import re
import socket
import threading
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from storm_on_spark.api.errors import SetupError
from storm_on_spark.cluster.security.addresses import is_loopback
from storm_on_spark.cluster.security.tokens import read_tokens

Answer = Literal["processed", "received"]

_MOST_CONNECTIONS: Final = 200
_MOST_WAITING_BYTES: Final = 100_000_000
_IDLE_SECS: Final = 30.0
_ANSWER_SECS: Final = 5.0
_NDJSON: Final = "application/x-ndjson"


class Post:
    """A request: its messages, and how many of them are not processed yet."""

    def __init__(self, payloads: list[str], headers: dict[str, Any], size: int) -> None:
        self.payloads = payloads
        self.headers = headers
        self.size = size
        self.done = threading.Event()
        self._left = len(payloads)

    @property
    def processed(self) -> bool:
        """Whether all of them are."""
        return self._left <= 0

    def settle(self) -> None:
        """Notes that one of the messages was processed; called by one thread."""
        self._left -= 1
        if not self._left:
            self.done.set()


class HttpServer:
    """Listens on threads of its own.

    Answers: 200; 400 for what is no UTF-8, 401 without a token, 403 for the page of a browser, 404 for another path,
    405 for another method, 411 without a length, 413 for a body that is too long, 503 while too much waits, 504 when
    the processing takes too long.

    Raises:
        SetupError: the port is taken, there is no such address, or the file of tokens can't be used.
    """

    def __init__(
        self, host: str, port: int, *, path: str, token_file: str, answer: Answer, max_bytes: int, timeout: float
    ) -> None:
        self.path = path
        self.tokens = read_tokens(token_file) if token_file else ()
        self.answer = answer
        self.max_bytes = max_bytes
        self.timeout = timeout
        #: Both change under the lock.
        self._waiting: deque[Post] = deque()
        self._waiting_bytes = 0
        #: Every request whose sender waits, also after `next_post`.
        self._open: set[Post] = set()
        self._lock = threading.Lock()
        self.closed = False
        try:
            self._server = _Server(host, port, self)
        except OSError as error:
            raise SetupError(f"http can't listen on {host:.100}:{port}: {error.strerror or error}") from error
        name = f"[{host}]" if ":" in host else host
        self.address = f"http://{name}:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name="http source", daemon=True)
        self._thread.start()

    def next_post(self) -> Post | None:
        """Returns the request that waits longest, if one does."""
        with self._lock:
            if not self._waiting:
                return None
            post = self._waiting.popleft()
            self._waiting_bytes -= post.size
            return post

    def put(self, post: Post) -> bool:
        """Has a request wait; returns whether there is room."""
        with self._lock:
            if self.closed or self._waiting_bytes + post.size > _MOST_WAITING_BYTES:
                return False
            self._waiting.append(post)
            self._waiting_bytes += post.size
            self._open.add(post)
            return True

    def forget(self, post: Post) -> None:
        """Notes that nobody waits for a request any more."""
        with self._lock:
            self._open.discard(post)

    def close(self) -> None:
        """Listens no more. Senders that wait get 503."""
        with self._lock:
            self.closed = True
            self._waiting.clear()
            unanswered = list(self._open)
        for post in unanswered:
            post.done.set()
        self._server.shutdown()
        self._thread.join()
        self._server.finish()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, host: str, port: int, owner: HttpServer) -> None:
        if ":" in host:
            self.address_family = socket.AF_INET6
        self.owner = owner
        self.local = is_loopback(host)
        self._slots = threading.Semaphore(_MOST_CONNECTIONS)
        #: Changes under the condition's lock.
        self._connections: set[socket.socket] = set()
        self._changed = threading.Condition()
        super().__init__((host.strip("[]"), port), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Starts a thread, unless there are too many connections: then this one is closed."""
        if not self._slots.acquire(blocking=False):
            self.shutdown_request(request)
            return
        with self._changed:
            self._connections.add(request)
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Handles a connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()
            with self._changed:
                self._connections.discard(request)
                self._changed.notify_all()

    def finish(self) -> None:
        """Reads no more, and waits until what was read is answered; not for long."""
        with self._changed:
            self._end(socket.SHUT_RD)
            self._changed.wait_for(lambda: not self._connections, _ANSWER_SECS)
            self._end(socket.SHUT_RDWR)

    def _end(self, how: int) -> None:
        for connection in self._connections:
            with contextlib.suppress(OSError):
                connection.shutdown(how)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing: a sender that went away is no trouble of the stream's."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "storm-spark"
    sys_version = ""
    timeout = _IDLE_SECS
    server: _Server

    def do_POST(self) -> None:  # the name that the base class calls
        """Takes messages, and answers when their time has come."""
        owner = self.server.owner
        try:
            size = self._size(owner)
            body = self.rfile.read(size)
            if len(body) < size:
                raise _Refusal(400, f"expected {size} bytes, got {len(body)}")
            post = self._post(body)
            if post.payloads:
                _have_processed(post, owner)
        except _Refusal as refusal:
            self._answer(refusal.status, f"{refusal.message}\n")
        else:
            self._answer(200, "")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self._refuse_method
        raise AttributeError(name)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 # the base class's name
        """Logs nothing: standard error belongs to the stream."""

    def _refuse_method(self) -> None:
        self._answer(405, "expected POST\n")

    def _size(self, owner: HttpServer) -> int:
        """Returns the length of the body, once the request may be read."""
        host = urlsplit(f"//{self.headers.get('Host', '')}").hostname or ""
        # Otherwise the pages that a user of this machine looks at could post here.
        if "Origin" in self.headers or (self.server.local and not is_loopback(host)):
            raise _Refusal(403, "expected a request of this machine's programs, not of a browser's page")
        if owner.tokens and not self._authorized(owner.tokens):
            raise _Refusal(401, "expected Authorization: Bearer with a token of the file")
        if owner.path and urlsplit(self.path).path != owner.path:
            raise _Refusal(404, f"expected the path {owner.path}")
        length = self.headers.get("Content-Length", "")
        if not re.fullmatch(r"[0-9]{1,15}", length) or "Transfer-Encoding" in self.headers:
            raise _Refusal(411, "expected a Content-Length")
        if int(length) > owner.max_bytes:
            raise _Refusal(413, f"expected at most {owner.max_bytes} bytes, got {length}")
        return int(length)

    def _authorized(self, tokens: tuple[str, ...]) -> bool:
        kind, _, given = self.headers.get("Authorization", "").partition(" ")
        matches = [hmac.compare_digest(given.strip().encode(), token.encode()) for token in tokens]
        return kind.lower() == "bearer" and any(matches)

    def _post(self, body: bytes) -> Post:
        try:
            text = body.decode()
        except UnicodeDecodeError as error:
            raise _Refusal(400, f"expected UTF-8, got other bytes at {error.start}") from error
        kind = self.headers.get_content_type()
        payloads = [line for line in text.split("\n") if line.strip()] if kind == _NDJSON else [text]
        headers = {"contentType": self.headers["Content-Type"]} if "Content-Type" in self.headers else {}
        return Post(payloads, headers, len(body))

    def _answer(self, status: int, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        if status == 405:
            self.send_header("Allow", "POST")
        if status not in (200, 503, 504):
            # The rest of the request may not have been read.
            self.close_connection = True
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _have_processed(post: Post, owner: HttpServer) -> None:
    if not owner.put(post):
        raise _Refusal(503, "too much waits to be processed; post it again later")
    try:
        if owner.answer == "received":
            return
        if not post.done.wait(owner.timeout):
            raise _Refusal(504, f"not processed within {owner.timeout:g} s; it may still be")
    finally:
        owner.forget(post)
    if not post.processed:
        raise _Refusal(503, "the stream has ended; post it again later")


class _Refusal(Exception):  # noqa: N818 # no error of the server's
    def __init__(self, status: int, message: str) -> None:
        super().__init__(status, message)
        self.status = status
        self.message = message
