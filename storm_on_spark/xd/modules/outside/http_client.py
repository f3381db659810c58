"""HTTP: a processor and a sink that send each message to a server."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Mapping
from typing import Any, Final, Literal, get_args
from urllib.parse import SplitResult, urlsplit

from storm_on_spark.api.component import BaseBasicBolt
from storm_on_spark.api.errors import ReportedFailedException
from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.task.collector import BasicOutputCollector
from storm_on_spark.api.task.context import TopologyContext
from storm_on_spark.api.tuple import Tuple
from storm_on_spark.cluster.security.tokens import read_tokens
from storm_on_spark.xd.expressions import Expression
from storm_on_spark.xd.modules.declaration import ModuleDeclaration, Option
from storm_on_spark.xd.modules.messages.message import FIELDS, written

Method = Literal["POST", "PUT", "GET", "DELETE"]

_LONGEST_URL: Final = 4_096
_REDIRECTS: Final = 300
_ERRORS: Final = 400


class _Sender(BaseBasicBolt):
    """Sends a request for each message, over one connection per task."""

    stateless = True

    def __init__(
        self, url: str, method: Method, body: Expression, content_type: str, token_file: str, timeout: float, most: int
    ) -> None:
        self.url = url
        self.method = method
        self.body = body
        self.content_type = content_type
        self.token_file = token_file
        self.timeout = timeout
        self.most = most

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Reads the token; the connection is made with the first message."""
        self._headers = {"Content-Type": self.content_type}
        if self.token_file:
            self._headers["Authorization"] = f"Bearer {read_tokens(self.token_file)[0]}"
        self._to = urlsplit(self.url)
        self._connection: http.client.HTTPConnection | None = None

    def cleanup(self) -> None:
        """Closes the connection."""
        if self._connection is not None:
            self._connection.close()

    def answer(self, tup: Tuple) -> str:
        """Sends a message; returns the body of the answer.

        Raises:
            ReportedFailedException: the server can't be reached, or refuses the request; the message fails.
        """
        sent = None
        if self.method in ("POST", "PUT"):
            sent = written(self.body.value(tup["payload"], tup["headers"])).encode()
        kept = self._connection is not None
        try:
            try:
                return self._ask(sent)
            except (http.client.BadStatusLine, ConnectionError):
                # Servers close idle connections.
                if not kept:
                    raise
                return self._ask(sent)
        except (OSError, http.client.HTTPException) as error:
            self._drop()
            what = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise ReportedFailedException(f"{self.method} {self.url:.200}: {what}") from error

    def _ask(self, sent: bytes | None) -> str:
        if self._connection is None:
            self._connection = _connection(self._to, self.timeout)
        target = (self._to.path or "/") + (f"?{self._to.query}" if self._to.query else "")
        try:
            self._connection.request(self.method, target, sent, self._headers)
            response = self._connection.getresponse()
            body = response.read(self.most + 1)
        except (OSError, http.client.HTTPException):
            self._drop()
            raise
        if len(body) > self.most:
            self._drop()
            raise http.client.HTTPException(f"expected at most {self.most} bytes, got more")
        if response.status >= _REDIRECTS:
            kind = "an answer" if response.status >= _ERRORS else "no redirection"
            raise http.client.HTTPException(f"expected {kind}, got {response.status} {response.reason:.100}")
        try:
            return body.decode()
        except UnicodeDecodeError as error:
            raise http.client.HTTPException(f"expected UTF-8, got other bytes at {error.start}") from error

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class HttpClient(_Sender):
    """Replaces each payload with a server's answer."""

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Asks the server."""
        collector.emit([self.answer(tup), tup["headers"]])

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares payload and headers."""
        declarer.declare(Fields(*FIELDS))


class HttpSink(_Sender):
    """Sends each message to a server, and reads only the status of the answer."""

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Sends a message."""
        self.answer(tup)


def _connection(to: SplitResult, timeout: float) -> http.client.HTTPConnection:
    assert to.hostname is not None
    if to.scheme == "http":
        return http.client.HTTPConnection(to.hostname, to.port, timeout=timeout)
    return http.client.HTTPSConnection(to.hostname, to.port, timeout=timeout, context=ssl.create_default_context())


def _an_url(text: str) -> None:
    try:
        to = urlsplit(text)
        port = to.port
    except ValueError:
        raise ValueError(f"Expected a URL, got {text!r:.100}") from None
    if to.scheme not in ("http", "https") or not to.hostname or port == 0 or len(text) > _LONGEST_URL:
        raise ValueError(f"Expected a URL such as http://127.0.0.1:8080/orders, got {text!r:.100}")
    if (
        to.username is not None
        or to.fragment
        or any(ord(character) <= 32 or ord(character) > 126 for character in text)
    ):
        raise ValueError(
            "Expected a URL of printable ASCII without a password and a fragment; --tokenFile names a token"
        )


def _a_content_type(text: str) -> None:
    if not text.isascii() or not text.isprintable():
        raise ValueError(f"Expected a content type such as text/plain, got {text!r:.100}")


def _client(
    url: str,
    method: Method,
    body: Expression,
    content_type: str,
    token_file: str,
    timeout: float,
    max_bytes: int,
) -> HttpClient:
    return HttpClient(url, method, body, content_type, token_file, timeout, max_bytes)


def _sink(url: str, method: Method, body: Expression, content_type: str, token_file: str, timeout: float) -> HttpSink:
    return HttpSink(url, method, body, content_type, token_file, timeout, 1_000_000)


_URL: Final = Option("url", "text", None, "The URL that each message goes to; http or https.", check=_an_url)
_METHOD: Final = Option(
    "method", "text", "POST", "The method; GET and DELETE send no body.", choices=get_args(Method), also=("httpMethod",)
)
_COMMON: Final = (
    Option("body", "expression", "payload", "The body; a list or a map becomes JSON."),
    Option("contentType", "text", "text/plain; charset=utf-8", "Content type of the body.", check=_a_content_type),
    Option("tokenFile", "text", "", "A file whose first token is sent as a bearer; only its owner may read it."),
    Option("timeout", "number", "10", "Seconds to wait for the server.", minimum=0.001),
)

PROCESSOR: Final = ModuleDeclaration(
    "processor",
    "http-client",
    "Replaces the payload with a server's answer. A refusal fails the message.",
    _client,
    (_URL, _METHOD, *_COMMON, Option("maxBytes", "integer", "1000000", "Most bytes in an answer.", minimum=1)),
)

SINK: Final = ModuleDeclaration(
    "sink",
    "http",
    "Sends each message to a server. A refusal fails the message.",
    _sink,
    (_URL, Option("method", "text", "POST", "The method.", choices=("POST", "PUT")), *_COMMON),
)
