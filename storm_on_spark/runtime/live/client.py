"""Requests of a worker and the coordinator to a live process, over its Unix socket."""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from storm_on_spark.runtime.batches.live_process import Status
from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.runtime.live.messages import Adopt, Adopted, Barrier, Cut, Fetch, Look, MayAdopt
from storm_on_spark.runtime.live.processes.pulse import has_pulse
from storm_on_spark.runtime.live.remote.asking import ask
from storm_on_spark.runtime.processes.diagnostics.busy import holder
from storm_on_spark.runtime.processes.ending.signals import held_back
from storm_on_spark.runtime.processes.is_stopped import is_stopped
from storm_on_spark.runtime.processes.lines.calls import Address
from storm_on_spark.runtime.processes.run_folder import MOST_SOCKET_PATH, make_private, run_folder
from storm_on_spark.runtime.spouts.log import Mark

log = logging.getLogger(__name__)

ANSWER_SECS = 10.0
"""A stopped live process is ended after this time: the log has all that it knows."""
_PULSE_SECS = 1.0
"""How often a caller that waits for an answer checks whether the process has a pulse."""
_START_SECS = 5.0
"""The shortest time from one start of a process to the next."""
_SLOW_SECS = 30.0
"""How long a started process may take to listen before another is started."""

NOT_STARTED = "tuples wait for micro-batches, as the live process can't be started"

started: dict[str, tuple[float, subprocess.Popen[bytes]]] = {}
#: Start id -> the live process that this process started last for that run, and when.
_said: set[str] = set()
#: Runs for which the failed start was logged.


def socket_of(start_id: str) -> Path:
    """Returns the path of the live process's Unix socket on this machine."""
    return run_folder(start_id) / "live"


def pulse_of(start_id: str) -> Path:
    """Returns the path of the socket of its pulse thread; see `pulse`."""
    return run_folder(start_id) / "beat"


def busy_of(start_id: str) -> Path:
    """Returns the path of the file that names the task being executed; see `busy`."""
    return run_folder(start_id) / "busy"


def no_socket(start_id: str) -> str:
    """Returns why the live process can't have a socket; "" if it can."""
    path = socket_of(start_id)
    size = len(os.fsencode(path))
    if size <= MOST_SOCKET_PATH:
        return ""
    return f"its socket {path} has a path of {size} bytes, and {MOST_SOCKET_PATH} are allowed; set TMPDIR"


