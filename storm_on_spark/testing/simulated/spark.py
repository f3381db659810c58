"""Spark, as far as the runtime needs it: a chain of operators over partitions, state, and retried tasks.

The coordinator, spouts, log, chunks, stages, acker and snapshots are real; only processes and the JVM are simulated.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from storm_on_spark.api.config import effective_conf, validate_conf
from storm_on_spark.api.errors import TopologyFailedError
from storm_on_spark.api.text.printable import printable
from storm_on_spark.api.topology import Topology
from storm_on_spark.plan.compile import compile_graph, place
from storm_on_spark.plan.model import Operator
from storm_on_spark.runtime.batches.clock import ManualClock
from storm_on_spark.runtime.batches.coordinator import Coordinator
from storm_on_spark.runtime.batches.input import chunks_between
from storm_on_spark.runtime.batches.live_process import LiveProcess
from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.runtime.batches.output import BatchOutput
from storm_on_spark.runtime.batches.rules.planning import BatchPace
from storm_on_spark.runtime.bolts.operator import execute_operator
from storm_on_spark.runtime.bolts.stage import BatchInfo, Row
from storm_on_spark.runtime.bolts.worker import Worker
from storm_on_spark.runtime.codec import chunk
from storm_on_spark.runtime.codec.chunk import Chunk, Kind
from storm_on_spark.runtime.in_process.micro_batch import execute_plan
from storm_on_spark.runtime.processes.run_folder import remove_run_folder
from storm_on_spark.runtime.reports.report import Failure
from storm_on_spark.runtime.run.spec import RunSpec, make_spec
from storm_on_spark.runtime.state.deltas import applied
from storm_on_spark.runtime.state.keyvalue.store import MemoryStore
from storm_on_spark.runtime.state.snapshot import read_snapshot
from storm_on_spark.runtime.state.version import StateVersions
from storm_on_spark.runtime.storage import Folder
from storm_on_spark.runtime.storage.durable import Durable
from storm_on_spark.testing.simulated.host import SimulatedHost

_runs = count(1)

Values = dict[tuple[str, int], bytes]
"""The state of a task, by name and index."""
State = dict[int, Values]
"""The state of all tasks."""


class DriverKilled(Exception):  # noqa: N818 # what happened, not what is wrong
    """The driver's process is gone."""


