"""Several stages in one operator: what they make of a micro-batch is what they make of it one by one."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from stormtest import Source, make_worker, tuples_chunk

from storm_on_spark.api import BaseBasicBolt, Fields, TopologyBuilder
from storm_on_spark.runtime.bolts.operator import execute_operator
from storm_on_spark.runtime.bolts.stage import BatchInfo, Row
from storm_on_spark.runtime.bolts.worker import Worker
from storm_on_spark.runtime.codec import chunk
from storm_on_spark.runtime.codec.chunk import Kind
from storm_on_spark.runtime.reports.report import Failure, TaskMetrics
from storm_on_spark.runtime.state.keyvalue.store import MemoryStore
from storm_on_spark.runtime.state.snapshot import read_snapshot
from storm_on_spark.runtime.tracking.acker import ACKED, INIT
from storm_on_spark.testing.simulated.spark import State


class Grow(BaseBasicBolt):
    """Keeps each list that it gets, and emits it when it has grown."""

    def prepare(self, conf, context):
        self.kept = []

    def execute(self, tup, collector):
        (items,) = tup.values
        self.kept.append(items)
        items.append(len(self.kept))
        collector.emit([items])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("items"))


class Double(BaseBasicBolt):
    """Has no state, and its own stage."""

    def execute(self, tup, collector):
        for _ in range(2):
            collector.emit([list(tup[0])])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("items"))


class Bad(BaseBasicBolt):
    def prepare(self, conf, context):
        self.seen = 0

    def execute(self, tup, collector):
        self.seen += 1
        raise ValueError("no")


def worker_of(last: Any, **conf: Any) -> Worker:
    """Two lists grow, are doubled, and `last` takes them; one operator executes all of that."""
    builder = TopologyBuilder()
    builder.set_spout("source", Source(default=["items"]))
    builder.set_bolt("grow", Grow(), 2).shuffle_grouping("source")
    builder.set_bolt("double", Double()).global_grouping("grow")
    builder.set_bolt("last", last).global_grouping("double").add_configurations(conf)
    worker = make_worker(builder, {"topology.acker.executors": 2}, partitions=1)
    assert len(worker.spec.plan.operators) == 1
    return worker


def incoming(worker: Worker) -> list[bytes]:
    """A list for each task of `grow`, with what the spout and the clock tell the ackers."""
    plan = worker.spec.plan
    stream = worker.wiring.stream("source", "default")
    bodies = []
    for number, task in enumerate(plan.components["grow"].tasks):
        root = np.array([100 + number], np.uint64)
        head = {"target": task, "source": 9, "sequence": number, "stream": stream.number}
        body = tuples_chunk([([],)], root, root, **head)
        told = chunk.receipt(chunk.read_header(body), body)
        acker = plan.acker_tasks[number]
        # Of the tuple's edge ackers hear only if nobody acks it: the receipt says that it came.
        begun = (root, np.zeros(1, np.uint64), np.array([INIT], np.uint8))
        bodies += [body, chunk.encode_acks(*begun, target=acker, source=9, receipts=told)]
        # Each acker hears of all receipts.
        none = (np.empty(0, np.uint64), np.empty(0, np.uint64), np.empty(0, np.uint8))
        bodies.append(chunk.encode_acks(*none, target=plan.acker_tasks[1 - number], source=9, receipts=told))
        bodies.append(chunk.encode_clock(7, False, target=acker))
    return bodies


def key_of_sink(worker: Worker) -> int:
    plan = worker.spec.plan
    return plan.keys[plan.acker_tasks[0]]


def run(worker: Worker, bodies: list[bytes], state: State, index: int = 0) -> list[Row]:
    def state_of(task: int) -> MemoryStore:
        return MemoryStore(state.setdefault(task, {}))

    return list(
        execute_operator(
            worker, worker.spec.plan.operators[index], map(chunk.with_header, bodies), BatchInfo(0, 0), state_of
        )
    )


def outcomes(rows: list[Row]) -> dict[int, int]:
    found: dict[int, int] = {}
    for _, body in rows:
        header = chunk.read_header(body)
        if header.kind == Kind.OUTCOME:
            roots, codes = chunk.read_outcome(header, body)
            found |= dict(zip(roots.tolist(), codes.tolist(), strict=True))
    return found


def test_all_stages_hand_on_in_this_process_and_only_what_is_for_the_sink_comes_out() -> None:
    worker, state = worker_of(Grow()), State()
    rows = run(worker, incoming(worker), state)
    assert outcomes(rows) == {100: ACKED, 101: ACKED}
    assert {key for key, _ in rows} == {key_of_sink(worker)}
    reports = [r for _, body in rows if chunk.read_header(body).kind == Kind.REPORT for r in chunk.read_report(body)]
    counted = [r for r in reports if isinstance(r, TaskMetrics) and r.component != "__acker"]
    executed = Counter({(r.component, r.task): r.executed for r in counted})
    assert sorted(executed.values()) == [1, 1, 2, 4]


def test_a_value_is_not_shared_between_bolts_of_an_operator() -> None:
    worker, state = worker_of(Grow()), State()
    run(worker, incoming(worker), state)
    plan = worker.spec.plan
    kept = {
        name: [read_snapshot(state[task]["snapshot", 0])["kept"] for task in plan.components[name].tasks]
        for name in ("grow", "last")
    }
    assert kept["grow"] == [[[1]], [[1]]], "what `last` appended is seen in `grow`"
    assert kept["last"] == [[[1, 1], [1, 2], [1, 3], [1, 4]]]


def test_tasks_have_their_own_state_under_one_key() -> None:
    worker, state = worker_of(Grow()), State()
    run(worker, incoming(worker), state)
    bolts = [task for name in ("grow", "last") for task in worker.spec.plan.components[name].tasks]
    assert {task: sorted(name for name, _ in values) for task, values in state.items() if values} == {
        task: ["snapshot", "version"] for task in bolts
    }
    assert len(set(worker.spec.plan.keys.values())) == 1


def test_an_operator_hands_the_chunks_of_others_on_under_their_keys() -> None:
    builder = TopologyBuilder()
    builder.set_spout("source", Source(default=["items"]))
    builder.set_bolt("grow", Grow()).shuffle_grouping("source")
    builder.set_bolt("last", Grow()).global_grouping("grow")
    worker = make_worker(builder, {}, partitions=2)
    plan = worker.spec.plan
    (last,) = plan.components["last"].tasks
    stream = worker.wiring.stream("grow", "default")
    to_last = tuples_chunk([([],)], None, None, target=last, source=1, sequence=0, stream=stream.number)
    clock = chunk.encode_clock(7, False, target=plan.acker_tasks[0])
    report = chunk.encode_report(["r"], source=0)
    assert run(worker, [to_last, clock, report], State(), plan.components["grow"].stage) == [
        (plan.keys[last], to_last),
        (plan.keys[plan.acker_tasks[0]], clock),
        (key_of_sink(worker), report),
    ]


@pytest.mark.parametrize("fail_fast", [False, True])
def test_a_bolt_that_raises_fails_the_messages_or_ends_the_topology(fail_fast: bool) -> None:
    worker, state = worker_of(Bad(), **{"topology.fail.fast": fail_fast}), State()
    rows = run(worker, incoming(worker), state)
    reports = [r for _, body in rows if chunk.read_header(body).kind == Kind.REPORT for r in chunk.read_report(body)]
    failures = [report for report in reports if isinstance(report, Failure)]
    assert "no" in failures[0].message
    assert any(failure.fatal for failure in failures) == fail_fast
    if not fail_fast:
        assert set(outcomes(rows)) == {100, 101}
        assert ACKED not in outcomes(rows).values()
