"""The pulse of a live process: a thread that answers while the main thread executes a tuple, however long that takes.

`bolts.watching` limits how long one tuple may take, from within the process. From outside, a process is only ended
when it has no pulse: it is stopped, or a bolt has held its interpreter for longer than a tuple may take.
"""

from __future__ import annotations

import contextlib
import pickle
import socket
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

from storm_on_spark.runtime.batches.live_process import Status
from storm_on_spark.runtime.live.messages import Look

_QUESTION_SECS = 1.0
"""How long a connection may take to ask before the next one has its turn."""


class Pulse:
    """Answers requests at a socket, on a separate thread.

    Args:
        listener: a listening socket.
        answer: returns the answer to a look, or to None, which asks only whether there is a pulse. Runs on the thread.
    """

    def __init__(self, listener: socket.socket, answer: Callable[[Look | None], Status]) -> None:
        self._listener = listener
        self._answer = answer

    def start(self) -> None:
        """Starts the thread, which ends with the process."""
        threading.Thread(target=self._run, name="pulse", daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                end, _ = self._listener.accept()
            except OSError:
                return  # it was closed
            with contextlib.suppress(OSError, EOFError), Connection(end.detach()) as connection:
                if connection.poll(_QUESTION_SECS):
                    question: Look | None = pickle.loads(connection.recv_bytes())
                    connection.send_bytes(pickle.dumps(self._answer(question), 5))


def has_pulse(path: Path, secs: float) -> bool:
    """Returns whether the process that listens at `path` answers within some seconds."""
    try:
        with socket.socket(socket.AF_UNIX) as end:
            end.settimeout(secs)
            end.connect(str(path))
            end.settimeout(None)
            connection = Connection(end.detach())
        with connection:
            connection.send_bytes(pickle.dumps(None, 5))
            if not connection.poll(secs):
                return False
            connection.recv_bytes()
            return True
    except (OSError, EOFError):
        return False
