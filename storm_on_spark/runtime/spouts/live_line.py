"""The connection of a spout executor to the live process, which executes tuples as soon as they are announced."""

from __future__ import annotations

import contextlib
import pickle
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from storm_on_spark.runtime.processes.frames import Frames, framed
from storm_on_spark.runtime.spouts.messages import Acked, Executed, Live, Settle, Told, Written


class LiveLine:
    """A connection to one live process, for one thread.

    The same thread reads it when the descriptor is ready, so no second thread has to be woken.

    Args:
        path: of its socket.
        pid: its process id.
        prepare: called first with the new connection.

    Raises:
        OSError: no process listens there.
    """

    def __init__(self, path: str, pid: int, prepare: Callable[[socket.socket], None]) -> None:
        self.pid = pid
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self._socket.connect(path)
        except OSError:
            self._socket.close()
            raise
        prepare(self._socket)
        self._frames = Frames(self._socket)
        self._send(Live(on=True))

    @property
    def over(self) -> bool:
        """Whether the process is gone, as `received` has found."""
        return self._frames.over

    def close(self) -> None:
        """Closes this end."""
        self._socket.close()

    def fileno(self) -> int:
        """Returns the descriptor, which is ready when `received` has something."""
        return self._socket.fileno()

    def send(self, written: Written) -> None:
        """Announces new records; has no effect once the process is gone."""
        self._send(written)

    def _send(self, message: object) -> None:
        with contextlib.suppress(OSError):  # the reading thread notices the end
            # It never waits for this thread, so this may wait for it.
            self._socket.sendall(framed(pickle.dumps(message, 5)))

    def received(self) -> Iterator[Settle | Executed | Acked | LineChanged]:
        """Yields the messages received since the last call, without waiting for more."""
        for data in self._frames.received():
            said: Live | Told = pickle.loads(data)
            if isinstance(said, Live):
                yield LineChanged(self, said.on)
            else:
                yield from said
        if self._frames.over:
            yield LineChanged(self, on=False)


@dataclass(frozen=True)
class LineChanged:
    """Within a spout host: tuples are now executed live over this connection, or no longer are.

    The end of a process may be noticed after another has taken its place.
    """

    line: LiveLine
    on: bool
