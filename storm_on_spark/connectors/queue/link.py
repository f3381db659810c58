"""The connection of one spout task to its queue: a thread that talks to the server, so that the spout never waits.

The server keeps what it has handed over as pending. It deletes a message that is acked, and puts it back when it is
rejected or when the connection is gone, however that came about.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple

from storm_on_spark.api.errors import ConfigError, SetupError
from storm_on_spark.api.text.extras import needs_extra
from storm_on_spark.connectors.queue.errors import QueueSpoutError

_log = logging.getLogger(__name__)

_STEP_SECS: Final = 0.2
_FIRST_WAIT_SECS: Final = 0.1
_LONGEST_WAIT_SECS: Final = 5.0
_ANSWER_SECS: Final = 10
_HEARTBEAT_SECS: Final = 20
_END_SECS: Final = 5.0
_MOST_PORT: Final = 65535
_NOT_FOUND: Final = 404
_REFUSED: Final = 403


@dataclass(frozen=True)
class QueueServer:
    """Where a queue is, and the login for it.

    Args:
        host: of the server.
        port: of AMQP 0-9-1.
        virtual_host: of the queue.
        user: of the login.
        password: of the login.
        ca_file: certificates that the server's must be signed by; None to speak without TLS.

    Raises:
        ConfigError: a value makes no sense.

    Example:
        >>> QueueServer("127.0.0.1", password="hush")
        QueueServer(host='127.0.0.1', port=5672, virtual_host='/', user='guest', ca_file=None)
    """

    host: str
    port: int = 5672
    virtual_host: str = "/"
    user: str = "guest"
    password: str = field(default="guest", repr=False)
    ca_file: str | None = None

    def __post_init__(self) -> None:
        for name in ("host", "virtual_host", "user"):
            given: Any = getattr(self, name)
            if not isinstance(given, str) or not given:
                raise ConfigError(f"{name} is a text that is not empty (given {given!r:.100})", key=name)
        port: Any = self.port
        if type(port) is not int or not 0 < port <= _MOST_PORT:
            raise ConfigError(f"port is a number from 1 to {_MOST_PORT} (given {port!r:.100})", key="port")


class MessageId(NamedTuple):
    """Names a message that is pending."""

    connection: int
    """A random number: a message that is still pending after a restart is not taken for a new one."""
    tag: int


@dataclass(frozen=True)
class QueueMessage:
    """A message, as a translator gets it."""

    body: bytes
    headers: Mapping[str, Any]
    routing_key: str
    redelivered: bool
    """Whether it may have been handed over before."""


def need_pika() -> Any:
    """Returns the package `pika`.

    Raises:
        SetupError: it is not installed.
    """
    try:
        import pika
    except ImportError as error:
        raise SetupError(needs_extra("a QueueSpout", "rabbitmq", "pika")) from error
    return pika


class Link:
    """The connection of a task.

    Args:
        server: where the queue is.
        queue: its name.
        prefetch: how many messages are pending at most.
        name: how logs call the task.
    """

    def __init__(self, server: QueueServer, queue: str, prefetch: int, name: str) -> None:
        self._server, self._queue, self._prefetch, self._name = server, queue, prefetch, name
        self._pika = need_pika()
        #: What the server has handed over and the spout has not taken.
        self.messages: deque[tuple[MessageId, QueueMessage]] = deque()
        #: Why the spout can't continue.
        self.failure: QueueSpoutError | None = None
        #: Why there is no connection; None while there is one.
        self.trouble: str | None = None
        self._lock = threading.Lock()
        self._number = 0
        self._connection: Any = None
        self._channel: Any = None
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"queue-{name}", daemon=True)
        self._thread.start()

    def settle(self, message_id: MessageId, done: bool) -> None:
        """Deletes a message, or puts it back. One of a former connection is already back."""
        with self._lock:
            if self._connection is not None and message_id.connection == self._number:
                call = partial(self._settle, self._channel, message_id.tag, done)
                with contextlib.suppress(self._pika.exceptions.AMQPError):
                    self._connection.add_callback_threadsafe(call)

    def close(self) -> None:
        """Ends the connection; what was settled before is told to the server."""
        self._closing.set()
        self._thread.join(_END_SECS)

    def _settle(self, channel: Any, tag: int, done: bool) -> None:
        # Within the connection's thread. Where the connection ends, the server puts it back.
        with contextlib.suppress(self._pika.exceptions.AMQPError):
            if done:
                channel.basic_ack(tag)
            else:
                channel.basic_nack(tag, requeue=True)

    def _run(self) -> None:
        errors = self._pika.exceptions
        wait = _FIRST_WAIT_SECS
        while not self._closing.is_set():
            try:
                self._serve()
                wait = _FIRST_WAIT_SECS
            except errors.ChannelClosedByBroker as error:
                if error.reply_code in (_NOT_FOUND, _REFUSED):
                    self.failure = QueueSpoutError(f"{self._name}: the server refuses: {error.reply_text}")
                    return
                self._note(error)
            except (errors.ProbableAuthenticationError, errors.ProbableAccessDeniedError):
                server = self._server
                self.failure = QueueSpoutError(
                    f"{self._name}: the server {server.host}:{server.port} refuses the login of {server.user!r} "
                    f"to {server.virtual_host!r}"
                )
                return
            except (errors.AMQPError, OSError) as error:
                self._note(error)
            except Exception as error:  # the spout's thread raises it: this one has nobody to tell
                self.failure = QueueSpoutError(f"{self._name}: {type(error).__name__}: {error}")
                return
            self._closing.wait(wait)
            wait = min(2 * wait, _LONGEST_WAIT_SECS)

    def _note(self, error: Exception) -> None:
        if self.trouble is None:
            self.trouble = f"{type(error).__name__}: {error}".rstrip(": ")
            _log.warning("%s: no connection to its queue, trying again: %s", self._name, self.trouble)

    def _serve(self) -> None:
        connection = self._pika.BlockingConnection(self._parameters())
        try:
            channel = connection.channel()
            channel.basic_qos(prefetch_count=self._prefetch)
            with self._lock:
                self._number = int.from_bytes(os.urandom(8), "big")
                self._connection, self._channel = connection, channel
            channel.basic_consume(self._queue, partial(self._take, self._number))
            if self.trouble is not None:
                self.trouble = None
                _log.warning("%s: connected to its queue again", self._name)
            while not self._closing.is_set():
                connection.process_data_events(time_limit=_STEP_SECS)
            # What was settled in the meantime.
            connection.process_data_events(time_limit=0)
        finally:
            with self._lock:
                self._connection = self._channel = None
            # The server hands these over again.
            self.messages.clear()
            with contextlib.suppress(self._pika.exceptions.AMQPError):
                if connection.is_open:
                    connection.close()

    def _take(self, number: int, channel: Any, delivery: Any, properties: Any, body: bytes) -> None:
        headers = dict(properties.headers or {})
        message = QueueMessage(body, headers, delivery.routing_key, bool(delivery.redelivered))
        self.messages.append((MessageId(number, delivery.delivery_tag), message))

    def _parameters(self) -> Any:
        pika, server = self._pika, self._server
        options = None
        if server.ca_file is not None:
            import ssl

            options = pika.SSLOptions(ssl.create_default_context(cafile=server.ca_file), server.host)
        return pika.ConnectionParameters(
            host=server.host,
            port=server.port,
            virtual_host=server.virtual_host,
            credentials=pika.PlainCredentials(server.user, server.password, erase_on_connect=True),
            ssl_options=options,
            heartbeat=_HEARTBEAT_SECS,
            blocked_connection_timeout=_ANSWER_SECS,
            socket_timeout=_ANSWER_SECS,
            stack_timeout=_ANSWER_SECS,
        )
