"""A further live process on another machine, as the first one sees it."""

from __future__ import annotations

import pickle
import select
import time
from typing import Final

from storm_on_spark.runtime.live import messages
from storm_on_spark.runtime.live.processes.live_processes import GivenUpError
from storm_on_spark.runtime.live.remote.reception import Reception
from storm_on_spark.runtime.processes.lines.line import Line
from storm_on_spark.runtime.processes.lines.listener import Hello

SILENT_SECS: Final = 10.0
"""A process of which nothing was heard for this long is given up, unless one tuple may take longer."""
BEAT_SECS: Final = 1.0
"""How often a process that executes a request says that it does."""
BEAT: Final = b""
"""The message that says so; no answer is empty."""


class RemoteMember:
    """A `Member` that is ready once a process has called.

    Args:
        reception: where it calls.
        number: which of the live processes it is, from 1 on.
    """

    def __init__(self, reception: Reception, number: int) -> None:
        self._reception = reception
        self._number = number
        self._line: Line | None = None
        self._hello: Hello | None = None
        #: Seconds that one tuple may take.
        self.stall_secs: float = SILENT_SECS

    def ready(self, secs: float = 0.0) -> bool:
        """Returns whether a process has called; waits for none, as Spark may have to start it."""
        if self._line is None and (called := self._reception.take(self._number)) is not None:
            self._line, self._hello = called
        return self._line is not None

    @property
    def over(self) -> bool:
        """Whether its connection has ended, or another process has called in its place."""
        if self._line is None:
            return False
        # It says nothing unless it is asked.
        return self._reception.has_called(self._number) or self._can_read(0)

    def ask(self, question: messages.Question) -> None:
        """Sends a request; see `Member`."""
        if self._line is None:
            raise self._gone("has not called")
        # State may take long to send. The kernel sees a dead machine, and the keeper a process that does not read.
        try:
            self._line.send_bytes(pickle.dumps(question, 5))
        except OSError as error:
            raise self._gone(f"is gone: {error}") from error

    def answer(self) -> messages.Answer:
        """Waits for the answer; see `Member`."""
        assert self._line is not None, "it was asked"
        heard_at = time.monotonic()
        while True:
            if self._can_read(BEAT_SECS):
                try:
                    data = self._line.recv_bytes()
                except EOFError as error:
                    raise self._gone("is gone") from error
                except OSError as error:
                    raise self._gone(f"is gone: {error}") from error
                if data != BEAT:
                    found: messages.Answer = pickle.loads(data)
                    return found
                heard_at = time.monotonic()
            elif (silent := time.monotonic() - heard_at) > max(SILENT_SECS, self.stall_secs):
                raise self._gone(f"has said nothing for {silent:.0f} s")

    def end(self) -> None:
        """Ends the connection, and with it the process, when it hears of that."""
        if self._line is not None:
            self._line.close()

    def _can_read(self, secs: float) -> bool:
        assert self._line is not None
        poll = select.poll()
        poll.register(self._line.fileno(), select.POLLIN)
        return bool(poll.poll(1000 * secs))

    def _gone(self, how: str) -> GivenUpError:
        who = f" {self._hello.pid} on {self._hello.machine}" if self._hello is not None else f" number {self._number}"
        return GivenUpError(f"the live process{who} {how}")
