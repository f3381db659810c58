"""Captures the events of a running topology: a bolt for tuples, a task hook for acks and fails."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from storm_on_spark.api.component import BaseBasicBolt
from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.streams.grouping import DirectGrouping, GlobalGrouping
from storm_on_spark.api.streams.stream import GlobalStreamId
from storm_on_spark.api.task.base_hook import BaseTaskHook
from storm_on_spark.api.task.hooks import EmitInfo, SpoutAckInfo, SpoutFailInfo
from storm_on_spark.api.topology import ComponentKind, ComponentSpec, Topology
from storm_on_spark.testing.records import CapturedOutcome, CapturedTuple
from storm_on_spark.testing.running.recording import MAX_BYTES, Recorder, read_records

if TYPE_CHECKING:
    from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
    from storm_on_spark.api.task.collector import BasicOutputCollector
    from storm_on_spark.api.task.context import TopologyContext
    from storm_on_spark.api.tuple import Tuple

CAPTURE_COMPONENT = "~capture"
"""Id of the bolt that `with_capture` adds: it sorts last, so that the others keep their task ids."""

CAPTURE_DIR = "testing.capture.dir"
"""Configuration key: the directory that `CaptureHook` writes to."""

_SUFFIX = ".records"
_TUPLE, _ACK, _FAIL = "tuple", "ack", "fail"


class CaptureBolt(BaseBasicBolt):
    """A bolt that records every tuple it executes, except ticks.

    If Spark retries a micro-batch, its tuples are written again, as any sink outside Spark would see it.

    Args:
        directory: the target; None for a temporary folder, which is removed with this object.
        pass_through: fields under which the values are emitted again; None to emit nothing.
        max_bytes: most bytes that one task writes; beyond it tuples fail with an error.

    Example:
        >>> from storm_on_spark.testing import make_tuple, run_bolt
        >>> capture = CaptureBolt()
        >>> _ = run_bolt(capture, [make_tuple(["storm"], component="words")])
        >>> capture.captured()
        [CapturedTuple(component='words', stream='default', task=1, values=('storm',))]
    """

    stateless = True

    def __init__(
        self,
        directory: str | os.PathLike[str] | None = None,
        pass_through: Fields | str | Iterable[str] | None = None,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        if directory is None:
            directory = tempfile.mkdtemp(prefix="storm-on-spark-capture-")
            weakref.finalize(self, _remove, directory, os.getpid())
        self.directory = Path(directory)
        self._pass_through = None if pass_through is None else Fields.of(pass_through)
        self._max_bytes = max_bytes

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Opens the task's file."""
        name = f"{context.this_component_id}-{context.this_task_id}{_SUFFIX}"
        self._recorder = Recorder(self.directory / name, self._max_bytes)

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Records the tuple, and passes it on if requested."""
        if tup.is_tick:
            return
        self._recorder.write((_TUPLE, tup.source_component, tup.source_stream, tup.source_task, tuple(tup)))
        if self._pass_through is not None:
            collector.emit(list(tup))

    def cleanup(self) -> None:
        """Closes the task's file."""
        self._recorder.close()

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares the default stream if tuples pass through."""
        if self._pass_through is not None:
            declarer.declare(self._pass_through)

    def captured(self) -> list[CapturedTuple]:
        """Returns everything that all tasks have written so far, each task's tuples in the order of execution."""
        return read_capture(self.directory).tuples


class CaptureHook(BaseTaskHook):
    """Records the acks and fails that reach a spout, and direct emits, which a capturing bolt can't receive.

    `topology.auto.task.hooks` adds it to every task; `testing.capture.dir` sets the target. Acks and fails of a
    `BatchSpout` are not recorded, since hooks are not told of batches.
    """

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Opens the task's file."""
        self._component = context.this_component_id
        self._task = context.this_task_id
        self._direct = {
            stream
            for stream, targets in context.this_targets().items()
            if any(isinstance(grouping, DirectGrouping) for grouping in targets.values())
        }
        name = f"hook-{self._component}-{self._task}{_SUFFIX}"
        self._recorder = Recorder(Path(conf[CAPTURE_DIR]) / name)

    def cleanup(self) -> None:
        """Closes the task's file."""
        self._recorder.close()

    def emit(self, info: EmitInfo) -> None:
        """Records a direct emit."""
        if info.stream in self._direct:
            self._recorder.write((_TUPLE, self._component, info.stream, self._task, tuple(info.values)))

    def spout_ack(self, info: SpoutAckInfo) -> None:
        """Records an ack."""
        self._recorder.write((_ACK, self._component, self._task, info.message_id, info.complete_latency_ms))

    def spout_fail(self, info: SpoutFailInfo) -> None:
        """Records a fail."""
        self._recorder.write((_FAIL, self._component, self._task, info.message_id, info.fail_latency_ms))


class Capture:
    """The contents of a capture directory."""

    def __init__(self) -> None:
        self.tuples: list[CapturedTuple] = []
        self.acks: list[CapturedOutcome] = []
        self.fails: list[CapturedOutcome] = []


def read_capture(directory: str | os.PathLike[str]) -> Capture:
    """Returns the records of `CaptureBolt` and `CaptureHook` in a directory, in the order of files."""
    capture = Capture()
    for path in sorted(Path(directory).glob(f"*{_SUFFIX}")):
        for kind, *rest in read_records(path):
            if kind == _TUPLE:
                capture.tuples.append(CapturedTuple(*rest))
            else:
                (capture.acks if kind == _ACK else capture.fails).append(CapturedOutcome(*rest))
    return capture


def with_capture(
    topology: Topology, directory: str | os.PathLike[str], components: Iterable[str] | None = None
) -> Topology:
    """Returns the topology with one more bolt, which captures everything that the components emit.

    The bolt subscribes to their streams by global grouping, as in Storm's `Testing.completeTopology`, and
    acks all that it gets, so trees end as they would without it. It can't receive direct streams; see `CaptureHook`.

    Args:
        topology: to be watched.
        directory: where to write.
        components: those to capture; None for all.

    Raises:
        InvalidTopologyError: the topology has no such component.
    """
    chosen = list(topology) if components is None else list(components)
    inputs = tuple(
        (GlobalStreamId(component, stream), GlobalGrouping())
        for component in chosen
        for stream, spec in topology[component].streams.items()
        if not spec.direct
    )
    if CAPTURE_COMPONENT in topology:
        raise InvalidTopologyError(f'a component is called "{CAPTURE_COMPONENT}" already; rename it')
    if not inputs:
        return topology
    bolt = ComponentSpec(CAPTURE_COMPONENT, ComponentKind.BASIC_BOLT, CaptureBolt(directory), 1, None, {}, {}, inputs)
    return replace(topology, components={**topology.components, CAPTURE_COMPONENT: bolt})


def _remove(directory: str, owner: int) -> None:
    # A fork of the test's process has this object too, and must not remove the folder.
    if os.getpid() == owner:
        shutil.rmtree(directory, ignore_errors=True)
