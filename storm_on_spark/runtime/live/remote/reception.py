"""Accepts calls in the first live process: those of further live processes, and those of workers that ask something."""

from __future__ import annotations

import contextlib
import socket
import threading
from multiprocessing.connection import Connection
from pathlib import Path

from storm_on_spark.runtime.live.remote.asking import DEAD_SECS, WORKER
from storm_on_spark.runtime.processes.lines.line import Line
from storm_on_spark.runtime.processes.lines.listener import Hello, LineListener


class Reception:
    """The other machines, as the first live process sees them.

    Args:
        listener: the socket that the driver has opened.
        secret: what callers must know.
        path: of the Unix socket of this process, at which what workers ask is put in.
        members: how many further live processes there are.
    """

    def __init__(self, listener: socket.socket, secret: bytes, path: Path, members: int) -> None:
        self._path = path
        self._lock = threading.Lock()
        #: The last connection of each further live process that nobody has taken yet, and who called.
        self._called: dict[int, tuple[Line, Hello]] = {}
        #: Which attempt of its Spark task has called last.
        self._attempts = dict.fromkeys(range(1, members + 1), -1)
        self._listener = LineListener(listener, secret, self._on_caller, DEAD_SECS)

    def take(self, number: int) -> tuple[Line, Hello] | None:
        """Returns the connection of a further live process; None if it has not called since the last one was taken.

        Args:
            number: of the process, from 1 on.
        """
        with self._lock:
            return self._called.pop(number, None)

    def has_called(self, number: int) -> bool:
        """Returns whether there is a connection to take."""
        with self._lock:
            return number in self._called

    def close(self) -> None:
        """Accepts no further calls, and ends connections that nobody has taken."""
        self._listener.close()
        with self._lock:
            left, self._called = self._called, {}
        for line, _ in left.values():
            line.close()

    def _on_caller(self, line: Line, hello: Hello) -> None:
        if hello.number == WORKER:
            with contextlib.closing(line), contextlib.suppress(OSError, EOFError):
                self._relay(line)
            return
        with self._lock:
            known = self._attempts.get(hello.number)
            if known is None or hello.attempt < known:
                line.close()
                return
            self._attempts[hello.number] = hello.attempt
            former = self._called.pop(hello.number, None)
            self._called[hello.number] = line, hello
        if former is not None:
            former[0].close()

    def _relay(self, line: Line) -> None:
        question = line.recv_bytes()
        with socket.socket(socket.AF_UNIX) as end:
            end.connect(str(self._path))
            connection = Connection(end.detach())
        with connection:
            connection.send_bytes(question)
            line.send_bytes(connection.recv_bytes())
