"""A topology that was killed continues with another one in its place, as far as the checkpoint allows that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from stormtest import make_worker

from storm_on_spark.api import BaseBasicBolt, BaseRichSpout, Fields, TopologyBuilder
from storm_on_spark.plan.fingerprint import compare, fingerprint
from storm_on_spark.runtime.bolts.worker import Worker
from storm_on_spark.runtime.run.spec import RunSpec
from storm_on_spark.runtime.state.snapshot import read_snapshot
from storm_on_spark.testing.simulated import DriverKilled, SimulatedSpark

pytestmark = pytest.mark.usefixtures("hosts_in_this_process")

LIMIT = 40


class Numbers(BaseRichSpout):
    """Counts, on one stream and every fifth time on another one; emits again what fails."""

    def open(self, conf, context, collector):
        self.collector = collector
        self.next, self.acked, self.fails, self.again = 0, [], Counter(), []

    def next_tuple(self):
        if self.again:
            self.emit(self.again.pop())
        elif self.next < LIMIT:
            self.emit(self.next)
            self.next += 1

    def emit(self, number):
        self.collector.emit([number], message_id=number)
        if number % 5 == 0:
            self.collector.emit([str(number)], stream="text")

    def ack(self, message_id):
        self.acked.append(message_id)

    def fail(self, message_id):
        self.fails[message_id] += 1
        self.again.append(message_id)

    def exhausted(self):
        return self.next == LIMIT and not self.again

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("number"))
        declarer.declare_stream("text", Fields("text"))


class Count(BaseBasicBolt):
    """Remembers what it got."""

    def prepare(self, conf, context):
        self.seen = Counter()

    def execute(self, tup, collector):
        self.seen[tup["number"]] += 1


class Stateless(BaseBasicBolt):
    """Does not know what to do with tuples of other streams."""

    stateless = True

    def __init__(self, field: str) -> None:
        self.field = field

    def execute(self, tup, collector):
        assert list(tup.fields) == [self.field], "a tuple that it never asked for"


def base() -> TopologyBuilder:
    """What has state, with tasks that stay what they are: counts 1 and 2, spout 3."""
    builder = TopologyBuilder()
    builder.set_bolt("counts", Count(), 2).fields_grouping("numbers", "number")
    builder.set_spout("numbers", Numbers())
    return builder


def before() -> TopologyBuilder:
    builder = base()
    builder.set_bolt("watch", Stateless("number"), 2).shuffle_grouping("numbers")
    return builder


def added() -> TopologyBuilder:
    builder = before()
    builder.set_bolt("wider", Stateless("number"), 3).shuffle_grouping("numbers")
    return builder


def other_tasks() -> TopologyBuilder:
    builder = base()
    builder.set_bolt("watch", Stateless("number"), 5).shuffle_grouping("numbers")
    return builder


def another_in_its_place() -> TopologyBuilder:
    builder = base()
    builder.set_bolt("texts", Stateless("text"), 2).shuffle_grouping("numbers", "text")
    return builder


def spec_of(builder: TopologyBuilder) -> RunSpec:
    return make_worker(builder, {"topology.message.timeout.secs": 5, "topology.acker.executors": 2}).spec


def run(cluster: SimulatedSpark, steps: int, killed_at: str | None = None) -> bool:
    """Runs micro-batches; returns whether the topology is complete. With `killed_at` the driver dies in the last."""
    for step in range(steps):
        cluster.clock.advance(1)
        cluster.step(killed_at if step == steps - 1 else None)
        if cluster.coordinator.completed.is_set():
            return True
    return False


def counted(cluster: SimulatedSpark) -> Counter:
    name = ("snapshot", 0)
    states = [read_snapshot(variables[name]) for variables in cluster.state.values() if name in variables]
    return sum((state["seen"] for state in states), Counter())


@pytest.mark.parametrize("killed_at", ["planned", "executed", "delivered", "committed"])
@pytest.mark.parametrize("after", [base, added, other_tasks, another_in_its_place])
def test_other_stateless_bolts_take_over_what_was_under_way(
    tmp_path: Path, after: Callable[[], TopologyBuilder], killed_at: str
) -> None:
    old, new = spec_of(before()), spec_of(after())
    assert compare(fingerprint(old.plan), fingerprint(new.plan)) == []
    cluster = SimulatedSpark(old, tmp_path, Random(killed_at))
    cluster.start()
    with pytest.raises(DriverKilled):
        run(cluster, 4, killed_at)
    under_way = counted(cluster)
    assert 0 < len(under_way) < LIMIT, "it was killed in the middle"

    cluster.spec = new
    cluster.workers = [Worker(new) for _ in range(2)]
    cluster.start()
    assert run(cluster, 200)
    assert not cluster.failures
    assert not cluster.errors
    spout: Any = cluster.hosts[-1].loops[3].task.spout
    assert sorted(spout.acked) == list(range(LIMIT))
    assert counted(cluster) == Counter({number: 1 + spout.fails[number] for number in range(LIMIT)})