class LiveClient:
    """Sends requests to the live process of a run. Each may return None: there may be no such process.

    Args:
        start_id: the run.
        stall_secs: how long one tuple may take. A process without a pulse is given that time, if it isn't stopped: a
            bolt may hold the interpreter.
        address: for a worker, where the process hears calls of other machines; None if all of the run is on this one.
            The driver starts such a process, see `remote.leader`.
    """

    def __init__(self, start_id: str, stall_secs: float = ANSWER_SECS, address: Address | None = None) -> None:
        self._start_id = start_id
        self._stall_secs = stall_secs
        self._address = address
        self.path = socket_of(start_id)
        self._pulse = pulse_of(start_id)
        #: Set once no caller needs an answer.
        self._over = threading.Event()

    def look(self, clock_ms: int, clock_at: float) -> Status | None:
        """Reports that the topology is running, and its time; see `LiveProcess`."""
        answer = self._ask(Look(clock_ms, clock_at), self._pulse)
        return answer if isinstance(answer, Status) else None

    def barrier(self, start: Offset, written: Mapping[int, Mark]) -> Offset | None:
        """Returns the end of the micro-batch that begins at `start`, whose cut `fetch` returns."""
        answer = self._ask(Barrier(start, written))
        return answer if isinstance(answer, Offset) else None

    def fetch(self, token: bytes | None, start: Offset, end: Offset) -> Cut | None:
        """Returns what happened between two offsets, if the live process continued from the state with this token."""
        answer = None if token is None else self._ask(Fetch(token, start, end))
        return answer if isinstance(answer, Cut) else None

    def adopt(self, adopt: Adopt) -> bool:
        """Hands over the state; returns whether tuples are executed live from here on."""
        answer = self._ask(adopt)
        return isinstance(answer, Adopted) and answer.live

    def let_go(self) -> None:
        """Cancels all present and future waits for an answer, because the topology is about to stop."""
        self._over.set()

    def listens(self) -> bool:
        """Returns whether there is a live process that may take the tasks."""
        if self._address is None:
            return self.path.exists()
        answer = self._ask(MayAdopt())
        return isinstance(answer, Adopted) and answer.live

    def start(
        self, processes: int, beside: int | None = None, door: tuple[socket.socket, bytes] | None = None
    ) -> subprocess.Popen[bytes] | None:
        """Starts the process unless it was started recently. It listens once it is ready.

        If the process can't be started, this is logged once.

        Args:
            processes: number of live processes, including those that the first one starts.
            beside: the id of this process where it is a driver: the other one ends with it. None in a worker: there it
                ends with the daemon of workers.
            door: for a driver, where others call the process; see `LiveProcess`.

        Returns:
            The process; None if none was started, as in a worker where the driver starts it.
        """
        if self._address is not None:
            return None
        if reason := no_socket(self._start_id):
            self._say(reason)
            return None
        now = time.monotonic()
        started_at, former = started.get(self._start_id, (-_START_SECS, None))
        status = None if former is None else former.poll()
        if now - started_at < (_START_SECS if former is None or status is not None else _SLOW_SECS):
            return None
        if status is not None and status > 0:
            self._say(f"it ended with status {status}; what it said is in the log of the Spark worker")
        make_private(self.path.parent)
        package = str(Path(__file__).parents[3])
        path = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
        # The folder is the process's to remove when the daemon ends, whose signal waits until it can hear it.
        words = [sys.executable, "-m", "storm_on_spark.runtime.live.processes.process", str(processes), self._start_id]
        shared = [] if door is None else [door[0].fileno()]
        with held_back(signal.SIGHUP, signal.SIGINT):
            process = subprocess.Popen(
                [*words, *([] if beside is None else map(str, (beside, *shared)))],
                stdin=subprocess.DEVNULL if door is None else subprocess.PIPE,
                pass_fds=shared,
                env={**os.environ, "PYTHONPATH": path},
            )
        if door is not None and process.stdin is not None:
            with contextlib.suppress(BrokenPipeError), process.stdin:  # it has ended
                process.stdin.write(door[1])
        started[self._start_id] = now, process
        return process

    def _say(self, reason: str) -> None:
        if self._start_id not in _said:
            _said.add(self._start_id)
            log.warning("%s: %s", NOT_STARTED, reason)

    def _ask(self, question: object, path: Path | None = None) -> Any:
        path = path or self.path
        if self._address is not None:
            return ask(self._address, question)
        try:
            with socket.socket(socket.AF_UNIX) as end:
                end.settimeout(ANSWER_SECS)
                end.connect(str(path))
                pid = _peer(end)
                end.settimeout(None)
                connection = Connection(end.detach())
        except ConnectionRefusedError:
            # Nobody listens there any more.
            path.unlink(missing_ok=True)
            self.path.unlink(missing_ok=True)
            return None
        except OSError:
            return None  # nobody has listened yet, or this process has no descriptor left, or no time
        with connection:
            try:
                connection.send_bytes(pickle.dumps(question, 5))
                if self._answers(connection, pid):
                    return pickle.loads(connection.recv_bytes())
            except (OSError, EOFError):
                pass
        return None

    def _holder(self) -> str:
        try:
            return holder(busy_of(self._start_id).read_bytes())
        except OSError:
            return holder(b"")

    def _answers(self, connection: Connection, pid: int) -> bool:
        """Waits for an answer as long as the process has a pulse; ends a process that has had none for too long."""
        heard_at = time.monotonic()
        while not connection.poll(min(_PULSE_SECS, ANSWER_SECS)):
            if self._over.is_set():
                return False
            if has_pulse(self._pulse, min(_PULSE_SECS, ANSWER_SECS)):
                heard_at = time.monotonic()
                continue
            silent, stopped = time.monotonic() - heard_at, is_stopped(pid)
            if silent < (ANSWER_SECS if stopped else max(ANSWER_SECS, self._stall_secs)):
                continue
            log.warning(
                "the live process %d is ended, and its tuples are tried again: %s for %.0f s (%s)",
                pid,
                "it has been stopped" if stopped else f"{self._holder()} has held the Python interpreter",
                silent,
                f"allowed are {ANSWER_SECS:g} s" if stopped else f"topology.task.stall.secs = {self._stall_secs:g}",
            )
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
            return False
        return True


def _peer(end: socket.socket) -> int:
    """Returns the id of the process at the other end."""
    found = end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid: int = struct.unpack("3i", found)[0]
    return pid
