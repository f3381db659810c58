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

import numpy as np

from storm_on_spark.plan.model import PlacedPlan
from storm_on_spark.runtime.processes.ending.signals import held_back
from storm_on_spark.runtime.run.settings import BatchSettings
from storm_on_spark.runtime.spouts.messages import Channel, Message, Setup, Stop
from storm_on_spark.runtime.spouts.watching.holding import HostWatch

STOP_SECONDS = 6.0
"""So long a host may take to close its spouts when the topology ends."""


class HostProcess:
    """The coordinator's handle of one spout host, whose process may be replaced.

    Args:
        tasks: the tasks that it runs.
        setup: returns the first message for a new process.
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
        #: Set once the first process was started, or could not be, for this reason.
        self._launched = threading.Event()
        self._failed: Exception | None = None
        self._process: subprocess.Popen[bytes] | None = None
        #: Set once the process has ended, and what it left behind.
        self._gone = threading.Event()
        #: How the last process ended.
        self._ended = ""
        #: There is one as soon as the process has been told what to run, which is its first message.
        self._connection: Channel | None = None
        self._started_at = 0.0
        self._thread = threading.Thread(target=self._serve, name="spout-host-reader", daemon=True)

    @property
    def pid(self) -> int | None:
        """The process id, once started."""
        return None if self._process is None else self._process.pid

    @property
    def ran_secs(self) -> float:
        """Seconds since the process was started."""
        return time.monotonic() - self._started_at

    def start(self) -> None:
        """Starts the process.

        Raises:
            OSError: it can't be started.
        """
        # On its thread, which outlives the process: the kernel ends the process with the thread that started it.
        self._thread.start()
        self._launched.wait()
        if self._failed is not None:
            raise self._failed

    def _launch(self) -> None:
        ours, theirs = socket.socketpair()
        watch = HostWatch()
        # The host must import this very package, even if it is not installed.
        package = str(Path(__file__).parents[3])
        path = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
        with theirs:
            try:
                with held_back(signal.SIGINT):
                    self._process = subprocess.Popen(
                        [
                            sys.executable,
                            "-m",
                            "storm_on_spark.runtime.spouts.spout_host",
                            str(theirs.fileno()),
                            str(os.getpid()),
                            str(watch.descriptor),
                        ],
                        pass_fds=[theirs.fileno(), watch.descriptor],
                        stdin=subprocess.DEVNULL,
                        env={**os.environ, "PYTHONPATH": path},
                    )
            except OSError:
                ours.close()
                watch.close()
                raise
        watch.start(self._process)
        self._started_at = time.monotonic()
        gone = self._gone = threading.Event()
        threading.Thread(
            target=self._await_end,
            args=(self._process, watch, ours, gone),
            name=f"spout-host-{self._process.pid}",
            daemon=True,
        ).start()
        connection = Connection(os.dup(ours.fileno()))
        # Nobody else can send before: there is no connection for them until the host has its first message.
        with self._lock:
            setup = self._make_setup()
            self.active = setup.active
            with contextlib.suppress(OSError):  # the host is gone already; its thread notices that, and why
                connection.send_bytes(pickle.dumps(setup, 5))
            self._connection = connection

    def send(self, message: Message) -> None:
        """Sends a message; does nothing while there is no process."""
        with self._lock:
            if self._connection is None:
                return
            # An error means that the host is gone; its thread notices that, and why.
            with contextlib.suppress(OSError):
                self._connection.send_bytes(pickle.dumps(message, 5))

    def stop(self) -> bool:
        """Lets the host close its spouts and end. Kills it after a timeout.

        Returns:
            Whether it was killed.
        """
        self._stopping.set()
        with self._life:
            process = self._process
        if process is None:
            return False
        self.send(Stop())
        late = not self._gone.wait(STOP_SECONDS)
        if late:
            process.kill()
            self._gone.wait()
        self._thread.join()
        return late

    def _serve(self) -> None:
        """Starts the first process and serves one process after another until none is started."""
        try:
            self._launch()
        except Exception as error:
            self._failed = error
            return
        finally:
            self._launched.set()
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
        """Passes on the process's messages; returns how it ended."""
        assert self._connection is not None
        assert self._process is not None
        try:
            while True:
                self._on_message(pickle.loads(self._connection.recv_bytes()))
        except (EOFError, OSError):
            self._gone.wait()
        with self._lock:
            self._connection.close()
            self._connection = None
        return self._ended

    def _await_end(
        self, process: subprocess.Popen[bytes], watch: HostWatch, ours: socket.socket, gone: threading.Event
    ) -> None:
        """Waits for the end of a host, ends what it left behind, and then lets its connection end.

        The connection does not end by itself where a process that the spout forked has inherited it.
        """
        self._ended = watch.how_it_ended(end_group(process))
        with ours, contextlib.suppress(OSError):
            ours.shutdown(socket.SHUT_RD)  # what the host has said before is still read
        gone.set()


def end_group(process: subprocess.Popen[bytes]) -> int:
    """Waits for the end of a host, ends what it left behind, and returns its exit code."""
    if hasattr(os, "waitid"):
        with contextlib.suppress(ChildProcessError):
            # Its id can't be reused before it is waited for, so no other process group has it yet.
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    else:
        process.wait()
    with contextlib.suppress(ProcessLookupError, PermissionError):
        # The host leads its own group; see `spout_host.main`.
        os.killpg(process.pid, signal.SIGKILL)
    return process.wait()


def spout_executors(plan: PlacedPlan) -> list[tuple[int, ...]]:
    """Returns the tasks of every spout executor: Storm spreads tasks over executors in order."""
    executors: list[tuple[int, ...]] = []
    for component in plan.components.values():
        if plan.topology[component.id].is_spout:
            count = max(1, min(component.executors, len(component.tasks)))
            executors += [tuple(part.tolist()) for part in np.array_split(np.array(component.tasks), count)]
    return executors


def spout_groups(plan: PlacedPlan) -> list[tuple[tuple[int, ...], ...]]:
    """Returns the executors of each spout host of a topology."""
    return spread_executors(spout_executors(plan), BatchSettings.of(plan.conf).workers)


def spread_executors(executors: Sequence[tuple[int, ...]], workers: int) -> list[tuple[tuple[int, ...], ...]]:
    """Returns the executors of each of at most `workers` processes, dealt out in turn as Storm deals them to workers.

    Example:
        >>> spread_executors([(1,), (2,), (3,)], 2)
        [((1,), (3,)), ((2,),)]
    """
    count = max(1, min(workers, len(executors)))
    return [tuple(executors[start::count]) for start in range(count)]
