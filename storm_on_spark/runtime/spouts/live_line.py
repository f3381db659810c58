"""The line of a spout host to the live process, which executes what spouts write as soon as they say so."""

from __future__ import annotations

import contextlib
import pickle
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection

from storm_on_spark.runtime.spouts.messages import Executed, Live, Settle, Told, Written


class LiveLine:
    """A connection to one live process.

    Args:
        path: where it listens.
        pid: its process id.
        tell: called on the line's own thread with what it says, and with `LineChanged` when it goes live or doesn't.
        prepare: called with the connection's descriptor, before anything else happens with it.

    Raises:
        OSError: nothing listens there.
    """

    def __init__(
        self,
        path: str,
        pid: int,
        tell: Callable[[Settle | Executed | LineChanged], None],
        prepare: Callable[[int], None],
    ) -> None:
        self.pid = pid
        self._tell = tell
        end = socket.socket(socket.AF_UNIX)
        try:
            end.connect(path)
        except OSError:
            end.close()
            raise
        prepare(end.fileno())
        self._connection = Connection(end.detach())
        self._lock = threading.Lock()
        self._over = False
        self._send(Live(on=True))
        threading.Thread(target=self._read, name="live-line", daemon=True).start()

    @property
    def over(self) -> bool:
        """Whether the process is gone."""
        return self._over

    def send(self, written: Written) -> None:
        """Says what was written; without effect once the process is gone."""
        self._send(written)

    def _send(self, message: object) -> None:
        with self._lock, contextlib.suppress(OSError):  # the thread that reads notices the end
            self._connection.send_bytes(pickle.dumps(message, 5))

    def _read(self) -> None:
        try:
            while True:
                said: Live | Told = pickle.loads(self._connection.recv_bytes())
                if isinstance(said, Live):
                    self._tell(LineChanged(self, said.on))
                else:
                    for message in said:
                        self._tell(message)
        except (EOFError, OSError):
            self._over = True
        with self._lock:
            self._connection.close()
        self._tell(LineChanged(self, on=False))


@dataclass(frozen=True)
class LineChanged:
    """Tuples are executed live on this line from here on, or no more; within a spout host.

    The end of a process may be noticed after another has taken its place.
    """

    line: LiveLine
    on: bool
