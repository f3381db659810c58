"""A spout host that is not a process: it acts at once on what it is told, on the thread that tells it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, ClassVar

from storm_on_spark.runtime.bolts.worker import Worker
from storm_on_spark.runtime.reports.report import USER_ERRORS
from storm_on_spark.runtime.run.spec import load_spec
from storm_on_spark.runtime.spouts import messages
from storm_on_spark.runtime.spouts.host_process import HostProcess
from storm_on_spark.runtime.spouts.opening import open_loop
from storm_on_spark.runtime.spouts.pacing import Pace
from storm_on_spark.runtime.spouts.spout_host import failed
from storm_on_spark.runtime.spouts.task_loop import TaskLoop


class InProcessHost(HostProcess):
    """Stands in for `HostProcess` and for its process."""

    loop_pace: ClassVar = Pace(gather_secs=0.0)
    """A spout is called only when a message comes, so a cut that waits would gather nothing more."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        #: The open tasks.
        self.loops: dict[int, TaskLoop] = {}

    def start(self) -> None:
        """Opens the spouts."""
        setup = self._make_setup()
        self._settled, self._clock_ms, self.active = setup, setup.clock_ms, setup.active
        worker = Worker(load_spec(setup.spec))
        self._started_at = time.monotonic()
        for number in self.tasks:
            self.guarded(number, worker.wiring.component_of[number], lambda: self._open(worker, setup, number))  # noqa: B023 # called at once

    def _open(self, worker: Worker, setup: messages.Setup, number: int) -> None:
        loop = self.loops[number] = open_loop(worker, setup, number, self._now_ms, self._on_message, self.loop_pace)
        if setup.active:
            loop.task.activate()
        self._on_message(messages.Ready(number, loop.task.log.written))

    def _now_ms(self) -> int:
        clock_at = self._settled.clock_at
        if clock_at is None:
            return self._clock_ms
        return self._settled.clock_ms + int(1000 * (time.monotonic() - clock_at))

    def send(self, message: messages.Message) -> None:
        """Acts on a message."""
        if isinstance(message, messages.SetClock):
            self._clock_ms = message.clock_ms
        elif isinstance(message, (messages.Settle, messages.Consumed)):
            self._tell(message.task, message)
        elif not isinstance(message, messages.Stop):
            if isinstance(message, messages.SetActive):
                self.active = message.active
            for number in self.tasks:
                self._tell(number, message)

    def _tell(self, number: int, message: messages.Message) -> None:
        loop = self.loops.get(number)
        if loop is None:
            return

        def act() -> None:
            loop.handle(message)
            if isinstance(message, (messages.Want, messages.SetActive)):
                self.work(loop)

        self.guarded(number, loop.task.component, act)

    def work(self, loop: TaskLoop) -> None:
        """Lets a spout emit, and cuts."""
        loop.burst(self.active)
        loop.cut_if_due(self.active)

    def guarded(self, number: int, component: str, act: Callable[[], None]) -> None:
        """Acts, and tells the coordinator of a task that fails."""
        try:
            act()
        except USER_ERRORS as error:
            self.loops.pop(number, None)
            self._on_message(failed(number, component, error))

    def stop(self) -> bool:
        """Closes the spouts."""
        loops, self.loops = self.loops, {}
        for number, loop in loops.items():
            self.guarded(number, loop.task.component, loop.task.close)
        return False
