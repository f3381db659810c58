"""What a topology counts is what a program that counts plainly would say, whatever path its tuples take.

Nothing captures here: a subscriber more is another path.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from stormtest import FakeHost, make_worker

from storm_on_spark.api import (
    BaseBasicBolt,
    BaseRichBolt,
    BaseRichSpout,
    BatchBolt,
    BatchSpout,
    Fields,
    TopologyBuilder,
)
from storm_on_spark.api.custom_grouping import CustomStreamGrouping
from storm_on_spark.api.info import ComponentInfo
from storm_on_spark.testing.simulated import SimulatedSpark

pytestmark = pytest.mark.usefixtures("hosts_in_this_process")

MESSAGES = 13
COPIES = 2
"""Tuples that a bolt emits for each that it executes."""
TASKS = 2
"""Of every reader."""


def row(arity: int, number: int) -> list[int]:
    return [number] * arity


def fields(arity: int) -> Fields:
    return Fields(*(f"f{position}" for position in range(arity)))


class RichSpout(BaseRichSpout):
    """Emits numbers; declares a direct stream if asked to, and then emits to its readers in turn."""

    def __init__(self, arity: int, direct: bool):
        self.arity, self.direct = arity, direct

    def open(self, conf, context, collector):
        self.collector, self.next = collector, 0
        self.readers = direct_readers(context) if self.direct else []

    def next_tuple(self):
        if self.exhausted():
            return
        number, self.next = self.next, self.next + 1
        if not self.direct:
            self.collector.emit(row(self.arity, number), message_id=number)
        elif self.readers:
            self.collector.emit_direct(self.readers[number % len(self.readers)], row(self.arity, number), number)

    def exhausted(self):
        return self.next == MESSAGES

    def declare_output_fields(self, declarer):
        declarer.declare(fields(self.arity), self.direct)


class ColumnSpout(BatchSpout):
    def __init__(self, arity: int):
        self.arity = arity

    def open(self, conf, context, collector):
        self.collector, self.next = collector, 0

    def next_batch(self):
        size = min(4, MESSAGES - self.next)
        if size:
            numbers = list(range(self.next, self.next + size))
            self.next += size
            self.collector.emit(pa.record_batch([numbers] * self.arity, list(fields(self.arity))), numbers)

    def exhausted(self):
        return self.next == MESSAGES

    def declare_output_fields(self, declarer):
        declarer.declare(fields(self.arity))


class Basic(BaseBasicBolt):
    def __init__(self, arity: int, direct: bool):
        self.arity, self.direct = arity, direct

    def prepare(self, conf, context):
        self.readers, self.sent = direct_readers(context) if self.direct else [], 0

    def execute(self, tup, collector):
        for _ in range(COPIES):
            if not self.direct:
                collector.emit(row(self.arity, tup["n"]))
            elif self.readers:
                collector.emit_direct(self.readers[self.sent % len(self.readers)], row(self.arity, tup["n"]))
                self.sent += 1

    def declare_output_fields(self, declarer):
        declarer.declare(fields(self.arity), self.direct)


class Rich(BaseRichBolt):
    def __init__(self, arity: int, direct: bool):
        self.arity, self.direct = arity, direct

    def prepare(self, conf, context, collector):
        self.collector, self.sent = collector, 0
        self.readers = direct_readers(context) if self.direct else []

    def execute(self, tup):
        for _ in range(COPIES):
            if not self.direct:
                self.collector.emit(row(self.arity, tup["n"]), tup)
            elif self.readers:
                self.collector.emit_direct(self.readers[self.sent % len(self.readers)], row(self.arity, tup["n"]), tup)
                self.sent += 1
        self.collector.ack(tup)

    def declare_output_fields(self, declarer):
        declarer.declare(fields(self.arity), self.direct)


class Columnar(BatchBolt):
    def __init__(self, arity: int):
        self.arity = arity

    def execute_batch(self, batch, collector):
        columns = [batch["n"]] * self.arity
        for _ in range(COPIES):
            collector.emit(pa.record_batch(columns, list(fields(self.arity))))

    def declare_output_fields(self, declarer):
        declarer.declare(fields(self.arity))


class Numbers(BaseRichSpout):
    def open(self, conf, context, collector):
        self.collector, self.next = collector, 0

    def next_tuple(self):
        if not self.exhausted():
            self.collector.emit([self.next], message_id=self.next)
            self.next += 1

    def exhausted(self):
        return self.next == MESSAGES

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("n"))


class Reader(BaseBasicBolt):
    def prepare(self, conf, context):
        self.count = 0

    def execute(self, tup, collector):
        self.count += 1


class OneOrTwo(CustomStreamGrouping):
    """No task, one or two, by the number; there are `TASKS`."""

    def prepare(self, context, stream, target_tasks):
        self.tasks = target_tasks

    def choose_tasks(self, task, values):
        return self.tasks[: values[0] % 3]


def direct_readers(context: Any) -> list[int]:
    targets = context.this_targets().get("default", {})
    return [task for component in sorted(targets) for task in context.component_tasks(component)]


class Case(NamedTuple):
    """A grouping."""

    group: Callable[[Any, str], Any]
    copies: Callable[[int], int] = lambda number: 1
    """Readers' tasks that receive a tuple with this number, of one subscription."""


