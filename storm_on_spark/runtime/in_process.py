"""A whole topology on one thread of one process, without Spark: for debuggers, and for tests of what a topology does.

All is real but Spark: coordinator, spouts with their log, chunks, stages, acker, snapshots. What Spark would keep in
its state store is kept in memory, and a process that ends can't go on where it was.
"""

from __future__ import annotations

import dataclasses
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

from storm_on_spark.api.config import Config
from storm_on_spark.api.errors import InvalidTopologyError, TopologyFailedError
from storm_on_spark.api.info import TopologyInfo, TopologyStatus
from storm_on_spark.api.text.traces import with_sources
from storm_on_spark.plan.compile import place
from storm_on_spark.plan.logical import LogicalGraph
from storm_on_spark.runtime.batches.clock import Clock, SystemClock
from storm_on_spark.runtime.batches.coordinator import Coordinator, log
from storm_on_spark.runtime.batches.input import chunks_between
from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.runtime.batches.rules.planning import BatchPace
from storm_on_spark.runtime.bolts.operator import execute_operator
from storm_on_spark.runtime.bolts.stage import BatchInfo
from storm_on_spark.runtime.bolts.worker import Worker
from storm_on_spark.runtime.codec import chunk
from storm_on_spark.runtime.codec.chunk import Chunk, Kind
from storm_on_spark.runtime.processes.at_once import belongs_here, temporary_folder
from storm_on_spark.runtime.processes.run_folder import remove_run_folder, run_folder
from storm_on_spark.runtime.reports import report
from storm_on_spark.runtime.reports.report import USER_ERRORS, Failure
from storm_on_spark.runtime.run.spec import load_spec, make_spec
from storm_on_spark.runtime.run.worker_process import release
from storm_on_spark.runtime.spouts.host_process import HostProcess
from storm_on_spark.runtime.spouts.messages import (
    Consumed,
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
from storm_on_spark.runtime.spouts.spout_host import failed
from storm_on_spark.runtime.spouts.task_loop import TaskLoop

_PACE = Pace(gather_secs=0.0)
"""A spout is called only when a message comes, so a cut that waits would gather nothing more."""


class InProcessTopology:
    """Runs a topology on the caller's thread.

    Args:
        graph: the compiled topology.
        name: of the topology.
        clock: where its time comes from; the machine's monotonic clock for None.

    Raises:
        InvalidTopologyError: Spark reads a spout's rows, or the driver writes a bolt's tuples.
    """

    def __init__(self, graph: LogicalGraph, name: str, clock: Clock | None = None) -> None:
        self._name = name
        self._clock = clock or SystemClock()
        placed = place(graph, 1)
        if placed.native_spouts:
            name = placed.native_spouts[0]
            raise InvalidTopologyError(
                f'spout "{name}": Spark reads its rows itself, and there is no Spark in this process; run it on a '
                "session, or put a spout with the same tuples in its place",
                component=name,
            )
        for component in placed.components.values():
            if component.sink:
                raise InvalidTopologyError(
                    f'bolt "{component.id}": the driver writes its tuples through Spark, and there is no Spark in this '
                    "process; run it on a session",
                    component=component.id,
                )
        named = {**placed.conf, Config.TOPOLOGY_NAME: name, Config.STORM_ID: name}
        self._plan = dataclasses.replace(placed, conf=named)
        self._coordinator: _Coordinator | None = None
        self._started = time.monotonic()
        self._ended: float | None = None
        self._status: TopologyStatus | None = None
        #: Why the topology failed.
        self.failure: TopologyFailedError | None = None

    def run(self, go_on: Callable[[], bool] = lambda: True) -> TopologyInfo:
        """Runs until all spouts are exhausted and nothing is pending, or the topology fails; returns what was done.

        What is no `Exception`, such as a debugger's wish to quit, passes through, and the topology is ended.

        Args:
            go_on: asked before each micro-batch; once it says no, spouts emit nothing more, and the run ends when all
                that was emitted is done.
        """
        with temporary_folder("storm-on-spark-in-process-") as folder:
            self._started = time.monotonic()
            spec = make_spec(self._plan, self._name, self._name, uuid.uuid4().hex, (), "")
            belongs_here(run_folder(spec.start_id))
            coordinator = self._coordinator = _Coordinator(spec, folder, self._clock, True, self._on_failure)
            try:
                coordinator.start(Offset())
                self._status = self._work(coordinator, Worker(spec), folder, go_on)
            finally:
                self._status = self._status or "KILLED"
                coordinator.stop()
                release(spec.start_id)
                remove_run_folder(spec.start_id)
                if self.failure is not None:
                    self._status = "FAILED"
                self._ended = time.monotonic()
        return self.info()

    def info(self) -> TopologyInfo:
        """Returns status and counters as of now."""
        if self._coordinator is None:
            return TopologyInfo(self._name, "INACTIVE", 0.0)
        uptime = (self._ended or time.monotonic()) - self._started
        return self._coordinator.metrics.info(self._name, self._status or "ACTIVE", uptime, self.failure)

    def _work(
        self, coordinator: _Coordinator, worker: Worker, folder: Path, go_on: Callable[[], bool]
    ) -> TopologyStatus:
        state: dict[int, _State] = {}
        offset, batch = Offset(), 0
        while self.failure is None:
            if coordinator.active and not go_on():
                coordinator.set_active(False)
            end = coordinator.poll(offset)
            if end == offset:
                if coordinator.completed.is_set():
                    return "COMPLETED"
                if not coordinator.active and coordinator.drained():
                    return "KILLED"
                continue
            chunks = list(chunks_between(worker.wiring, folder, offset, end, 0))
            info = BatchInfo(batch, 0)
            for operator in self._plan.operators:
                rows = execute_operator(worker, operator, chunks, info, lambda task: state.setdefault(task, _State()))
                chunks = [chunk.with_header(body) for _, body in rows]
            self._deliver(coordinator, batch, chunks)
            offset, batch = end, batch + 1
        return "FAILED"

    def _deliver(self, coordinator: _Coordinator, batch: int, chunks: list[Chunk]) -> None:
        outcomes: list[bytes] = []
        carried: list[bytes] = []
        reports: list[object] = []
        for header, body in chunks:
            if header.kind == Kind.REPORT:
                reports += chunk.read_report(body)
            else:
                (outcomes if header.kind == Kind.OUTCOME else carried).append(body)
        fatal = next((found for found in reports if isinstance(found, Failure) and found.fatal), None)
        if fatal is not None:
            coordinator.metrics.add_failure(fatal)
            self._on_failure(fatal)
            return
        coordinator.deliver(batch, outcomes, carried)
        for found in reports:
            if not isinstance(found, Failure):
                coordinator.metrics.add_bolt(found)  # type: ignore[arg-type]
            elif (told := coordinator.metrics.add_failure(found)) is not None:
                report.log_error(log, told)

    def _on_failure(self, failure: Failure) -> None:
        if self.failure is None:
            trace = with_sources(failure.own_trace)
            self.failure = TopologyFailedError(self._name, failure.message, trace, failure.trace, failure.input)


class _State(dict[tuple[str, int], bytes]):
    """The state of a task, by name and number."""

    def get(self, name: str, index: int = 0) -> bytes | None:  # type: ignore[override] # it is a `StateAccess`
        return super().get((name, index))

    def put(self, name: str, value: bytes, index: int = 0) -> None:
        self[name, index] = value

    def remove(self, name: str, index: int = 0) -> None:
        self.pop((name, index), None)


class _Host(HostProcess):
    """A spout host that is no process: it acts at once on what it is told, on the thread that tells it."""

    def __init__(
        self,
        tasks: Sequence[int],
        setup: Callable[[], Setup],
        on_message: Callable[[Message], None],
        on_gone: Callable[[HostProcess, str], float | None],
    ) -> None:
        super().__init__(tasks, setup, on_message, on_gone)
        self._loops: dict[int, TaskLoop] = {}
        self._settled: Setup | None = None
        self._clock_ms = 0

    def start(self) -> None:
        setup = self._make_setup()
        self._settled, self._clock_ms, self.active = setup, setup.clock_ms, setup.active
        worker = Worker(load_spec(setup.spec))
        self._started_at = time.monotonic()
        for number in self.tasks:
            self._guarded(number, worker.wiring.component_of[number], lambda: self._open(worker, setup, number))  # noqa: B023 # called at once

    def _open(self, worker: Worker, setup: Setup, number: int) -> None:
        loop = self._loops[number] = open_loop(worker, setup, number, self._now_ms, self._on_message, _PACE)
        if setup.active:
            loop.task.activate()
        self._on_message(Ready(number, loop.task.log.written))

    def _now_ms(self) -> int:
        setup = self._settled
        if setup is None or setup.clock_at is None:
            return self._clock_ms
        return setup.clock_ms + int(1000 * (time.monotonic() - setup.clock_at))

    def send(self, message: Message) -> None:
        if isinstance(message, SetClock):
            self._clock_ms = message.clock_ms
        elif isinstance(message, (Settle, Consumed)):
            self._tell(message.task, message)
        elif not isinstance(message, Stop):
            if isinstance(message, SetActive):
                self.active = message.active
            for number in self.tasks:
                self._tell(number, message)

    def _tell(self, number: int, message: Message) -> None:
        loop = self._loops.get(number)
        if loop is None:
            return

        def act() -> None:
            loop.handle(message)
            if isinstance(message, (Want, SetActive)):
                loop.burst(self.active)
                loop.cut_if_due(self.active)

        self._guarded(number, loop.task.component, act)

    def _guarded(self, number: int, component: str, act: Callable[[], None]) -> None:
        try:
            act()
        except USER_ERRORS as error:
            self._loops.pop(number, None)
            self._on_message(failed(number, component, error))

    def stop(self) -> bool:
        loops, self._loops = self._loops, {}
        for number, loop in loops.items():
            self._guarded(number, loop.task.component, loop.task.close)
        return False


class _Coordinator(Coordinator):
    host_class = _Host
    # A spout that has nothing is asked again soon: nobody else asks it.
    pace = BatchPace(most_poll_secs=BatchPace.poll_secs)
