"""A listener on the driver's machine, for processes of the same run on other machines."""

from __future__ import annotations

import contextlib
import json
import logging
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from storm_on_spark.runtime.processes.lines.line import DEAD_SECS, Line, LineError, answer_host, notice_loss

log = logging.getLogger(__name__)

_HELLO_BYTES = 1 << 14
HANDSHAKE_SECONDS = 10.0
_MOST_STRANGERS = 128
"""How many connections may be open without having logged in; further ones are closed at once."""
TEXT_LENGTH = 300
"""The most characters of a text in a `Hello`."""


@dataclass(frozen=True)
class Hello:
    """A caller's introduction of itself."""

    number: int
    """Which of the run's processes of its kind it is."""
    attempt: int
    """Of the Spark task that keeps it; a later attempt has a greater number."""
    pid: int
    machine: str
    previous: str
    """How the process before it ended, that the same Spark task kept; empty for the first."""

    def to_bytes(self) -> bytes:
        """Returns it as a message."""
        return json.dumps(self.__dict__).encode()

    @classmethod
    def parse(cls, data: bytes) -> Hello:
        """Parses a message.

        Raises:
            LineError: it is not a `Hello`.
        """
        try:
            found: Any = json.loads(data)
            hello = cls(**found)
        except (ValueError, TypeError, RecursionError) as error:
            raise LineError(f"a caller's first message is malformed: {error}") from None
        numbers: tuple[object, ...] = hello.number, hello.attempt, hello.pid
        texts: tuple[object, ...] = hello.machine, hello.previous
        if not all(isinstance(number, int) and 0 <= number < 1 << 63 for number in numbers):
            raise LineError(
                f"a caller's first message must have whole numbers from 0 to 2**63 - 1, not {numbers!r:.100}"
            )
        if not all(isinstance(text, str) and len(text) <= TEXT_LENGTH for text in texts):
            raise LineError(f"a caller's first message must have texts of at most {TEXT_LENGTH} characters")
        return hello


def listen_at(bind: str) -> socket.socket:
    """Returns a socket that listens on a free port.

    Args:
        bind: address to listen on, as Spark's `spark.driver.bindAddress`.

    Raises:
        OSError: this machine does not have that address.
    """
    family, _, _, _, address = socket.getaddrinfo(bind, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.bind(address)
        listener.listen(_MOST_STRANGERS)
    except OSError:
        listener.close()
        raise
    return listener


class LineListener:
    """Accepts connections from other processes of one run.

    Args:
        listener: the socket, which listens.
        secret: what callers must know.
        on_caller: called on a separate thread for each process that connects. It takes over the connection.
        dead_secs: how long another machine may be silent before its connection counts as broken.
    """

    def __init__(
        self,
        listener: socket.socket,
        secret: bytes,
        on_caller: Callable[[Line, Hello], None],
        dead_secs: int = DEAD_SECS,
    ) -> None:
        self._dead_secs = dead_secs
        self._on_caller = on_caller
        self.secret = secret
        self._listener = listener
        self.port: int = listener.getsockname()[1]
        """Where it listens."""
        self._lock = threading.Lock()
        #: Connections that are not authenticated yet, each with its thread.
        self._strangers: dict[socket.socket, threading.Thread] = {}
        self._thread = threading.Thread(target=self._accept, name="line-listener", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stops listening; returns when all threads have ended."""
        # A thread that waits in `accept` is not woken by `close` alone.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        with self._lock:
            strangers = dict(self._strangers)
        for connection, thread in strangers.items():
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except ConnectionAbortedError:
                continue
            except OSError:
                return
            with self._lock:
                if len(self._strangers) >= _MOST_STRANGERS:
                    # The oldest is dropped to make room: a genuine host authenticates quickly.
                    oldest = next(iter(self._strangers))
                    del self._strangers[oldest]
                    _shut(oldest)
                thread = threading.Thread(target=self._meet, args=(connection,), name="line-caller", daemon=True)
                self._strangers[connection] = thread
            thread.start()

    def _meet(self, connection: socket.socket) -> None:
        # The limit is for the whole message, so that a caller can't hold the connection by a byte now and then.
        timer = threading.Timer(HANDSHAKE_SECONDS, _shut, (connection,))
        timer.name, timer.daemon = "line-caller-timer", True
        timer.start()
        met = False
        try:
            notice_loss(connection, self._dead_secs)
            line = answer_host(connection, self.secret)
            hello = Hello.parse(line.recv_bytes(_HELLO_BYTES))
            met = True
        except (OSError, EOFError) as error:
            log.debug("a caller is refused: %s", error)
        finally:
            timer.cancel()
            timer.join()
            with self._lock:
                self._strangers.pop(connection, None)
            if not met:
                connection.close()
        if met:
            self._on_caller(line, hello)


def _shut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
