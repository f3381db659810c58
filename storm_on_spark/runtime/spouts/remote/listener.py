"""The driver's listener for spout hosts on other machines."""

from __future__ import annotations

import contextlib
import json
import logging
import secrets
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from storm_on_spark.runtime.spouts.remote.line import Line, LineError, answer_host, notice_loss

log = logging.getLogger(__name__)

_HELLO_BYTES = 1 << 14
HANDSHAKE_SECONDS = 10.0
_MOST_STRANGERS = 128
"""How many connections may be open without having logged in; further ones are closed at once."""
_TEXT_LENGTH = 300


@dataclass(frozen=True)
class Hello:
    """A host process's introduction of itself."""

    number: int
    """Which of the run's hosts it is."""
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
            raise LineError(f"a spout host's first message is malformed: {error}") from None
        numbers: tuple[object, ...] = hello.number, hello.attempt, hello.pid
        texts: tuple[object, ...] = hello.machine, hello.previous
        if not all(isinstance(number, int) and 0 <= number < 1 << 63 for number in numbers):
            raise LineError(
                f"a spout host's first message must have whole numbers from 0 to 2**63 - 1, not {numbers!r:.100}"
            )
        if not all(isinstance(text, str) and len(text) <= _TEXT_LENGTH for text in texts):
            raise LineError(f"a spout host's first message must have texts of at most {_TEXT_LENGTH} characters")
        return hello


class HostListener:
    """Accepts connections from the hosts of one run.

    Args:
        bind: address to listen on, as Spark's `spark.driver.bindAddress`.
        on_host: called on a separate thread for each process that connects. It takes over the connection.

    Raises:
        OSError: this machine does not have that address.
    """

    def __init__(self, bind: str, on_host: Callable[[Line, Hello], None]) -> None:
        self._on_host = on_host
        self.secret = secrets.token_bytes(32)
        """What hosts must know."""
        family, _, _, _, address = socket.getaddrinfo(bind, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        self._listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            self._listener.bind(address)
            self._listener.listen(_MOST_STRANGERS)
        except OSError:
            self._listener.close()
            raise
        self.port: int = self._listener.getsockname()[1]
        """Where it listens."""
        self._lock = threading.Lock()
        #: Connections that are not authenticated yet, each with its thread.
        self._strangers: dict[socket.socket, threading.Thread] = {}
        self._thread = threading.Thread(target=self._accept, name="spout-listener", daemon=True)
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
                thread = threading.Thread(target=self._meet, args=(connection,), name="spout-caller", daemon=True)
                self._strangers[connection] = thread
            thread.start()

    def _meet(self, connection: socket.socket) -> None:
        # The limit is for the whole message, so that a caller can't hold the connection by a byte now and then.
        timer = threading.Timer(HANDSHAKE_SECONDS, _shut, (connection,))
        timer.name, timer.daemon = "spout-caller-timer", True
        timer.start()
        met = False
        try:
            notice_loss(connection)
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
            self._on_host(line, hello)


def _shut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
