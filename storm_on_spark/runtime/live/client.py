"""What a worker and the coordinator ask of a live process, over its Unix socket."""

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
import time
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from storm_on_spark.runtime.batches.live import Status
from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.runtime.live.messages import Adopt, Adopted, Barrier, Cut, Fetch, Look
from storm_on_spark.runtime.processes.run_folder import make_private, run_folder
from storm_on_spark.runtime.spouts.log import Mark

log = logging.getLogger(__name__)

ANSWER_SECS = 10.0
"""A live process that takes longer to answer is ended: the log has all that it knows."""
_START_SECS = 5.0
"""After a process has ended, another is started at the earliest so long after it was."""
_SLOW_SECS = 30.0
"""A process that was started may take so long to listen, before another is started."""
_MOST_PATH = 105
"""The path of a Unix socket may have 107 bytes (Linux), and it is moved to its name from one that is two longer."""

started: dict[str, tuple[float, subprocess.Popen[bytes]]] = {}
#: The live process that this process has started last for a run, and when, by start id.
_said: set[str] = set()
#: Runs of which it was said that nothing is live.


def socket_of(start_id: str) -> Path:
    """Returns where the live process of a run listens, on this machine."""
    return run_folder(start_id) / "live"


class LiveClient:
    """Asks the live process of a run, if there is one; None is always a possible answer.

    Args:
        start_id: the run.
    """

    def __init__(self, start_id: str) -> None:
        self._start_id = start_id
        self.path = socket_of(start_id)

    def look(self, clock_ms: int, clock_at: float) -> Status | None:
        """Says that the topology runs, and what time it is there; see `LiveProcess`."""
        answer = self._ask(Look(clock_ms, clock_at))
        return answer if isinstance(answer, Status) else None

    def barrier(self, start: Offset, written: Mapping[int, Mark]) -> Offset | None:
        """Returns the end of the micro-batch that begins at `start`, whose cut `fetch` returns."""
        answer = self._ask(Barrier(start, written))
        return answer if isinstance(answer, Offset) else None

    def fetch(self, token: bytes | None, start: Offset, end: Offset) -> Cut | None:
        """Returns what happened between two offsets, if the live process went on from the state with this token."""
        answer = None if token is None else self._ask(Fetch(token, start, end))
        return answer if isinstance(answer, Cut) else None

    def adopt(self, adopt: Adopt) -> bool:
        """Hands over the state; returns whether tuples are executed live from here on."""
        answer = self._ask(adopt)
        return isinstance(answer, Adopted) and answer.live

    def listens(self) -> bool:
        """Returns whether there is a live process."""
        return self.path.exists()

    def start(self, processes: int) -> None:
        """Starts the process, unless it was started just now; it listens once it is ready.

        That nothing is live, as it can't be started, is logged once.

        Args:
            processes: how many it is to be, with those that it starts itself.
        """
        size = len(os.fsencode(self.path))
        if size > _MOST_PATH:
            self._say(f"its socket {self.path} has a path of {size} bytes, and {_MOST_PATH} are allowed; set TMPDIR")
            return
        now = time.monotonic()
        started_at, former = started.get(self._start_id, (-_START_SECS, None))
        status = None if former is None else former.poll()
        if now - started_at < (_START_SECS if former is None or status is not None else _SLOW_SECS):
            return
        if status is not None and status > 0:
            self._say(f"it ended with status {status}; what it said is in the log of the Spark worker")
        make_private(self.path.parent)
        package = str(Path(__file__).parents[3])
        path = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
        # The folder is the process's to remove when the daemon ends, whose signal waits until it can hear it.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
        try:
            process = subprocess.Popen(
                [sys.executable, "-m", "storm_on_spark.runtime.live.process", str(processes), self._start_id],
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": path},
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        started[self._start_id] = now, process

    def _say(self, reason: str) -> None:
        if self._start_id not in _said:
            _said.add(self._start_id)
            log.warning("tuples wait for micro-batches, as the live process can't be started: %s", reason)

    def _ask(self, question: object) -> Any:
        try:
            with socket.socket(socket.AF_UNIX) as end:
                end.settimeout(ANSWER_SECS)
                end.connect(str(self.path))
                pid = _peer(end)
                end.settimeout(None)
                connection = Connection(end.detach())
        except ConnectionRefusedError:
            # Nobody listens there any more.
            self.path.unlink(missing_ok=True)
            return None
        except OSError:
            return None  # nobody has listened yet, or this process has no descriptor left, or no time
        with connection:
            try:
                connection.send_bytes(pickle.dumps(question, 5))
                if connection.poll(ANSWER_SECS):
                    return pickle.loads(connection.recv_bytes())
            except (OSError, EOFError):
                return None
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
        return None


def _peer(end: socket.socket) -> int:
    """Returns the id of the process at the other end."""
    found = end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid: int = struct.unpack("3i", found)[0]
    return pid
