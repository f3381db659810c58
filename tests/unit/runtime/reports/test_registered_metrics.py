"""Metrics that components register: counted once whatever is tried again, wherever a task executes."""

from __future__ import annotations

from pathlib import Path

import pytest

from storm_on_spark.api import (
    BaseBasicBolt,
    BaseRichBolt,
    BaseRichSpout,
    CountMetric,
    Fields,
    MultiCountMetric,
    TopologyBuilder,
)
from storm_on_spark.api.config import effective_conf
from storm_on_spark.api.info import ComponentInfo
from storm_on_spark.api.metrics.registry import Reading
from storm_on_spark.plan.compile import compile_graph
from storm_on_spark.runtime.in_process import InProcessTopology
from storm_on_spark.runtime.reports.registered import Registered, long_name_prefix
from storm_on_spark.testing import BoltTester, make_tuple
from storm_on_spark.testing.simulated import SimulatedSpark

pytestmark = pytest.mark.usefixtures("hosts_in_this_process")

MESSAGES = 40


class Numbers(BaseRichSpout):
    def open(self, conf, context, collector):
        self.collector, self.next = collector, 0
        self.emitted = context.register_counter("emitted")
        self.done = context.register_metric("done", CountMetric(), 60)

    def next_tuple(self):
        if not self.exhausted():
            self.collector.emit([self.next], message_id=self.next)
            self.next += 1
            self.emitted.inc()

    def ack(self, message_id):
        self.done.incr()

    def exhausted(self):
        return self.next == MESSAGES

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("number"))


class Measured(BaseRichBolt):
    """Keeps metrics as attributes, beside state; raises at some tuples."""

    def prepare(self, conf, context, collector):
        self.collector, self.seen = collector, 0
        self.hits = context.register_counter("hits")
        self.parts = {"odd": context.register_meter("odd"), "sizes": context.register_histogram("sizes")}
        self.kinds = context.register_metric("kinds", MultiCountMetric(), 60)
        self.held = [self.kinds]
        context.register_gauge("seen", lambda: self.seen)

    def execute(self, tup):
        self.hits.inc()
        self.kinds.scope("even" if tup[0] % 2 == 0 else "odd").incr()
        self.parts["sizes"].update(tup[0])
        if tup[0] % 2:
            self.parts["odd"].mark()
        if tup[0] % 10 == 7:
            raise ValueError("poison")
        assert self.held[0] is self.kinds
        self.seen += 1
        self.collector.ack(tup)


def topology(tasks: int = 2) -> TopologyBuilder:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers())
    builder.set_bolt("measured", Measured(), tasks).fields_grouping("numbers", "number")
    return builder


def check(components: dict[str, ComponentInfo], good: list[int]) -> None:
    metrics = components["measured"].metrics
    assert metrics["hits"].type == "counter"
    assert metrics["hits"].value == len(good)
    assert metrics["kinds"].value == {
        "even": sum(number % 2 == 0 for number in good), "odd": sum(number % 2 for number in good),
    }  # fmt: skip
    assert metrics["odd"].value == sum(number % 2 for number in good)
    assert metrics["sizes"].values["count"] == len(good)
    assert metrics["sizes"].values["max"] == max(good)
    assert sum(task["value"] for task in metrics["seen"].tasks.values()) == len(good)
    assert sum(task["count"] for task in metrics["hits"].tasks.values()) == len(good)
    spout = components["numbers"].metrics
    assert spout["emitted"].value == MESSAGES
    assert spout["done"].value == len(good)


@pytest.mark.parametrize("seed", range(4))
def test_counted_once_over_workers_retries_and_poison(tmp_path: Path, seed: int) -> None:
    spark = SimulatedSpark.of(topology().create_topology(), tmp_path, seed=seed, retries=0.3)
    with spark:
        spark.start()
        for _ in range(200):
            spark.clock.advance(1)
            spark.step()
            if spark.coordinator.completed.is_set():
                break
        assert spark.coordinator.completed.is_set()
        assert not spark.failures
        assert [error for error in spark.errors if "poison" not in error.message] == []
        check(spark.coordinator.metrics.components(), [number for number in range(MESSAGES) if number % 10 != 7])


def test_in_one_process() -> None:
    graph = compile_graph(topology().create_topology(), effective_conf({}))
    run = InProcessTopology(graph, "measured")
    info = run.run()
    good = [number for number in range(MESSAGES) if number % 10 != 7]
    check(dict(info.components), good)
    known = info.to_dict()["components"]["measured"]["metrics"]["hits"]
    assert known["type"] == "counter"
    assert known["count"] == len(good)
    for task, values in known["tasks"].items():
        assert values["name"].startswith("storm.topology.measured.")
        assert values["name"].endswith(f".measured.{task}.-1-hits")


def test_a_restart_keeps_the_metrics_of_the_new_life() -> None:
    tester = BoltTester(Measured())
    tester.execute(make_tuple([2]))
    tester.restart()
    tester.execute(make_tuple([4]))
    bolt = tester.bolt
    assert bolt.seen == 2
    assert bolt.hits.get_count() == 1, "it counts for the process that is there now"
    assert bolt.parts["sizes"].get_snapshot().get_values() == [4]
    assert bolt.held[0] is bolt.kinds


class Broken(BaseBasicBolt):
    def prepare(self, conf, context):
        context.register_gauge("broken", lambda: 1 / 0)

    def execute(self, tup, collector):
        pass


def test_a_gauge_that_raises_is_an_error_of_its_component() -> None:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers())
    builder.set_bolt("broken", Broken()).shuffle_grouping("numbers")
    info = InProcessTopology(compile_graph(builder.create_topology(), effective_conf({})), "broken").run()
    assert info.status == "COMPLETED"
    assert info.acked == MESSAGES
    assert "metric 'broken'" in info.components["broken"].errors[0].message


def test_tasks_are_added_up_and_a_value_that_can_not_be_is_the_last_one() -> None:
    now = [0.0]
    known = Registered(long_name_prefix("t-1", "a.b"), "6700", lambda: now[0])
    known.add("c", 1, [Reading("n", "counter", 2), Reading("g", "gauge", 5), Reading("t", "timer", (2, [0.5, 1.5]))])
    known.add("c", 2, [Reading("n", "counter", 3), Reading("g", "gauge", "x"), Reading("m", "meter", 10)])
    known.add("c", 1, [Reading("n", "counter", -1), Reading("g", "gauge", 6)])
    now[0] = 5.0
    found = known.of("c")
    assert found["n"].values == {"count": 4}
    assert found["n"].tasks[1] == {"name": "storm.topology.t-1.a_b.c.1.6700-n", "count": 1}
    assert found["g"].value == 6
    assert found["g"].tasks[2]["value"] == "x"
    assert found["m"].values["m1_rate"] == 2.0
    assert found["t"].values["mean"] == 1000.0
    assert found["t"].values["count"] == 2
    # Another release of the code may give the name another meaning.
    known.add("c", 1, [Reading("n", "count", {"a": 1})])
    known.add("c", 1, [Reading("n", "count", {"a": 1, "b": 2})])
    assert known.of("c")["n"].tasks[1]["value"] == {"a": 2, "b": 2}
