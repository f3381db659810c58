"""Runs a whole topology in a test, on real Spark, and records all that happens.

Storm's counterpart is `Testing.completeTopology` (`org.apache.storm.Testing`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from storm_on_spark.api.config import Config
from storm_on_spark.api.errors import InvalidTopologyError, TopologyFailedError
from storm_on_spark.api.info import ErrorInfo, TopologyInfo
from storm_on_spark.api.streams.stream import DEFAULT_STREAM
from storm_on_spark.api.text.printable import printable
from storm_on_spark.api.topology import ComponentKind, Topology
from storm_on_spark.testing.records import CapturedOutcome, CapturedTuple
from storm_on_spark.testing.running.capture import (
    CAPTURE_COMPONENT,
    CAPTURE_DIR,
    CaptureHook,
    read_capture,
    with_capture,
)
from storm_on_spark.testing.running.scratch import scratch_folder
from storm_on_spark.testing.running.sources import ListSpout, open_gate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storm_on_spark.runtime.batches.clock import Clock
    from storm_on_spark.spark.running.topology import TopologyQuery

_POLL_SECONDS = 0.05
_PREFIX = "storm-on-spark-test-"
_HOOK = f"{CaptureHook.__module__}.{CaptureHook.__qualname__}"


@dataclass(frozen=True)
class Captured:
    """The events of a topology.

    The acks and fails of a `BatchSpout` are not here, as hooks are not told of them: `info` counts them, and the spout
    can record them itself.

    Example:
        >>> captured = Captured(TopologyInfo("test", "COMPLETED", 1.0),
        ...                     (CapturedTuple("split", "default", 2, ("storm",)),), (), ())
        >>> captured.values("split")
        [('storm',)]
    """

    info: TopologyInfo
    """Status and counters."""
    tuples: tuple[CapturedTuple, ...]
    """All emitted tuples, in emit order for each task and stream."""
    acks: tuple[CapturedOutcome, ...]
    """The acks that reached spouts, each task's in order; none of a `BatchSpout`."""
    fails: tuple[CapturedOutcome, ...]
    """The fails that reached spouts, each task's in order; none of a `BatchSpout`."""

    def values(self, component: str, stream: str = DEFAULT_STREAM) -> list[tuple[Any, ...]]:
        """Returns the values that a component emitted on a stream."""
        return [tup.values for tup in self.tuples if tup.component == component and tup.stream == stream]

    def acked(self, spout: str | None = None) -> list[Any]:
        """Returns the message ids that were acked, of one spout or of all."""
        return [ack.message_id for ack in self.acks if spout in (None, ack.component)]

    def failed(self, spout: str | None = None) -> list[Any]:
        """Returns the message ids that failed, of one spout or of all; one that failed twice appears twice."""
        return [fail.message_id for fail in self.fails if spout in (None, fail.component)]

    @property
    def errors(self) -> list[ErrorInfo]:
        """The last errors of each component."""
        return [error for component in self.info.components.values() for error in component.errors]


@dataclass
class RunningTopology:
    """A topology under test while it runs; see `running_topology`."""

    query: TopologyQuery
    directory: Path
    """Scratch folder of the run: captures, crash markers and, unless configured otherwise, the checkpoint."""
    checkpoint: Path

    def captured(self) -> Captured:
        """Returns the events so far."""
        found = read_capture(self.directory)
        info = self.query.status_info()
        visible = {name: part for name, part in info.components.items() if name != CAPTURE_COMPONENT}
        return Captured(
            dataclasses.replace(info, components=visible),
            tuple(found.tuples),
            tuple(found.acks),
            tuple(found.fails),
        )

    def open_gate(self, name: str) -> None:
        """Opens a `GATE` for the spouts."""
        open_gate(self.directory, name)

    def wait_until(self, condition: Callable[[Captured], bool], timeout: float = 240) -> Captured:
        """Waits until `condition` holds for the captured events.

        Raises:
            TimeoutError: it did not hold in time, or the topology ended before.
            TopologyFailedError: the topology failed before.
        """
        deadline = time.monotonic() + timeout
        while True:
            began = time.monotonic()
            # Checked first: events before the end are in the captures that are read afterwards.
            active = self.query.isActive
            captured = self.captured()
            if condition(captured):
                return captured
            if self.query.failure is not None:
                raise self.query.failure
            if not active or time.monotonic() > deadline:
                why = f"not within {timeout} s" if active else "not before the topology ended"
                raise TimeoutError(f"the condition came true {why}: {_summary(captured)}")
            # To read many events takes a while, in which those who emit them lack a processor.
            time.sleep(max(_POLL_SECONDS, min(time.monotonic() - began, 1.0)))

    def await_completion(self, timeout: float = 240) -> Captured:
        """Waits until all spouts are exhausted and nothing is pending.

        Raises:
            TimeoutError: it did not happen in time; the topology is stopped.
            TopologyFailedError: the topology failed.
        """
        if not self.query.awaitTermination(timeout):
            captured = self.captured()
            self.query.stop()
            raise TimeoutError(f"the topology did not complete within {timeout} s: {_summary(captured)}")
        return self.captured()


