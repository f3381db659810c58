"""Spout hosts of a simulated Spark: a test decides how often spouts are called, and may kill the hosts."""

from __future__ import annotations

from typing import Any, ClassVar

from storm_on_spark.runtime.in_process.host import InProcessHost
from storm_on_spark.runtime.spouts.messages import Failed, GoLive, Message
from storm_on_spark.runtime.spouts.pacing import Pace
from storm_on_spark.runtime.spouts.task_loop import TaskLoop


class SimulatedHost(InProcessHost):
    """Replaces `HostProcess` and its process."""

    loop_pace: ClassVar = Pace(cut_secs=0.0, cut_share=0, report_secs=0.0)
    """Nothing waits for a clock."""
    calls = 5
    """Calls of `next_tuple` that follow a `Want`."""
    pid = 1
    ran_secs = 1000.0

    def send(self, message: Message) -> None:
        """Acts on a message; has no effect while there is no process."""
        if isinstance(message, GoLive) and self.loops:
            self.go_live(message)
        else:
            super().send(message)

    def go_live(self, message: GoLive) -> None:
        """Connects to a live process; there is none here."""

    def work(self, loop: TaskLoop, calls: int | None = None) -> None:
        """Calls a spout, at most `self.calls` times for None, and cuts."""
        for _ in range((self.calls if calls is None else calls) if self.active else 0):
            if loop.blocked():
                break
            loop.task.next_tuple()
        loop.cut_if_due(self.active)

    def guarded(self, number: int, component: str, act: Any) -> None:
        """Acts on a message; exceptions of a spout reach the test."""
        act()

    def fail(self, message: str) -> None:
        """Reports that a spout failed for good."""
        self._on_message(Failed(self.tasks[0], "spout", message, "trace"))

    def kill(self) -> float | None:
        """Ends the process without a report; returns the pause before it would be restarted."""
        self.die()
        return self._on_gone(self, "killed by SIGKILL")

    def die(self) -> None:
        """Ends the process without a restart."""
        for loop in self.loops.values():
            loop.task.log.close()
        self.loops = {}