GROUPINGS = {
    "shuffle": Case(lambda bolt, source: bolt.shuffle_grouping(source)),
    "none": Case(lambda bolt, source: bolt.none_grouping(source)),
    "local": Case(lambda bolt, source: bolt.local_or_shuffle_grouping(source)),
    "global": Case(lambda bolt, source: bolt.global_grouping(source)),
    "fields": Case(lambda bolt, source: bolt.fields_grouping(source, "f0")),
    "partial": Case(lambda bolt, source: bolt.partial_key_grouping(source, "f0")),
    "all": Case(lambda bolt, source: bolt.all_grouping(source), lambda number: TASKS),
    "custom": Case(lambda bolt, source: bolt.custom_grouping(source, OneOrTwo()), lambda number: number % 3),
    "direct": Case(lambda bolt, source: bolt.direct_grouping(source)),
}


def emitters(arity: int, direct: bool) -> dict[str, Any]:
    """One component of each kind that emits; columns can't be emitted directly."""
    found = {"richspout": RichSpout(arity, direct), "basic": Basic(arity, direct), "rich": Rich(arity, direct)}
    return found if direct else {**found, "columnspout": ColumnSpout(arity), "columnar": Columnar(arity)}


def counted(folder: Path, builder: TopologyBuilder, partitions: int) -> tuple[SimulatedSpark, dict[str, ComponentInfo]]:
    """Runs a topology to its end; returns what it counted."""
    worker = make_worker(builder, {"topology.profile": "latency" if partitions == 1 else "throughput"}, partitions)
    cluster = SimulatedSpark(worker.spec, folder, Random(1), workers=1)
    FakeHost.calls = MESSAGES
    cluster.start()
    for _ in range(100):
        cluster.clock.advance(1)
        cluster.step()
        if cluster.coordinator.completed.is_set():
            assert not cluster.failures
            assert not cluster.errors
            return cluster, cluster.coordinator.metrics.components()
    raise AssertionError("the topology did not end")