class SimulatedSpark:
    """A topology on a simulated Spark: each `step` plans and runs one micro-batch, on the caller's thread.

    Args:
        spec: the run; `of` makes it from a topology.
        folder: the checkpoint.
        random: decides on workers, orders and faults, so that a seed repeats a run.
        retries: how likely a Spark task is retried, on any worker.
        workers: how many Python workers there are.

    Example:
        >>> with SimulatedSpark.of(topology, folder) as spark:      # doctest: +SKIP
        ...     spark.run_to_end()
        ...     spark.states("count")[0]["counts"]
        {'to': 2, 'be': 2}
    """

    host_class = SimulatedHost
    """The hosts that spouts run in."""
    deterministic = True
    """Whether all attempts at a Spark task must give the same chunks; otherwise an `AssertionError` is raised."""
    live: LiveProcess | None = None
    """The live process, if there is one."""
    calls: int | None = None
    """Calls of `next_tuple` before each micro-batch; None for as many as the host would make."""

    def __init__(
        self, spec: RunSpec, folder: Folder, random: Random, *, retries: float = 0.0, workers: int = 3
    ) -> None:
        self.spec = spec
        self.folder = folder
        self.random = random
        self.retries = retries
        self.clock = ManualClock()
        self.workers = [Worker(spec) for _ in range(workers)]
        self.state: State = {}
        #: Spark's offset log: the ends of all batches; and how many of them are committed.
        self.offsets: list[Offset] = [Offset()]
        self.committed = 0
        self.failures: list[str] = []
        self.errors: list[Failure] = []
        #: (batch, root, code) of all committed batches.
        self.outcomes: list[tuple[int, int, int]] = []
        self.hosts: list[SimulatedHost] = []
        self.coordinator = self.make_coordinator()

    @classmethod
    def of(
        cls,
        topology: Topology,
        folder: Folder,
        conf: Mapping[str, Any] | None = None,
        *,
        partitions: int = 2,
        seed: int = 0,
        retries: float = 0.0,
    ) -> SimulatedSpark:
        """Compiles a topology and starts it.

        Args:
            topology: from `TopologyBuilder.create_topology`.
            folder: an empty directory for the checkpoint.
            conf: configuration over the defaults.
            partitions: how many partitions each exchange has.
            seed: decides on workers, orders and retries.
            retries: how likely a Spark task is tried again.

        Raises:
            InvalidTopologyError: the topology is invalid.
            ConfigError: a key or value of `conf` is invalid.
        """
        validate_conf(conf or {}, "the test")
        plan = place(compile_graph(topology, effective_conf(conf or {})), partitions)
        spec = make_spec(
            plan, "test", "test-1", f"simulated-{next(_runs)}", (), str(folder) if isinstance(folder, Path) else ""
        )
        spark = cls(spec, folder, Random(seed), retries=retries)
        spark.start()
        return spark

    def __enter__(self) -> SimulatedSpark:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the spouts, and ends child processes of components."""
        for host in self.hosts:
            host.stop()
        remove_run_folder(self.spec.start_id)

    def run_to_end(self, steps: int = 1000) -> None:
        """Runs micro-batches, one second of the topology's time apart, until no spout has anything left to emit.

        Raises:
            TopologyFailedError: a component failed for good.
            AssertionError: the topology has not ended after `steps` micro-batches.
        """
        for _ in range(steps):
            self.step()
            self.clock.advance(1)
            if self.failures:
                raise TopologyFailedError(self.spec.name, self.failures[0])
            if self.coordinator.completed.is_set():
                return
        raise AssertionError(f"the topology has not ended after {steps} micro-batches")

    def make_coordinator(self, durable: Durable | None = None) -> Coordinator:
        """Returns the coordinator of a new driver that is not started."""
        self.hosts.clear()

        def failed(failure: Failure) -> None:
            self.failures.append(failure.message)

        return _Coordinator(self.spec, self.folder, self.clock, True, failed, durable, self._make_host, self.live)

    def _make_host(self, *args: Any) -> Any:
        host = self.host_class(*args)
        if self.calls is not None:
            host.calls = self.calls
        self.hosts.append(host)
        return host

    # --- the driver ----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Starts the driver, the first time or after it was killed."""
        self.coordinator = self.make_coordinator()
        self.coordinator.start(self.offsets[-1], executed_ms=self.executed_ms())

    def executed_ms(self) -> int | None:
        """Returns up to where tuples were executed live after the last offset; see `Coordinator.launch`."""
        return None

    def step(self, killed_at: str | None = None) -> bool:
        """Plans and runs one micro-batch; returns whether there was anything to do.

        Args:
            killed_at: where the driver is killed: "planned", "executed", "delivered" or "committed".

        Raises:
            DriverKilled: it was.
        """
        if self.committed == len(self.offsets) - 1:
            start = self.offsets[-1]
            end = self.coordinator.poll(start)
            if end == start:
                return False
            # Spark's offset log is JSON.
            self.offsets.append(Offset.from_json(end.to_json()))
        self._killed(killed_at, "planned")
        batch = self.committed
        state = copy.deepcopy(self.state)
        start, end = self.offsets[batch : batch + 2]
        rows = execute_plan(
            self.spec.plan,
            batch,
            lambda partition: self.read(start, end, partition),
            lambda operator, chunks, info: self._call(operator, chunks, info, state),
            lambda rows: self.exchanged(batch, rows),
        )
        self._killed(killed_at, "executed")
        output = BatchOutput.of(body for _, body in rows)
        assert output.fatal is None, printable(output.fatal.trace or output.fatal.message)
        self.coordinator.deliver(batch, output.outcomes, output.carried)
        self._killed(killed_at, "delivered")
        self.state = state
        self.committed += 1
        for body in output.outcomes:
            roots, codes = chunk.read_outcome(chunk.read_header(body), body)
            self.outcomes += [(batch, *pair) for pair in zip(roots.tolist(), codes.tolist(), strict=True)]
        self.errors += [report for report in output.reports if isinstance(report, Failure)]
        self.coordinator.metrics.add_reports(output.reports)
        self._killed(killed_at, "committed")
        return True

    def _killed(self, killed_at: str | None, here: str) -> None:
        if killed_at == here:
            for host in self.hosts:
                # A host notices that the driver is gone when it next talks to it; until then it continues.
                if self.random.random() < 0.5:
                    for loop in host.loops.values():
                        host.work(loop, host.calls)
                host.die()
            raise DriverKilled(here)

    def exchanged(self, batch: int, rows: list[Row]) -> list[Row]:
        """Returns the output of an exchange: the same rows in any order."""
        self.random.shuffle(rows)
        return rows

    def attributes(self, task: int) -> dict[str, Any] | None:
        """Returns a task's committed attributes; None if there are none yet."""
        values = self.state.get(task, {})
        snapshot = values.get(("snapshot", 0))
        if snapshot is None:
            return None
        for number in range(StateVersions.load(values["version", 0]).newest.deltas):
            snapshot = applied(snapshot, values["entries", -1 - number])
        attributes: dict[str, Any] = read_snapshot(snapshot)
        return attributes

    def states(self, component: str) -> list[dict[str, Any]]:
        """Returns the committed attributes of all tasks of a bolt."""
        found = (self.attributes(task) for task in self.spec.plan.components[component].tasks)
        return [attributes for attributes in found if attributes is not None]

    # --- Spark's tasks -------------------------------------------------------------------------------------------

    def read(self, start: Offset, end: Offset, partition: int) -> list[Chunk]:
        """Returns the chunks of a micro-batch for the first operator."""
        return list(chunks_between(self.workers[0].wiring, self.folder, start, end, partition))

    def _call(self, operator: Operator, chunks: list[Chunk], info: BatchInfo, state: State) -> list[Row]:
        before = copy.deepcopy(state)

        def run(worker: Worker) -> list[Row]:
            after: State = {}

            def state_of(task: int) -> MemoryStore:
                assert operator.state, f"the state of task {task} was asked for where there is none"
                assert task not in after, f"the state of task {task} was asked for twice"
                return MemoryStore(after.setdefault(task, copy.deepcopy(before.get(task, {}))))

            found = self.executed(worker, operator, chunks, info, state_of)
            state.update(after)
            return found

        return self._attempt(run)

    def executed(
        self,
        worker: Worker,
        operator: Operator,
        chunks: list[Chunk],
        info: BatchInfo,
        state_of: Callable[[int], MemoryStore],
    ) -> list[Row]:
        """Returns the function that a Spark task executes in a worker."""
        return list(execute_operator(worker, operator, chunks, info, state_of))

    def _attempt(self, run: Any) -> list[Row]:
        """Runs a Spark task on a random worker, and sometimes a second time on another."""
        rows = list(run(self.random.choice(self.workers)))
        while self.random.random() < self.retries:
            if self.random.random() < 0.2:
                self.workers[self.random.randrange(len(self.workers))] = Worker(self.spec)
            again = list(run(self.random.choice(self.workers)))
            assert self.deterministic is False or normal(again) == normal(rows), "another attempt gave other chunks"
            rows = again
        return rows


class _Coordinator(Coordinator):
    pace = BatchPace(poll_secs=0.0, idle_poll_secs=0.0)


def normal(rows: list[Row]) -> list[Row]:
    """Rows without reports, because these contain times."""
    return sorted(row for row in rows if chunk.read_header(row[1]).kind != Kind.REPORT)
