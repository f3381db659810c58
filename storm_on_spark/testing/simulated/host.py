"""Spout hosts that live in the test's own process and act at once on what they are told."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from storm_on_spark.runtime.bolts.worker import Worker
from storm_on_spark.runtime.run.spec import load_spec
from storm_on_spark.runtime.spouts.messages import (
    Consumed,
    Failed,
    GoLive,
    Message,
    Ready,
    SetActive,
    SetClock,
    Settle,
    Setup,
    Stop,
    Want,
)
from storm_on_spark.runtime.spouts.opening import open_loop
from storm_on_spark.runtime.spouts.pacing import Pace
from storm_on_spark.runtime.spouts.task_loop import TaskLoop

_PACE = Pace(cut_secs=0.0, cut_share=0, report_secs=0.0)
"""Nothing waits for a clock."""


class SimulatedHost:
    """Stands in for `HostProcess`, and for the process behind it."""

    calls = 5
    """Calls of `next_tuple` that follow a `Want`."""

    def __init__(
        self,
        tasks: Sequence[int],
        setup: Callable[[], Setup],
        on_message: Callable[[Message], None],
        on_gone: Callable[[SimulatedHost, str], float | None],
    ) -> None:
        self.tasks = tuple(tasks)
        self.active = True
        self.pid = 1
        self.ran_secs = 1000.0
        self.received: list[Message] = []
        self.loops: dict[int, TaskLoop] = {}
        self._setup, self._on_message, self._on_gone = setup, on_message, on_gone
        self.clock_ms = 0

    def start(self) -> None:
        """Opens the spouts."""
        setup = self._setup()
        self.active = setup.active
        self.clock_ms = setup.clock_ms
        worker = Worker(load_spec(setup.spec))
        for number in self.tasks:
            loop = open_loop(worker, setup, number, lambda: self.clock_ms, self._on_message, _PACE)
            self.loops[number] = loop
            if setup.active:
                loop.task.activate()
            self._on_message(Ready(number, loop.task.log.written))

    def send(self, message: Message) -> None:
        """Acts on a message; without effect while there is no process."""
        if not self.loops:
            return
        self.received.append(message)
        if isinstance(message, SetClock):
            self.clock_ms = message.clock_ms
        elif isinstance(message, (Settle, Consumed)):
            self.loops[message.task].handle(message)
        elif isinstance(message, GoLive):
            self.go_live(message)
        elif not isinstance(message, Stop):
            if isinstance(message, SetActive):
                self.active = message.active
            for loop in self.loops.values():
                loop.handle(message)
                if isinstance(message, Want):
                    self.work(loop, self.calls)

    def go_live(self, message: GoLive) -> None:
        """Connects to a live process; there is none here."""

    def work(self, loop: TaskLoop, calls: int) -> None:
        """Lets a spout emit, and cuts."""
        for _ in range(calls if self.active else 0):
            if loop.blocked():
                break
            loop.task.next_tuple()
        loop.cut_if_due(self.active)

    def fail(self, message: str) -> None:
        """Says that a spout failed for good."""
        self._on_message(Failed(self.tasks[0], "spout", message, "trace"))

    def kill(self) -> float | None:
        """Ends the process without a word; returns the pause before it would be started again."""
        self.die()
        return self._on_gone(self, "killed by SIGKILL")

    def die(self) -> None:
        """Ends the process, and nobody is left to notice."""
        for loop in self.loops.values():
            loop.task.log.close()
        self.loops = {}

    def stop(self) -> bool:
        """Closes the spouts."""
        for loop in self.loops.values():
            loop.task.close()
        self.loops = {}
        return False
