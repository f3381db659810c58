"""What the tests of the runtime share: a compiled topology, its workers, and inputs made by hand."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from storm_on_spark.api import BaseBasicBolt, BaseRichSpout, Fields, TopologyBuilder
from storm_on_spark.api.config import effective_conf
from storm_on_spark.api.task.context import TopologyContext
from storm_on_spark.api.tuple import Delivery, KnownLineage
from storm_on_spark.plan.compile import compile_graph, place
from storm_on_spark.runtime.bolts.bolt_task import BoltTask
from storm_on_spark.runtime.bolts.inputs import Input
from storm_on_spark.runtime.bolts.worker import Worker
from storm_on_spark.runtime.codec import chunk
from storm_on_spark.runtime.emit.output import Sealed
from storm_on_spark.runtime.run.spec import make_spec
from storm_on_spark.runtime.spouts.opening import open_spout_task
from storm_on_spark.runtime.spouts.spout_task import SpoutTask
from storm_on_spark.runtime.spouts.task_loop import TaskLoop
from storm_on_spark.runtime.tracking.ids import EdgeIds
from storm_on_spark.testing.simulated import SimulatedHost

_starts = itertools.count()


def make_worker(builder: TopologyBuilder, conf: Mapping[str, Any] | None = None, partitions: int = 2) -> Worker:
    """A fresh Python worker of a topology."""
    plan = place(compile_graph(builder.create_topology(), effective_conf(conf or {})), partitions)
    return Worker(make_spec(plan, "test", "test-1", f"start-{next(_starts)}", ()))


def tuples_chunk(*args: Any, **head: Any) -> bytes:
    """The bytes of a TUPLES chunk; arguments are those of `encode_tuples`."""
    (_, body), _ = chunk.encode_tuples(*args, **head)
    return body


class FakeHost(SimulatedHost):
    """Spout hosts of a test, in the order in which they were made."""

    made: ClassVar[list[FakeHost]] = []

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        FakeHost.made.append(self)


class Source(BaseRichSpout):
    """Declares streams and emits nothing: tests make the tuples themselves."""

    def __init__(self, **streams: Sequence[str]) -> None:
        self.streams = streams

    def next_tuple(self) -> None:
        """Emits nothing."""

    def declare_output_fields(self, declarer) -> None:
        for stream, fields in (self.streams or {"default": ["value"]}).items():
            declarer.declare_stream(stream, Fields(*fields))


class ExecutorHost:
    """What an executor needs of its spout host; keeps what is sent."""

    def __init__(self, make: Callable[[int], TaskLoop]) -> None:
        self.make, self.sent = make, []

    def open(self, task: int) -> TaskLoop:
        return self.make(task)

    def send(self, message: Any) -> None:
        self.sent.append(message)

    def component_of(self, task: int) -> str:
        return "spout"


class Nothing(BaseBasicBolt):
    """Takes tuples and forgets them."""

    def execute(self, tup, collector) -> None:
        """Does nothing."""


def solo(
    bolt: Any,
    fields: Sequence[str] = ("value",),
    *,
    readers: int = 1,
    conf: Mapping[str, Any] | None = None,
    stateless: bool = False,
    by: str | None = None,
) -> BoltTask:
    """A prepared task of a bolt that reads one stream, with `readers` tasks that read all its streams.

    By shuffle, or by the field `by`.
    """
    builder = TopologyBuilder()
    builder.set_spout("source", Source(default=fields))
    builder.set_bolt("bolt", bolt).global_grouping("source")
    topology = builder.create_topology()
    reader = builder.set_bolt("reader", Nothing(), readers)
    for stream, spec in topology["bolt"].streams.items():
        if by is not None and not spec.direct:
            reader.fields_grouping("bolt", Fields(by), stream)
        else:
            (reader.direct_grouping if spec.direct else reader.shuffle_grouping)("bolt", stream=stream)
    if not topology["bolt"].streams:
        reader.global_grouping("source")
    worker = make_worker(builder, conf)
    task = worker.wiring.plan.components["bolt"].tasks[0]
    conf = worker.wiring.conf("bolt")
    return BoltTask(
        worker.wiring,
        worker.spec.instance("bolt"),
        worker.context(task),
        stateless=stateless,
        fail_fast=bool(conf.get("topology.fail.fast")),
    )


def rows(
    values: Sequence[Sequence[Any]],
    roots: Any = None,
    edges: Any = None,
    fields: Sequence[str] = ("value",),
    told: bool = True,
) -> Input:
    """Tuples that came together from `source`, by default anchored to nothing; of the edges the ackers were `told`."""
    if roots is not None and not isinstance(roots, list):
        roots = np.array(roots, np.uint64)
    if edges is not None:
        edges = np.array(edges, np.uint64)
    lineage = None if roots is None else KnownLineage(roots, edges, told)
    delivery = Delivery("source", "default", 99, Fields(*fields), lineage)
    return Input(delivery, [tuple(v) for v in values], len(values))


def batch_input(batch: pa.RecordBatch, roots: Any = None, edges: Any = None) -> Input:
    """A record batch from `source`."""
    return rows([()] * batch.num_rows, roots, edges, batch.schema.names)._replace(rows=batch)


def anchored(values: Sequence[Any], first_root: int = 1) -> Input:
    """One-value tuples, each with a root and an edge of its own."""
    count = len(values)
    roots = np.arange(first_root, first_root + count, dtype=np.uint64)
    return rows([(v,) for v in values], roots, EdgeIds("input", first_root).take(count).ids())


def ids(*seed: Any) -> EdgeIds:
    """Where an execution's edge ids come from."""
    return EdgeIds("test", *seed)


def emitted(sealed: Sequence[Sealed]) -> list[tuple[Any, ...]]:
    """The values in boxes, in the order of boxes."""
    found: list[tuple[Any, ...]] = []
    for part in sealed:
        if isinstance(part.values, pa.RecordBatch):
            found += [tuple(row.values()) for row in part.values.to_pylist()]
        else:
            found += part.values
    return found


def context_of(worker: Worker, task: int) -> TopologyContext:
    """A task's context."""
    return worker.context(task)


class Spouts:
    """One spout task that is opened, cut and killed in this process.

    Args:
        spout: the spout; its streams are read by two tasks.
        folder: where its log is.
        conf: configuration over the defaults.
        segment_bytes: size of the log's segments; for None the default.
    """

    def __init__(
        self,
        spout: BaseRichSpout,
        folder: Path,
        conf: Mapping[str, Any] | None = None,
        segment_bytes: int | None = None,
        readers: int = 1,
        partitions: int = 2,
    ) -> None:
        if segment_bytes is not None:
            conf = {**(conf or {}), "topology.spout.log.max.bytes": 4 * segment_bytes}
        builder = TopologyBuilder()
        builder.set_spout("spout", spout)
        for reader in range(readers):
            builder.set_bolt(f"reader{reader}", Nothing(), 2).shuffle_grouping("spout")
        self.worker = make_worker(builder, conf, partitions)
        self.task_id = self.worker.wiring.plan.components["spout"].tasks[0]
        self.folder = folder
        self.clock_ms = 0
        self.now = 0.0
        self._task: SpoutTask | None = None

    def open(self) -> SpoutTask:
        """Opens the task as a host does that was just started; the one before was killed, if it was not closed."""
        if self._task is not None:
            self._task.log.close()
        self._task = open_spout_task(
            self.worker.spec,
            self.worker.wiring,
            self.worker.context(self.task_id),
            self.folder,
            lambda: self.clock_ms,
            lambda: self.now,
        )
        return self._task