@pytest.mark.parametrize("partitions", [1, 2])
@pytest.mark.parametrize(
    ("arity", "subscriptions"),
    # Each number of fields and of subscriptions is once among those that are not slow.
    [pytest.param(a, s, marks=[pytest.mark.slow] if a - s != 1 else []) for a in (1, 2, 3) for s in (0, 1, 2)],
)
def test_counters(tmp_path: Path, arity: int, subscriptions: int, partitions: int) -> None:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers())
    expected: dict[str, tuple[int, int, int, int]] = {}
    for name, case in GROUPINGS.items():
        direct = name == "direct"
        for kind, emitter in emitters(arity, direct).items():
            source = f"{name}-{kind}"
            copies, executed = 1, 0
            if "spout" in kind:
                builder.set_spout(source, emitter)
            else:
                builder.set_bolt(source, emitter, 2).shuffle_grouping("numbers")
                copies, executed = COPIES, MESSAGES
            heard = [copies * case.copies(number) for number in range(MESSAGES)]
            for reader in range(subscriptions):
                case.group(builder.set_bolt(f"{source}-reader{reader}", Reader(), TASKS), source)
            if direct:
                # One task a tuple, whichever reader it is of; and nobody to send to where nobody subscribes.
                emitted = copies * MESSAGES if subscriptions else 0
                transferred = emitted
            else:
                emitted, transferred = copies * MESSAGES, subscriptions * sum(heard)
            expected[source] = (executed, emitted, transferred, MESSAGES)
    bolts = sum("spout" not in source for source in expected)
    expected["numbers"] = (0, MESSAGES, bolts * MESSAGES, MESSAGES)
    cluster, found = counted(tmp_path, builder, partitions)

    counts = {name: (c.executed, c.emitted, c.transferred, c.acked) for name, c in found.items()}
    for source in expected:
        if not subscriptions and source == "direct-richspout":
            expected[source] = (0, 0, 0, 0)  # it emits nothing
        assert counts[source] == expected[source], source
    for source in expected:
        executed = sum(info.executed for name, info in found.items() if name.startswith(f"{source}-reader"))
        assert source == "numbers" or executed == counts[source][2], source
    totals = cluster.coordinator.metrics.spout_totals()
    spouts = [counts[name] for name in expected if name == "numbers" or name.endswith("spout")]
    assert (totals.emitted, totals.transferred, totals.acked) == tuple(sum(s[i] for s in spouts) for i in (1, 2, 3))


class Mixed(BaseRichBolt):
    """Emits on three streams, and fails what it can't execute after it has emitted."""

    def prepare(self, conf, context, collector):
        self.collector = collector

    def execute(self, tup):
        number = tup["n"]
        for stream in ("heard", "unheard", "many"):
            self.collector.emit([number, number], tup, stream=stream)
        if number % 5 == 4:
            raise ValueError(number)
        self.collector.ack(tup)

    def declare_output_fields(self, declarer):
        for stream in ("heard", "unheard", "many"):
            declarer.declare_stream(stream, Fields("f0", "f1"))


@pytest.mark.parametrize("partitions", [1, 2])
def test_what_a_poison_tuple_emitted_is_not_counted(tmp_path: Path, partitions: int) -> None:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers())
    builder.set_bolt("mixed", Mixed()).shuffle_grouping("numbers")
    builder.set_bolt("one", Reader(), TASKS).fields_grouping("mixed", "f1", "heard").all_grouping("mixed", "many")
    builder.set_bolt("two", Reader(), TASKS).custom_grouping("mixed", OneOrTwo(), "many")
    worker = make_worker(builder, {"topology.fail.fast": False}, partitions)
    cluster = SimulatedSpark(worker.spec, tmp_path, Random(1))
    cluster.start()
    while not cluster.coordinator.completed.is_set():
        cluster.clock.advance(1)
        cluster.step()
    fine = [number for number in range(MESSAGES) if number % 5 != 4]
    found = cluster.coordinator.metrics.components()
    transferred = Counter(heard=len(fine), many=len(fine) * TASKS + sum(number % 3 for number in fine))
    mixed = found["mixed"]
    assert (mixed.executed, mixed.emitted, mixed.acked, mixed.failed) == (
        MESSAGES,
        3 * len(fine),
        len(fine),
        MESSAGES - len(fine),
    )
    assert mixed.transferred == transferred.total() == found["one"].executed + found["two"].executed
