"""A whole topology on one thread of one process, without Spark: for debuggers, and for tests of what a topology does.

All is real but Spark: coordinator, spouts with their log, chunks, stages, acker, snapshots. What Spark would keep in
its state store is kept in memory, and a process that ends can't continue where it stopped.
"""

from __future__ import annotations

import dataclasses
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path

from storm_on_spark.api.config import Config
from storm_on_spark.api.errors import InvalidTopologyError, TopologyFailedError
from storm_on_spark.api.info import TopologyInfo, TopologyStatus
from storm_on_spark.api.sink import SinkBolt
from storm_on_spark.api.text.traces import with_sources
from storm_on_spark.plan.compile import place
from storm_on_spark.plan.logical import LogicalGraph
from storm_on_spark.runtime.batches.clock import Clock, SystemClock
from storm_on_spark.runtime.batches.coordinator import Coordinator
from storm_on_spark.runtime.batches.input import chunks_between
from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.runtime.batches.output import BatchOutput
from storm_on_spark.runtime.batches.rules.planning import BatchPace
from storm_on_spark.runtime.batches.written import WriteError, Written
from storm_on_spark.runtime.bolts.operator import execute_operator
from storm_on_spark.runtime.bolts.worker import Worker
from storm_on_spark.runtime.in_process.host import InProcessHost
from storm_on_spark.runtime.in_process.micro_batch import execute_plan
from storm_on_spark.runtime.processes.ending.at_once import temporary_folder
from storm_on_spark.runtime.processes.run_folder import new_start_id, owned_run_folder
from storm_on_spark.runtime.reports.report import Failure
from storm_on_spark.runtime.run.spec import make_spec
from storm_on_spark.runtime.run.worker_process import release
from storm_on_spark.runtime.state.keyvalue.store import MemoryStore


class InProcessTopology:
    """Runs a topology on the caller's thread.

    Args:
        graph: the compiled topology.
        name: of the topology.
        clock: where its time comes from; the machine's monotonic clock for None.

    Raises:
        InvalidTopologyError: Spark reads a spout's rows, or writes a bolt's tuples.
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
            bolt = placed.topology.components[component.id].component
            if isinstance(bolt, SinkBolt) and bolt.needs_spark:
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

        What is not an `Exception`, such as a debugger's wish to quit, passes through, and the topology is ended.

        Args:
            go_on: asked before each micro-batch; once it says no, spouts emit nothing more, and the run ends when all
                that was emitted is done.
        """
        start_id = new_start_id()
        with temporary_folder("storm-on-spark-in-process-") as folder, owned_run_folder(start_id):
            self._started = time.monotonic()
            spec = make_spec(self._plan, self._name, self._name, start_id, (), "")
            coordinator = self._coordinator = _Coordinator(spec, folder, self._clock, True, self._on_failure)
            # No writer of an earlier run: numbers of micro-batches begin at 0.
            written = Written(self._plan, spec.start_id, None)
            try:
                written.open(None)
                coordinator.start(Offset())
                self._status = self._work(coordinator, Worker(spec), written, folder, go_on)
            finally:
                self._status = self._status or "KILLED"
                coordinator.stop()
                release(spec.start_id)
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
        self, coordinator: _Coordinator, worker: Worker, written: Written, folder: Path, go_on: Callable[[], bool]
    ) -> TopologyStatus:
        state: defaultdict[int, MemoryStore] = defaultdict(MemoryStore)
        offset, batch = Offset(), 0
        while self.failure is None:
            if coordinator.active and not go_on():
                coordinator.set_active(False)
            end = coordinator.poll(offset)
            # Also if there is something new: where micro-batches take longer than the period of a timer, one is due.
            if coordinator.completed.is_set():
                return "COMPLETED"
            if end == offset:
                if not coordinator.active and coordinator.drained():
                    return "KILLED"
                continue
            rows = execute_plan(
                self._plan,
                batch,
                partial(chunks_between, worker.wiring, folder, offset, end),
                lambda operator, chunks, info: execute_operator(worker, operator, chunks, info, state.__getitem__),
            )
            self._deliver(coordinator, batch, BatchOutput.of(body for _, body in rows), written)
            offset, batch = end, batch + 1
        return "FAILED"

    def _deliver(self, coordinator: _Coordinator, batch: int, output: BatchOutput, written: Written) -> None:
        fatal, reports = output.fatal, []
        if fatal is None:
            try:
                reports = written.write(None, batch, output.written)
            except WriteError as error:
                fatal = error.failure
        if fatal is not None:
            coordinator.metrics.add_failure(fatal)
            self._on_failure(fatal)
            return
        coordinator.deliver(batch, output.outcomes, output.carried)
        coordinator.metrics.add_reports([*output.reports, *reports])

    def _on_failure(self, failure: Failure) -> None:
        if self.failure is None:
            trace = with_sources(failure.own_trace)
            self.failure = TopologyFailedError(self._name, failure.message, trace, failure.trace, failure.input)


class _Coordinator(Coordinator):
    host_class = InProcessHost
    # A spout that has nothing is asked again soon: no other thread asks it.
    pace = BatchPace(most_poll_secs=BatchPace.poll_secs, idle_poll_secs=BatchPace.poll_secs)
