"""Executing stages: what is executed in which order, what passes through, and what becomes of errors."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import permutations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stormtest import Source, make_worker, tuples_chunk

from storm_on_spark.api import BaseBasicBolt, BaseRichBolt, BatchBolt, Fields, TopologyBuilder
from storm_on_spark.plan.model import Operator, Stage
from storm_on_spark.runtime.bolts.operator import execute_operator
from storm_on_spark.runtime.bolts.stage import BatchInfo, Row, _among
from storm_on_spark.runtime.bolts.worker import Worker
from storm_on_spark.runtime.codec import chunk
from storm_on_spark.runtime.codec.chunk import Kind
from storm_on_spark.runtime.reports.report import Failure, TaskMetrics
from storm_on_spark.runtime.state.keyvalue.store import MemoryStore
from storm_on_spark.runtime.tracking.acker import ACKED, INIT
from storm_on_spark.runtime.tracking.fold import split_by_acker
from storm_on_spark.runtime.tracking.lineage import marked


class Pass(BaseBasicBolt):
    """Emits what it gets; has state, so it is a separate stage."""

    def prepare(self, conf, context):
        self.seen = []

    def execute(self, tup, collector):
        self.seen.append(tup.source_task)
        collector.emit([tup[0]])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("value"))


class Bench:
    """A source, a bolt and a reader behind it."""

    def __init__(self, bolt: Any, *, tasks: int = 1, conf: dict[str, Any] | None = None, partitions: int = 2) -> None:
        builder = TopologyBuilder()
        builder.set_spout("source", Source(default=["value"]))
        declared = builder.set_bolt("bolt", bolt, tasks).fields_grouping("source", "value")
        declared.add_configurations(conf or {})
        builder.set_bolt("reader", Reader(), 2).fields_grouping("bolt", "value")
        self.worker = make_worker(builder, {}, partitions)
        self.plan = self.worker.spec.plan
        self.wiring = self.worker.wiring
        self.stage = self.plan.stages[self.plan.components["bolt"].stage]
        self.task = self.plan.components["bolt"].tasks[0]
        #: The key of rows that are for the sink.
        self.sink = self.plan.keys[self.plan.acker_tasks[0]]

    def body(self, values: list[Any], *, source: int = 1, sequence: int = 0, target: int | None = None) -> bytes:
        roots = np.arange(100, 100 + len(values), dtype=np.uint64)
        stream = self.wiring.stream("source", "default")
        assert stream is not None
        head = {"target": target or self.task, "source": source, "sequence": sequence, "stream": stream.number}
        return tuples_chunk([(v,) for v in values], roots, roots, **head)

    def run(self, *bodies: bytes, batch: int = 0, state: dict[str, Any] | None = None) -> list[Row]:
        return executed(self.worker, self.stage, bodies, {} if state is None else state, batch)


def executed(worker: Worker, stage: Stage, bodies: Sequence[bytes], state: dict[str, Any], batch: int = 0) -> list[Row]:
    """The rows that leave an operator of one stage, of which one task has that state."""
    operator = Operator((stage,), exchange=True)
    chunks = map(chunk.with_header, bodies)
    return list(execute_operator(worker, operator, chunks, BatchInfo(batch, 0), lambda task: MemoryStore(state)))


class Reader(BaseBasicBolt):
    def prepare(self, conf, context):
        self.total = 0

    def execute(self, tup, collector):
        self.total += 1


def values(rows: list[Row]) -> list[Any]:
    found: list[Any] = []
    for _, body in rows:
        header = chunk.read_header(body)
        if header.kind == Kind.TUPLES:
            found += chunk.read_rows(header, chunk.read_lineage(header, body)[1])
        elif header.kind == Kind.ARROW:
            batch = chunk.read_batch(chunk.read_lineage(header, body)[1])
            found += [tuple(row.values()) for row in batch.to_pylist()]
    return [value for (value,) in found]


def reports(rows: list[Row]) -> list[Any]:
    return [r for _, body in rows if chunk.read_header(body).kind == Kind.REPORT for r in chunk.read_report(body)]


def kinds(rows: list[Row]) -> list[int]:
    return [chunk.read_header(body).kind for _, body in rows]


# --- order and pass-through -----------------------------------------------------------------------------------


def test_tuples_of_a_task_are_executed_in_emit_order_however_chunks_arrive() -> None:
    bench = Bench(Pass())
    parts = [
        bench.body(["a"], source=1, sequence=0),
        bench.body(["b", "c"], source=1, sequence=7),
        bench.body(["d"], source=2, sequence=3),
        bench.body(["e"], source=2, sequence=1 << 40),
    ]
    outputs = {str(sorted(bench.run(*order)[:-1])) for order in permutations(parts)}
    assert len(outputs) == 1
    assert sorted(values(bench.run(*parts))) == list("abcde")
    bench.run(*reversed(parts))
    assert bench.worker.tasks[bench.task].bolt.instance.seen == [1, 1, 1, 2, 2]


def test_what_is_meant_for_others_passes_untouched() -> None:
    bench = Bench(Pass())
    reader = bench.plan.components["reader"].tasks[1]
    acker = bench.plan.acker_tasks[0]
    carried = tuples_chunk([(1,)], None, None, target=bench.task, source=1, sequence=0, stream=1, flags=chunk.CARRIED)
    roots = np.array([5], np.uint64)
    others = [
        (bench.plan.keys[reader], bench.body(["x"], target=reader)),
        (bench.plan.keys[acker], chunk.encode_acks(roots, roots, np.array([1], np.uint8), target=acker, source=1)),
        (bench.plan.keys[acker], chunk.encode_clock(5, False, target=acker)),
        (bench.sink, chunk.encode_report(["r"], source=0)),
        (bench.sink, carried),
    ]
    assert bench.run(*(body for _, body in others)) == others


def test_ticks_come_last_and_in_the_form_that_the_bolt_takes() -> None:
    class Ticked(BaseRichBolt):
        def prepare(self, conf, context, collector):
            self.seen = []

        def execute(self, tup):
            self.seen.append((tup.is_tick, tup.source_component, tup[0]))

        def declare_output_fields(self, declarer):
            declarer.declare(Fields("value"))

    class TickedBatch(BatchBolt):
        def prepare(self, conf, context, collector):
            self.seen = []

        def execute_batch(self, batch, collector):
            self.seen.append(batch.to_pylist())

        def declare_output_fields(self, declarer):
            declarer.declare(Fields("value"))

    conf = {"topology.tick.tuple.freq.secs": 3}
    expected = {
        Ticked: [(False, "source", "a"), (True, "__system", 3), (True, "__system", 3)],
        TickedBatch: [[{"value": "a"}], [{"rate_secs": 3}], [{"rate_secs": 3}]],
    }
    for bolt, seen in expected.items():
        bench = Bench(bolt(), conf=conf)
        state: dict[str, Any] = {}
        bench.run(chunk.encode_clock(9, True, target=bench.task), bench.body(["a"]), state=state)
        bench.run(chunk.encode_clock(9, True, target=bench.task), state=state)
        assert bench.run(chunk.encode_clock(9, False, target=bench.task), state=state) == []
        assert bench.worker.tasks[bench.task].bolt.instance.seen == seen


def test_a_turn_brings_no_tuple_and_can_come_with_a_tick() -> None:
    class Turned(BaseRichBolt):
        turn_secs = 1

        def prepare(self, conf, context, collector):
            self.seen, self.turns = [], 0

        def execute(self, tup):
            self.seen.append(tup[0])

        def finish_micro_batch(self):
            self.turns += 1

        def declare_output_fields(self, declarer):
            declarer.declare(Fields("value"))

    bench = Bench(Turned(), conf={"topology.tick.tuple.freq.secs": 3})
    assert bench.wiring.turn_periods == {bench.task: 1000}
    state: dict[str, Any] = {}
    for due, seen, turns in [(chunk.TURN, [], 1), (chunk.TURN | chunk.TICK, [3], 2), (0, [3], 2)]:
        bench.run(chunk.encode_clock(9, due, target=bench.task), state=state)
        bolt = bench.worker.tasks[bench.task].bolt.instance
        assert (bolt.seen, bolt.turns) == (seen, turns)


# --- tuples and batches -----------------------------------------------------------------------------------------


class Columns(BatchBolt):
    stateless = True

    def prepare(self, conf, context, collector):
        pass

    def execute_batch(self, batch, collector):
        assert isinstance(batch, pa.RecordBatch)
        collector.emit(batch)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("value"))


def test_tuples_become_batches_and_batches_tuples() -> None:
    bench = Bench(Columns())
    rows = bench.run(bench.body([1, None, 3]), bench.body([4], sequence=1))
    assert sorted(values(rows), key=str) == [1, 3, 4, None]
    # ... and the reader, which takes tuples, takes what the batch bolt emitted.
    reader = bench.plan.stages[bench.plan.components["reader"].stage]
    for key, body in rows:
        header = chunk.read_header(body)
        if header.kind == Kind.ARROW:
            out = executed(bench.worker, reader, [body], {})
            (metrics,) = reports(out)
            assert metrics.executed == metrics.acked == header.size
            assert key == bench.plan.keys[header.target]


def test_tuples_that_do_not_fit_in_columns_end_the_topology_with_a_sentence() -> None:
    bench = Bench(Columns())
    (failure,) = reports(bench.run(bench.body([1, "a", object])))
    assert isinstance(failure, Failure)
    assert failure.fatal
    assert 'the tuples of stream "default" from "source" don\'t fit in Arrow columns' in failure.message


# --- errors -----------------------------------------------------------------------------------------------------


class Raises(Pass):
    def execute(self, tup, collector):
        super().execute(tup, collector)
        if tup[0] == "bad":
            raise ValueError("no")


def test_poison_is_reported_and_the_rest_goes_on() -> None:
    bench = Bench(Raises())
    rows = bench.run(bench.body(["a", "bad", "b"]))
    assert sorted(values(rows)) == ["a", "b"]
    metrics, failure = reports(rows)
    assert isinstance(metrics, TaskMetrics)
    assert (metrics.executed, metrics.acked, metrics.failed, metrics.emitted) == (3, 2, 1, 2)
    assert (failure.component, failure.task, failure.fatal) == ("bolt", bench.task, False)
    assert 'component "bolt"' in failure.message
    assert "ValueError: no" in failure.trace


def test_errors_without_end_are_reported_as_a_number() -> None:
    class Each(Raises):
        def execute(self, tup, collector):
            raise ValueError(tup[0])

    bench = Bench(Each())
    metrics, *failures = reports(bench.run(bench.body(list(range(350)))))
    assert metrics.failed == 350
    assert len(failures) == 101
    assert failures[0].trace
    assert failures[-1].message == f'"bolt" (task {bench.task}) had 250 more errors in this micro-batch'
    assert not any(failure.fatal for failure in failures)


def test_equal_errors_are_reported_as_one() -> None:
    bench = Bench(Raises())
    metrics, failure = reports(bench.run(bench.body(["bad"] * 350)))
    assert metrics.failed == failure.times == 350
    assert "ValueError: no" in failure.trace
    assert failure.input == "('bad',)"


def test_fail_fast_ends_the_topology_and_keeps_nothing() -> None:
    bench = Bench(Raises(), conf={"topology.fail.fast": True})
    state: dict[str, Any] = {}
    (failure,) = reports(bench.run(bench.body(["a", "bad"]), state=state))
    assert failure.fatal
    assert state == {}
    assert bench.task not in bench.worker.tasks


def test_a_value_that_can_not_be_pickled_is_named() -> None:
    class Odd:
        def __reduce__(self):
            raise ZeroDivisionError("odd")

    class Emits(Pass):
        def execute(self, tup, collector):
            collector.emit([tup[0]])
            collector.emit([threading.Lock() if tup[0] == 1 else Odd()])

    for value in (1, 2):
        builder = TopologyBuilder()
        builder.set_spout("source", Source(default=["value"]))
        builder.set_bolt("bolt", Emits()).fields_grouping("source", "value")
        builder.set_bolt("reader", Reader()).global_grouping("bolt")
        bench = Bench(Pass())
        bench.worker = make_worker(builder)
        (failure,) = reports(bench.run(bench.body([value])))
        assert failure.fatal
        assert 'emitted a value for field "value" of stream "default" that can\'t be pickled' in failure.message


def test_an_instance_that_raised_is_not_used_again() -> None:
    class Breaks(BaseBasicBolt):
        stateless = True

        def execute(self, tup, collector):
            collector.emit([tup[0]])
            if tup[0] == "interrupt":
                raise KeyboardInterrupt

        def declare_output_fields(self, declarer):
            declarer.declare(Fields("value"))

    bench = Bench(Breaks())
    assert values(bench.run(bench.body(["a"]))) == ["a"]
    with pytest.raises(KeyboardInterrupt):
        bench.run(bench.body(["b", "interrupt"]))
    assert values(bench.run(bench.body(["c"]))) == ["c"], "nothing is left of the attempt that was broken off"


# --- tasks that share a partition --------------------------------------------------------------------------------


def test_what_is_fused_with_several_tasks_of_a_partition_has_ids_and_order_of_its_own_for_each() -> None:
    class Fused(BaseBasicBolt):
        def execute(self, tup, collector):
            collector.emit([tup[0]])

        def declare_output_fields(self, declarer):
            declarer.declare(Fields("value"))

    builder = TopologyBuilder()
    builder.set_spout("source", Source(default=["value"]))
    builder.set_bolt("bolt", Pass(), 3).fields_grouping("source", "value")
    builder.set_bolt("fused", Fused()).shuffle_grouping("bolt")
    builder.set_bolt("reader", Reader()).global_grouping("fused")
    bench = Bench(Pass())
    bench.worker = make_worker(builder, {}, 1)
    plan = bench.worker.spec.plan
    assert plan.components["fused"].stage == plan.components["bolt"].stage
    bench.stage = plan.stages[plan.components["bolt"].stage]
    edges: list[int] = []
    places = set()
    for task in plan.components["bolt"].tasks:
        for _, body in bench.run(bench.body([1, 2, 3], target=task)):
            header = chunk.read_header(body)
            if header.kind == Kind.TUPLES:
                edges += chunk.read_lineage(header, body)[0].edges.tolist()
                places.add((header.source, header.sequence))
    assert len(set(edges)) == 9
    assert len(places) == 3


# --- the acker stage ---------------------------------------------------------------------------------------------


def acks(entries: list[tuple[int, int, int]], task: int, clock: int = 0) -> bytes:
    columns = zip(*entries, strict=True)
    roots, xors, marks = (np.array(c, kind) for c, kind in zip(columns, ("u8", "u8", "u1"), strict=True))
    return chunk.encode_acks(roots, xors, marks, target=task, source=1, clock=clock)


def ackers(worker: Worker, state: dict[str, Any], *bodies: bytes) -> list[Row]:
    return executed(worker, worker.spec.plan.stages[-1], bodies, state)


def test_the_acker_keeps_only_what_is_pending_and_hands_on_what_is_for_the_sink() -> None:
    bench = Bench(Pass())
    (task,) = bench.plan.acker_tasks
    state: dict[str, Any] = {}
    report = chunk.encode_report(["r"], source=1)
    rows = ackers(
        bench.worker, state, report, acks([(1, 5, INIT), (2, 6, INIT)], task), acks([(1, 5, 0)], task),
        chunk.encode_clock(10, False, target=task),
    )  # fmt: skip
    assert [key for key, _ in rows] == [bench.sink] * 3
    assert rows[0][1] == report
    (counted,) = chunk.read_report(rows[2][1])
    assert (counted.component, counted.executed, counted.emitted) == ("__acker", 3, 1)
    header = chunk.read_header(rows[1][1])
    assert (header.kind, header.source) == (Kind.OUTCOME, task)
    assert [part.tolist() for part in chunk.read_outcome(header, rows[1][1])] == [[1], [ACKED]]
    assert list(state) == [("pending", 0)]
    rows = ackers(bench.worker, state, acks([(2, 6, 0)], task), chunk.encode_clock(20, False, target=task))
    assert len(rows) == 2
    assert state == {}, "empty after a drain"
    assert ackers(bench.worker, state, chunk.encode_clock(30, False, target=task)) == []
    assert ackers(bench.worker, state, report) == [(bench.sink, report)]


def test_acks_without_a_clock_are_not_dropped_in_silence() -> None:
    bench = Bench(Pass())
    (task,) = bench.plan.acker_tasks
    with pytest.raises(AssertionError, match="got no clock"):
        ackers(bench.worker, {}, acks([(1, 5, INIT)], task))


def test_roots_spread_evenly_over_ackers_and_always_to_the_same() -> None:
    roots = np.arange((7 << 44) + 1, (7 << 44) + 3001, dtype=np.uint64)
    parts = dict(split_by_acker((11, 12, 13), marked(roots, 0, xors=roots)))
    assert {task: len(part[0]) for task, part in parts.items()} == {11: 1000, 12: 1000, 13: 1000}
    assert sorted(r for part in parts.values() for r in part[0].tolist()) == roots.tolist()
    for task, part in parts.items():
        again = dict(split_by_acker((11, 12, 13), part))
        assert {other: len(share.roots) for other, share in again.items()} == {11: 0, 12: 0, 13: 0, task: 1000}
    assert [len(part.roots) for _, part in split_by_acker((11,), marked(roots[:0], 0))] == [0]


@given(st.sets(st.integers(0, 2**64 - 1)), st.lists(st.integers(0, 2**64 - 1), max_size=5))
def test_which_rows_are_acked(acked: set[int], others: list[int]) -> None:
    roots = [*sorted(acked)[::2], *others]
    found = _among(np.array(roots, np.uint64), np.array(sorted(acked), np.uint64))
    assert found.tolist() == [root in acked for root in roots]
