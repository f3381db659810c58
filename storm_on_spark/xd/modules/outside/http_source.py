"""HTTP: a source that emits the bodies posted to it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from storm_on_spark.api.errors import SetupError
from storm_on_spark.api.task.collector import SpoutOutputCollector
from storm_on_spark.api.task.context import TopologyContext
from storm_on_spark.api.text.extras import needs_extra
from storm_on_spark.cluster.security.addresses import is_loopback
from storm_on_spark.xd.modules.declaration import ModuleDeclaration, Option, OptionError
from storm_on_spark.xd.modules.messages.repeating import RepeatingSource

if TYPE_CHECKING:
    from storm_on_spark.xd.modules.outside.http_server import Post

Answer = Literal["processed", "received"]

_MOST_BODY: Final = 100_000_000
_HIGHEST_PORT: Final = 65_535

_log = logging.getLogger(__name__)


class HttpSource(RepeatingSource):
    """Emits the body of each POST, a UTF-8 text; of a body of `application/x-ndjson`, each line.

    The sender gets 200 once its messages, and all messages made from them, were processed. After a crash before that it
    gets no answer, and posts again: nothing is lost, and a message may be processed twice. With `answer` set to
    `received` it gets 200 at once, and messages received since the last micro-batch are lost in a crash.

    Args:
        host: the address to listen on; one that other hosts reach needs a token.
        port: 0 for any that is free.
        path: the only path; empty for all.
        token_file: a file with tokens, one of which a request must send as `Authorization: Bearer ...`.
        answer: when the sender gets 200.
        max_bytes: of a body.
        timeout: seconds until the sender gets 504; the messages may still be processed then.

    Raises:
        OptionError: others can reach the address, and there is no token.
    """

    services = ("_server", "_current", "_emitted")

    def __init__(
        self, host: str, port: int, path: str, token_file: str, answer: Answer, max_bytes: int, timeout: float
    ) -> None:
        super().__init__()
        if not token_file and not is_loopback(host):
            message = f"Expected 127.0.0.1, or --tokenFile too, as other hosts can reach {host:.100}"
            raise OptionError(message, option="host")
        self.host = host
        self.port = port
        self.path = path
        self.token_file = token_file
        self.answer = answer
        self.max_bytes = max_bytes
        self.timeout = timeout

    @property
    def address(self) -> str:
        """Where it listens, such as `http://127.0.0.1:9000`."""
        return self._server.address

    def open(self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector) -> None:
        """Listens.

        Raises:
            SetupError: the extra `cluster` is not installed, the port is taken, there is no such address, or
                the file of tokens can't be used.
        """
        super().open(conf, context, collector)
        try:
            from storm_on_spark.xd.modules.outside.http_server import PostServer
        except ImportError as error:
            raise SetupError(needs_extra("the source http", "cluster", "starlette", "uvicorn")) from error
        #: The request whose messages are being emitted, and the number of the next of them.
        self._current: tuple[Post, int] | None = None
        #: Number of a message -> the request that it came in.
        self._emitted: dict[int, Post] = {}
        self._server = PostServer(
            self.host,
            self.port,
            path=self.path,
            token_file=self.token_file,
            waits=self.answer == "processed",
            max_bytes=self.max_bytes,
            timeout=self.timeout,
        )
        _log.info("http listens on %s", self.address)

    def produce(self) -> None:
        """Sends a message of a request that waits."""
        if self._current is None:
            post = self._server.next_post()
            if post is None:
                return
            self._current = post, 0
        post, number = self._current
        self._emitted[self.send(post.payloads[number], dict(post.headers))] = post
        self._current = (post, number + 1) if number + 1 < len(post.payloads) else None

    def ack(self, message_id: Any) -> None:
        """Answers the request, if this was its last message."""
        super().ack(message_id)
        if post := self._emitted.pop(message_id, None):
            post.settle()

    def close(self) -> None:
        """Stops listening."""
        self._server.close()


def _a_port(number: int) -> None:
    if number > _HIGHEST_PORT:
        raise ValueError(f"Expected a port up to {_HIGHEST_PORT}, got {number}")


def _a_path(text: str) -> None:
    if text and (not text.startswith("/") or "?" in text or any(character.isspace() for character in text)):
        raise ValueError(f"Expected a path such as /orders, or nothing, got {text!r:.100}")


def _a_size(number: int) -> None:
    if number > _MOST_BODY:
        raise ValueError(f"Expected at most {_MOST_BODY}, got {number}")


SOURCE: Final = ModuleDeclaration(
    "source",
    "http",
    "Emits the text of each POST; with the content type application/x-ndjson, each line of it.",
    HttpSource,
    (
        Option("host", "text", "127.0.0.1", "The address to listen on; one that other hosts reach needs --tokenFile."),
        Option("port", "integer", "9000", "The port; 0 for any that is free.", minimum=0, check=_a_port),
        Option("path", "text", "", "The only path that is accepted; empty for all.", check=_a_path),
        Option("tokenFile", "text", "", "A file with tokens, one of which a request must send as a bearer."),
        Option(
            "answer",
            "text",
            "processed",
            "When a sender gets its answer: once its messages were processed, or at once.",
            choices=get_args(Answer),
        ),
        Option(
            "maxBytes",
            "integer",
            "1000000",
            "Most bytes in a body.",
            minimum=1,
            check=_a_size,
            also=("maxContentLength",),
        ),
        Option("timeout", "number", "30", "Seconds after which a sender gets 504.", minimum=0.001),
    ),
)
