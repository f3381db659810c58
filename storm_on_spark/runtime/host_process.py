"""Starting spout hosts and talking to them."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path

from storm_on_spark.runtime.messages import Message, Setup, Stop

_STOP_SECONDS = 6.0


class RestartPolicy:
    """When a host that died is started again, as Storm's supervisor does with a worker, but not for ever.

    Args:
        pauses: seconds before each restart in a row; after the last of them the host is given up.
        healthy_secs: a host that ran so long has begun anew.

    Example:
        >>> policy = RestartPolicy(pauses=(0.0, 1.0), healthy_secs=60)
        >>> policy.next_pause(3.0), policy.next_pause(3.0), policy.next_pause(3.0)
        (0.0, 1.0, None)
        >>> policy.next_pause(3600.0)
        0.0
    """

    def __init__(self, pauses: Sequence[float] = (0.0, 0.5, 1.0, 2.0, 4.0), healthy_secs: float = 60.0) -> None:
        self._pauses = tuple(pauses)
        self._healthy_secs = healthy_secs
        self.restarts = 0
        """Restarts in a row."""

    def next_pause(self, ran_secs: float) -> float | None:
        """Returns how long to wait before the next start of a host that ran for `ran_secs`; None to give up."""
        if ran_secs >= self._healthy_secs:
            self.restarts = 0
        if self.restarts == len(self._pauses):
            return None
        self.restarts += 1
        return self._pauses[self.restarts - 1]


class HostProcess:
    """One spout host, as the coordinator sees it; the process behind it may change.

    Args:
        tasks: the tasks that it runs.
        setup: returns what to tell a process that starts now.
        on_message: called on the host's own thread with every message.
        on_gone: called there with (host, why) when the process ended without having been stopped; returns the
            pause in seconds before it is started again, or None if that is the end.
    """

    def __init__(
        self,
        tasks: Sequence[int],
        setup: Callable[[], Setup],
        on_message: Callable[[Message], None],
        on_gone: Callable[[HostProcess, str], float | None],
    ) -> None:
        self.tasks = tuple(tasks)
        #: Whether the process was started with active spouts.
        self.active = True
        self._make_setup = setup
        self._on_message = on_message
        self._on_gone = on_gone
        #: Held while a message is sent, so that messages of several threads don't mix.
        self._lock = threading.Lock()
        #: Held while a process is started, so that `stop` sees it or it is not started.
        self._life = threading.Lock()
        self._stopping = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._started_at = 0.0
        self._thread = threading.Thread(target=self._serve, name="spout-host-reader", daemon=True)

    @property
    def pid(self) -> int | None:
        """The process id, once started."""
        return None if self._process is None else self._process.pid

    @property
    def ran_secs(self) -> float:
        """How long ago the process was started."""
        return time.monotonic() - self._started_at

    def start(self) -> None:
        """Starts the process.

        Raises:
            OSError: it can't be started.
        """
        self._launch()
        self._thread.start()

    def _launch(self) -> None:
        ours, theirs = socket.socketpair()
        # The host must find this very package, also when it was not installed.
        package = str(Path(__file__).parents[2])
        path = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
        with theirs:
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "storm_on_spark.runtime.spout_host", str(theirs.fileno())],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    env={**os.environ, "PYTHONPATH": path},
                )
            except OSError:
                ours.close()
                raise
        self._started_at = time.monotonic()
        self._connection = Connection(ours.detach())
        setup = self._make_setup()
        self.active = setup.active
        self.send(setup)

    def send(self, message: Message) -> None:
        """Sends a message; without effect while there is no process."""
        with self._lock:
            if self._connection is None:
                return
            # An error means that the host is gone; its thread notices that, and why.
            with contextlib.suppress(OSError):
                self._connection.send_bytes(pickle.dumps(message, 5))

    def stop(self) -> None:
        """Lets the host close its spouts and end; kills it if it does not in time."""
        self._stopping.set()
        with self._life:
            process = self._process
        if process is None:
            return
        self.send(Stop())
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._thread.join()

    def _serve(self) -> None:
        """Reads from one process after the other, until there is no further one."""
        while True:
            status = self._read_to_end()
            if self._stopping.is_set():
                return
            pause = self._on_gone(self, status)
            while pause is not None:
                if self._stopping.wait(pause):
                    return
                with self._life:
                    if self._stopping.is_set():
                        return
                    try:
                        self._launch()
                        break
                    except OSError as error:
                        status = f"it can't be started: {error}"
                pause = self._on_gone(self, status)
            else:
                return

    def _read_to_end(self) -> str:
        """Hands on what the process says; returns how it ended."""
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
        return _how_it_ended(code)


def _how_it_ended(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


def spread_executors(executors: Sequence[tuple[int, ...]], workers: int) -> list[tuple[tuple[int, ...], ...]]:
    """Returns the executors of each of at most `workers` processes, dealt out in turn as Storm deals them to workers.

    Example:
        >>> spread_executors([(1,), (2,), (3,)], 2)
        [((1,), (3,)), ((2,),)]
    """
    count = max(1, min(workers, len(executors)))
    return [tuple(executors[start::count]) for start in range(count)]
