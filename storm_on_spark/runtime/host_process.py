"""Starting spout hosts and talking to them."""

from __future__ import annotations

import contextlib
import os
import pickle
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path

from storm_on_spark.runtime.messages import Message, Setup, Stop

_STOP_SECONDS = 6.0


class HostProcess:
    """One spout host, as the coordinator sees it.

    Args:
        setup: what it runs.
        on_message: called on the reader thread with every message.
        on_gone: called on the reader thread when the process ends without having been stopped.
    """

    def __init__(
        self, setup: Setup, on_message: Callable[[Message], None], on_gone: Callable[[HostProcess, str], None]
    ) -> None:
        self._setup = setup
        self._on_message = on_message
        self._on_gone = on_gone
        self._lock = threading.Lock()
        self._stopping = False
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._reader = threading.Thread(target=self._read, name="spout-host-reader", daemon=True)

    @property
    def pid(self) -> int | None:
        """The process id, once started."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Starts the process.

        Raises:
            OSError: it can't be started.
        """
        ours, theirs = socket.socketpair()
        # The host must find this very package, also when it was not installed.
        package = str(Path(__file__).parents[2])
        path = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "storm_on_spark.runtime.spout_host", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": path},
            )
        self._connection = Connection(ours.detach())
        self.send(self._setup)
        self._reader.start()

    def send(self, message: Message) -> None:
        """Sends a message; without effect once the host is gone."""
        with self._lock:
            if self._connection is None:
                return
            with contextlib.suppress(OSError):  # the reader notices that the host is gone, and why
                self._connection.send_bytes(pickle.dumps(message, 5))

    def stop(self) -> None:
        """Lets the host close its spouts and end; kills it if it does not in time."""
        self._stopping = True
        self.send(Stop())
        if self._process is not None:
            try:
                self._process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._reader.join()

    def _read(self) -> None:
        assert self._connection is not None
        assert self._process is not None
        try:
            while True:
                self._on_message(pickle.loads(self._connection.recv_bytes()))
        except (EOFError, OSError):
            code = self._process.wait()
        with self._lock:
            self._connection.close()
            self._connection = None
        if not self._stopping:
            status = f"signal {-code}" if code < 0 else f"exit code {code}"
            self._on_gone(self, status)


def spread_executors(executors: Sequence[tuple[int, ...]], workers: int) -> list[tuple[tuple[int, ...], ...]]:
    """Returns the executors of each of at most `workers` processes, dealt out in turn as Storm deals them to workers.

    Example:
        >>> spread_executors([(1,), (2,), (3,)], 2)
        [((1,), (3,)), ((2,),)]
    """
    count = max(1, min(workers, len(executors)))
    return [tuple(executors[start::count]) for start in range(count)]
