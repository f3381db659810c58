"""Timers: which are due, that they come before other tuples, and the time that a bolt is told."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from stormtest import Source, make_worker

from storm_on_spark.api import BaseRichBolt, BatchBolt, Fields, InvalidTopologyError, StormError, TopologyBuilder
from storm_on_spark.plan.compile import compile_graph
from storm_on_spark.plan.model import Operator
from storm_on_spark.runtime.batches.input import due_clocks
from storm_on_spark.runtime.bolts.operator import execute_operator
from storm_on_spark.runtime.bolts.stage import BatchInfo
from storm_on_spark.runtime.codec import chunk
from storm_on_spark.runtime.state.keyvalue.store import MemoryStore
from storm_on_spark.testing import BoltTester


class Timed(BaseRichBolt):
    def declare_timers(self, conf):
        return {"often": 300, "seldom": 1000}

    def prepare(self, conf, context, collector):
        self.context, self.seen = context, []

    def execute(self, tup):
        self.seen.append((tup["name"] if tup.is_timer else tup[0], self.context.time_ms))


class TimedBatch(BatchBolt):
    def declare_timers(self, conf):
        return {"often": 300, "seldom": 1000}

    def prepare(self, conf, context, collector):
        self.context, self.seen = context, []

    def execute_batch(self, batch, collector):
        timer = collector.source.stream == "__timer"
        self.seen += [(row["name" if timer else "value"], self.context.time_ms) for row in batch.to_pylist()]


def worker_of(bolt: Any, **conf: Any) -> Any:
    builder = TopologyBuilder()
    builder.set_spout("source", Source(default=["value"]))
    builder.set_bolt("bolt", bolt).fields_grouping("source", "value").add_configurations(conf)
    return make_worker(builder, {}, 2)


@pytest.mark.parametrize("bolt", [Timed(), TimedBatch()])
def test_timers_come_before_other_tuples_once_in_a_micro_batch(bolt: Any) -> None:
    worker = worker_of(bolt)
    plan, state = worker.spec.plan, MemoryStore({})
    task = plan.components["bolt"].tasks[0]
    operator = Operator((plan.stages[plan.components["bolt"].stage],), exchange=True)
    number = worker.wiring.stream("source", "default").number
    tuples, _ = chunk.encode_tuples([("a",)], None, None, target=task, source=1, sequence=0, stream=number)
    for batch, (before, now) in enumerate([(0, 250), (250, 1000), (1000, 1150), (1150, 2500)]):
        clocks = map(chunk.with_header, due_clocks(worker.wiring, before, now, plan.placement[task]))
        chunks = [found for found in [tuples, *clocks] if found[0].target == task]
        list(execute_operator(worker, operator, chunks, BatchInfo(batch, 0), lambda _: state))
    assert worker.tasks[task].bolt.instance.seen == [
        ("a", 250),
        ("often", 1000),
        ("seldom", 1000),
        ("a", 1000),
        ("a", 1150),
        ("often", 2500),
        ("seldom", 2500),
        ("a", 2500),
    ]


def test_a_bolt_without_timers_is_not_told_the_time() -> None:
    class Untimed(BaseRichBolt):
        def execute(self, tup): ...

    tester = BoltTester(Untimed())
    with pytest.raises(StormError, match='"bolt" declares no timers'):
        _ = tester.context.time_ms


def test_timers_see_the_configuration_of_their_component() -> None:
    class Configured(Timed):
        def declare_timers(self, conf):
            return {"beat": conf["beat.ms"]}

    worker = worker_of(Configured(), **{"beat.ms": 40})
    assert list(worker.wiring.timer_periods.values()) == [(40,)]
    assert 40 in worker.wiring.periods


@pytest.mark.parametrize(
    ("timers", "shown"),
    [
        (["a"], "not ['a'] (list)"),
        ({"a": 0}, "not 'a': 0 (int)"),
        ({"a": 0.5}, "not 'a': 0.5 (float)"),
        ({"a": True}, "not 'a': True (bool)"),
        ({1: 10}, "not 1: 10 (int)"),
        ({str(number): 10 for number in range(17)}, "17 of them; at most 16"),
    ],
)
def test_wrong_timers_are_refused(timers: Any, shown: str) -> None:
    class Wrong(BaseRichBolt):
        def declare_timers(self, conf):
            return timers

        def execute(self, tup): ...

        def declare_output_fields(self, declarer):
            declarer.declare(Fields("value"))

    builder = TopologyBuilder()
    builder.set_spout("source", Source(default=["value"]))
    builder.set_bolt("bolt", Wrong()).shuffle_grouping("source")
    with pytest.raises(InvalidTopologyError) as error:
        compile_graph(builder.create_topology(), {})
    assert shown in str(error.value)
    assert 'bolt "bolt": declare_timers must return' in str(error.value)


def test_a_tester_moves_the_time_from_timer_to_timer() -> None:
    tester = BoltTester(TimedBatch(), [pa.record_batch({"value": ["a"]})])
    tester.advance(seconds=1)
    tester.execute(pa.record_batch({"value": ["a"]}))
    assert tester.bolt.seen == [("often", 300), ("often", 600), ("often", 900), ("seldom", 1000), ("a", 1000)]
