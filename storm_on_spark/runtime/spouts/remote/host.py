"""The coordinator's handle of a spout host on another machine."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import pickle
import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from storm_on_spark.plan.explain.words import listed
from storm_on_spark.runtime.processes.lines.line import Line
from storm_on_spark.runtime.processes.lines.listener import Hello
from storm_on_spark.runtime.spouts.host_process import STOP_SECONDS, HostProcess
from storm_on_spark.runtime.spouts.messages import Message, Setup, Stop

log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.5
"""How often a host that has not called is looked after."""
_REASON_SECONDS = 3.0
"""How long the next process of a host may take to say how the one before it ended."""
ROOM_SECONDS = 30.0
"""How long a host may have no place: when the topology starts it fails then, later it says so and waits."""


class Keeper(Protocol):
    """Keeps a host's process running on some machine."""

    def ensure(self) -> str:
        """Starts the keeper task unless it is running; returns the reason if that fails, otherwise an empty string."""
        ...

    def end(self) -> None:
        """Ends the keeper task and the process."""
        ...


class RemoteHost(HostProcess):
    """A host whose process connects to the driver.

    Args:
        keeper: keeps its process running.
        tasks: as for `HostProcess`.
        setup: as for `HostProcess`.
        on_message: as for `HostProcess`.
        on_gone: as for `HostProcess`.
    """

    def __init__(
        self,
        keeper: Keeper,
        tasks: Sequence[int],
        setup: Callable[[], Setup],
        on_message: Callable[[Message], None],
        on_gone: Callable[[HostProcess, str], float | None],
    ) -> None:
        super().__init__(tasks, setup, on_message, on_gone)
        self._keeper = keeper
        self._news = threading.Condition()
        #: The process that has called and was not answered, and the one that is being talked to.
        self._waiting: tuple[Line, Hello] | None = None
        self._current: tuple[Line, Hello] | None = None
        #: Bytes that went over lines which have ended: to the host, and from it.
        self._bytes = (0, 0)
        #: Whether any process has connected.
        self._met = False

    @property
    def pid(self) -> int | None:
        """The process id, on its machine."""
        current = self._current
        return None if current is None else current[1].pid

    @property
    def machine(self) -> str:
        """The machine that the process is on; empty as long as there is none."""
        current = self._current
        return "" if current is None else current[1].machine

    @property
    def traffic(self) -> tuple[int, int]:
        """Bytes to the host and from it."""
        current, (sent, received) = self._current, self._bytes
        return (
            (sent, received)
            if current is None
            else (sent + current[0].bytes_sent, received + current[0].bytes_received)
        )

    def answer(self, line: Line, hello: Hello) -> None:
        """Accepts a connection from a process of this host; called by any thread.

        A later attempt of the Spark task takes the place of an earlier one, which may be on a machine that Spark has
        given up. The connection of an earlier attempt is closed, and it connects again.
        """
        with self._news:
            known = self._current or self._waiting
            if self._stopping.is_set() or (known is not None and hello.attempt < known[1].attempt):
                line.close()
                return
            if self._waiting is not None:
                self._waiting[0].close()
            self._waiting = line, hello
            if self._current is not None:
                self._current[0].hang_up()
            self._news.notify_all()

    def start(self) -> None:
        """Starts the keeper task, and returns immediately."""
        self._started_at = time.monotonic()
        self._thread.start()

    def stop(self) -> bool:
        """Lets the host close its spouts and end. Kills it after a timeout, and returns whether it did so."""
        with self._news:
            self._stopping.set()
            self._news.notify_all()
        self.send(Stop())
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS)
        late, current = self._thread.is_alive(), self._current
        if current is not None:
            current[0].hang_up()
        self._keeper.end()
        if self._thread.ident is not None:
            self._thread.join()
        if self._waiting is not None:
            self._waiting[0].close()
        return late and current is not None

    def _serve(self) -> None:
        """Serves one process after another until no further one is wanted."""
        while True:
            reason = self._await_call()
            if self._stopping.is_set():
                return
            status = reason or self._talk()
            if self._stopping.is_set():
                return
            pause = self._on_gone(self, status)
            self._current = None
            if pause is None or self._stopping.wait(pause):
                return

    def _await_call(self) -> str:
        """Waits for a process to connect; returns an empty string, or the reason why none will."""
        since, complained = time.monotonic(), False
        while True:
            with self._news:
                if self._waiting is not None or self._stopping.is_set():
                    self._current, self._waiting = self._waiting, None
                    return ""
            reason = self._keeper.ensure()
            if reason and time.monotonic() - since > ROOM_SECONDS:
                if not self._met:
                    return reason
                if not complained:
                    complained = True
                    log.warning("the spouts with tasks %s wait: %s", listed(map(str, self.tasks)), reason)
            with self._news:
                self._news.wait_for(lambda: self._waiting is not None or self._stopping.is_set(), _LOOK_SECONDS)

    def _talk(self) -> str:
        """Forwards the process's messages; returns how it ended."""
        assert self._current is not None
        line, hello = self._current
        self._met, self._started_at = True, time.monotonic()
        # Nobody else can send before: there is no connection for them until the host has its first message.
        with self._lock:
            setup = self._make_setup()
            self.active = setup.active
            if setup.clock_at is not None:
                # The topology's time as of now, for a machine with another monotonic clock.
                now = time.monotonic()
                passed_ms = int(1000 * (now - setup.clock_at))
                setup = dataclasses.replace(setup, clock_ms=setup.clock_ms + passed_ms, clock_at=now)
            with contextlib.suppress(OSError):  # the host is gone already
                line.send_bytes(pickle.dumps(setup, 5))
            self._connection = line
        try:
            while True:
                self._on_message(pickle.loads(line.recv_bytes()))
        except (EOFError, OSError):
            with self._lock:
                self._connection = None
                self._bytes = self._bytes[0] + line.bytes_sent, self._bytes[1] + line.bytes_received
                line.close()
        return self._how_it_ended(hello)

    def _how_it_ended(self, hello: Hello) -> str:
        if self._stopping.is_set():
            return ""
        with self._news:
            self._news.wait_for(lambda: self._waiting is not None or self._stopping.is_set(), _REASON_SECONDS)
            following = self._waiting
        if following is not None and following[1].attempt == hello.attempt:
            return following[1].previous or f"its connection from {hello.machine} broke"
        if following is not None:
            return f"Spark has restarted it on {following[1].machine}, instead of {hello.machine}"
        return f"nothing more was heard of it from {hello.machine}"