@contextlib.contextmanager
def running_topology(
    topology: Topology,
    inputs: Mapping[str, Iterable[Any]] | None = None,
    conf: Mapping[str, Any] | None = None,
    clock: Clock | None = None,
    spark: SparkSession | None = None,
    *,
    name: str = "test",
    capture: Iterable[str] | None = None,
    directory: str | Path | None = None,
) -> Iterator[RunningTopology]:
    """Runs a topology on Spark for as long as the context lasts.

    For tests that do something meanwhile: move a clock, inject a fault, deactivate.

    Args:
        topology: what to run.
        inputs: items by spout id; a `ListSpout` of them, with the spout's streams, replaces the spout.
        conf: the topology's configuration. With `Config.TOPOLOGY_CHECKPOINT_DIR` the state outlives the run.
        clock: where the topology's time comes from, such as a `ManualClock`.
        spark: the session to run on; for None one is reused, or started and stopped.
        name: the topology's name.
        capture: the components whose tuples are captured; all for None. Acks and fails always are, except those of a
            `BatchSpout`.
        directory: for captures that must outlive the context, or continue earlier ones.

    Raises:
        InvalidTopologyError, ConfigError, CheckpointError, ComponentError: the topology can't be started.
    """
    from storm_on_spark.spark.local_cluster import LocalCluster

    with contextlib.ExitStack() as stack:
        if directory is None:
            directory = stack.enter_context(scratch_folder(_PREFIX))
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        given = dict(conf or {})
        checkpoint = Path(given.setdefault(Config.TOPOLOGY_CHECKPOINT_DIR, str(folder / "checkpoint")))
        hooks = given.get(Config.TOPOLOGY_AUTO_TASK_HOOKS) or ()
        given[Config.TOPOLOGY_AUTO_TASK_HOOKS] = [*hooks, _HOOK]
        given[CAPTURE_DIR] = str(folder)
        watched = with_capture(_with_inputs(topology, inputs or {}, folder), folder, capture)
        cluster = stack.enter_context(LocalCluster(spark, clock=clock))
        query = cluster.submit_topology(name, given, watched)
        yield RunningTopology(query, folder, checkpoint)


def run_topology(
    topology: Topology,
    inputs: Mapping[str, Iterable[Any]] | None = None,
    conf: Mapping[str, Any] | None = None,
    clock: Clock | None = None,
    timeout: float = 240,
    spark: SparkSession | None = None,
    *,
    capture: Iterable[str] | None = None,
    restarts: int = 0,
) -> Captured:
    """Runs a finite topology to its end on real Spark and returns all that happened.

    Args:
        topology: to be run; the spouts that `inputs` does not replace must become exhausted.
        inputs: items by spout id; a `ListSpout` of them, with the spout's streams, replaces the spout.
        conf: the topology's configuration.
        clock: where the topology's time comes from, such as a `ManualClock`.
        timeout: the longest wait in seconds, of each start.
        spark: the session to run on; for None one is reused, or started and stopped.
        capture: the components whose tuples are captured; all for None. Acks and fails always are, except those of a
            `BatchSpout`.
        restarts: how often a topology that failed is started again from its checkpoint.

    Raises:
        TimeoutError: it did not end in time.
        TopologyFailedError: it failed more often than `restarts` says.
        InvalidTopologyError, ConfigError, CheckpointError, ComponentError: it can't be started.

    Example:
        >>> from storm_on_spark import TopologyBuilder
        >>> builder = TopologyBuilder()
        >>> words = builder.set_spout("words", ListSpout(["storm", "spark"], fields=["word"]))
        >>> captured = run_topology(builder.create_topology())                       # doctest: +SKIP
        >>> captured.values("words"), sorted(captured.acked())                       # doctest: +SKIP
        ([('storm',), ('spark',)], [0, 1])
    """
    with scratch_folder(_PREFIX) as directory:
        listed = None if capture is None else list(capture)
        given = {spout: list(items) for spout, items in (inputs or {}).items()}
        while True:
            try:
                with running_topology(
                    topology, given, conf, clock, spark, capture=listed, directory=directory
                ) as running:
                    return running.await_completion(timeout)
            except TopologyFailedError:
                if restarts == 0:
                    raise
                restarts -= 1


def _with_inputs(topology: Topology, inputs: Mapping[str, Iterable[Any]], markers: Path) -> Topology:
    components = dict(topology.components)
    for spout, items in inputs.items():
        spec = topology[spout]
        if not spec.is_spout:
            raise InvalidTopologyError(
                f'inputs are for spouts, but "{spout}" is a bolt; spouts: {sorted(topology.spouts)}',
                component=spout,
            )
        replacement = ListSpout(items, streams=spec.streams, markers=markers)
        components[spout] = dataclasses.replace(spec, kind=ComponentKind.SPOUT, component=replacement)
    for name, spec in components.items():
        spout_object = spec.component
        if isinstance(spout_object, ListSpout) and spout_object.markers is None:
            spout_object.markers = markers
            components[name] = spec
    return dataclasses.replace(topology, components=components)


def _summary(captured: Captured) -> str:
    info = captured.info
    counts = ", ".join(f"{name} executed {part.executed}" for name, part in info.components.items())
    errors = "".join(f"; {error.component}: {printable(error.message)}" for error in captured.errors[-3:])
    return (
        f"{info.status}, emitted {info.emitted}, acked {info.acked}, failed {info.failed}, "
        f"pending {info.pending}; {counts}{errors}"
    )
