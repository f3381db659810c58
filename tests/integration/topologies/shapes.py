"""Topologies for the tests of what a graph of components may look like."""

from __future__ import annotations

from collections import Counter
from typing import Any

from topologies.notes import note
from topologies.parts import Join, Numbers, Relay, Tally, Witness

from storm_on_spark import (
    BaseBasicBolt,
    BaseRichBolt,
    BaseRichSpout,
    BaseTickTupleAwareRichBolt,
    BatchBolt,
    Config,
    Fields,
    Topology,
    TopologyBuilder,
)
from storm_on_spark.api.task.base_hook import BaseTaskHook
from storm_on_spark.testing import ListSpout

JOINED = 400


class Plus(BaseBasicBolt):
    """Emits its input and, as a second value, that plus a constant; keeps count, so it has state."""

    def __init__(self, constant: int) -> None:
        self.constant = constant
        self.seen = 0

    def execute(self, tup, collector):
        self.seen += 1
        collector.emit([tup[0], tup[0] + self.constant])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("n", "plus"))


def joined() -> Topology:
    """Two spouts that join, and behind them a diamond: every branch is anchored, two by two."""
    builder = TopologyBuilder()
    builder.set_spout("left", Numbers(JOINED, burst=50))
    builder.set_spout("right", Numbers(JOINED, burst=7), 2)
    builder.set_bolt("join", Join(), 2).fields_grouping("left", "n").fields_grouping("right", "n")
    builder.set_bolt("one", Plus(1), 2).shuffle_grouping("join")
    builder.set_bolt("two", Plus(2)).shuffle_grouping("join")
    builder.set_bolt("rejoin", Join(), 2).fields_grouping("one", "n").fields_grouping("two", "n")
    builder.set_bolt("end", Witness()).global_grouping("rejoin")
    return builder.create_topology()


CIRCLED = 4


class CountDown(BaseRichBolt):
    """Sends a number one lower to itself until it is 0; every hop is anchored to the one before."""

    def prepare(self, conf, context, collector):
        self.conf, self.collector = conf, collector
        self.hops = 0

    def execute(self, tup):
        self.hops += 1
        note(self.conf, "hops", tup.source_component, tup.source_stream, tup["n"])
        if tup["n"] > 0:
            self.collector.emit([tup["n"] - 1], tup, stream="back")
        else:
            self.collector.emit([0], tup)
        self.collector.ack(tup)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("n"))
        declarer.declare_stream("back", Fields("n"))


def circular() -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(CIRCLED))
    down = builder.set_bolt("down", CountDown(), 2)
    down.fields_grouping("numbers", "n").shuffle_grouping("down", "back")
    builder.set_bolt("end", Witness()).global_grouping("down")
    return builder.create_topology()


def circular_hops() -> Counter[tuple[str, str, int]]:
    """What `down` notes of each tuple: where it came from, and its number."""
    return Counter(
        (*(("numbers", "default") if n == start else ("down", "back")), n)
        for start in range(CIRCLED)
        for n in range(start + 1)
    )


ORDERED = 3000


class Sequence(BaseRichSpout):
    """Emits (its task, 0), (its task, 1)... in bursts of changing size, waiting for every burst to be acked."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.next = 0
        self.open_messages = 0

    def open(self, conf, context, collector):
        self.collector, self.task = collector, context.this_task_id

    def next_tuple(self):
        if self.open_messages:
            return
        for _ in range(self.next + 50):
            if self.next < self.count:
                self.open_messages += 1
                self.collector.emit([self.task, self.next], self.next)
                self.next += 1

    def ack(self, message_id):
        self.open_messages -= 1

    def exhausted(self):
        return self.next >= self.count

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("task", "number"))


class Forward(BaseBasicBolt):
    """Passes tuples on under its own task, counted by itself, every third of them twice."""

    def prepare(self, conf, context):
        self.task = context.this_task_id
        self.sent = 0

    def execute(self, tup, collector):
        for _ in range(2 if tup["number"] % 3 == 0 else 1):
            collector.emit([self.task, self.sent])
            self.sent += 1

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("task", "number"))


class InOrder(BaseBasicBolt):
    """Remembers the last number of every task that it hears, and notes any that is not greater."""

    def prepare(self, conf, context):
        self.conf = conf
        self.last: dict[Any, int] = {}
        self.count = 0

    def execute(self, tup, collector):
        origin = tup.source_component, tup.source_task
        if tup["task"] != tup.source_task or tup["number"] <= self.last.get(origin, -1):
            note(self.conf, "disorder", origin, tup.values, self.last.get(origin))
        self.last[origin] = tup["number"]
        self.count += 1


def ordered() -> Topology:
    """Two tasks send to two tasks that send to two tasks, with every kind of path between two tasks."""
    builder = TopologyBuilder()
    builder.set_spout("source", Sequence(ORDERED), 2)
    builder.set_bolt("fused", Forward(), 2).shuffle_grouping("source")
    builder.set_bolt("forward", Forward(), 2).fields_grouping("source", "number")
    end = builder.set_bolt("end", InOrder(), 2)
    end.shuffle_grouping("source").shuffle_grouping("forward").all_grouping("fused")
    return builder.create_topology()


class Streams(BaseRichSpout):
    """Emits on three streams, one of which nobody hears."""

    def __init__(self) -> None:
        self.done = False

    def open(self, conf, context, collector):
        self.collector = collector

    def next_tuple(self):
        if not self.done:
            self.done = True
            for n in range(10):
                self.collector.emit(["plain", n], ("plain", n))
                self.collector.emit([n], ("odd", n), stream="odd")
                self.collector.emit([], ("unheard", n), stream="unheard")

    def exhausted(self):
        return self.done

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("what", "n"))
        declarer.declare_stream("odd", Fields("n"))
        declarer.declare_stream("unheard", Fields())


class Facts(BaseTickTupleAwareRichBolt):
    """Notes what its context, its configuration and its tuples say; emits on a stream by its input's stream."""

    def __init__(self) -> None:
        self.ticks = 0

    def prepare(self, conf, context, collector):
        self.conf, self.collector, self.me = conf, collector, context.this_task_id
        note(
            conf,
            "facts",
            context.this_task_id,
            context.this_task_index,
            context.this_component_id,
            context.component_tasks("facts"),
            conf["own.key"],
            conf["shared.key"],
            context.storm_id,
            sorted(map(str, context.this_sources())),
        )
        context.add_task_hook(NotingHook("added"))

    def process(self, tup):
        note(
            self.conf,
            "tuples",
            self.me,
            tup.source_component,
            tup.source_stream,
            tup.source_task,
            list(tup.fields),
            tup.values,
        )
        self.collector.emit([tup["n"]], tup)
        self.collector.ack(tup)

    def on_tick_tuple(self, tup):
        self.ticks += 1
        note(self.conf, "ticks", self.me, tup[0])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("n"))

    def get_component_configuration(self):
        return {Config.TOPOLOGY_TICK_TUPLE_FREQ_SECS: 10, "own.key": "component", "shared.key": "component"}


class NotingHook(BaseTaskHook):
    """Notes everything that a hook can hear."""

    def __init__(self, name: str = "configured") -> None:
        self.name = name

    def prepare(self, conf, context):
        self.conf, self.component = conf, context.this_component_id

    def _note(self, what: str, *more: Any) -> None:
        note(self.conf, "hooks", self.name, self.component, what, *more)

    def emit(self, info):
        self._note("emit", info.task_id, info.stream, list(info.values), list(info.out_tasks))

    def spout_ack(self, info):
        self._note("spout_ack", info.task_id, info.message_id, info.complete_latency_ms)

    def spout_fail(self, info):
        self._note("spout_fail", info.task_id, info.message_id)

    def bolt_execute(self, info):
        self._note("bolt_execute", info.task_id, info.tuple.values)

    def bolt_ack(self, info):
        self._note("bolt_ack", info.task_id, info.tuple.values)

    def bolt_fail(self, info):
        self._note("bolt_fail", info.task_id, info.tuple.values)


def described() -> Topology:
    """Several streams, a bolt with more tasks than executors, ticks, hooks, configuration of a component."""
    builder = TopologyBuilder()
    builder.set_spout("streams", Streams())
    facts = builder.set_bolt("facts", Facts(), 2).set_num_tasks(5)
    facts.fields_grouping("streams", "n").fields_grouping("streams", "n", stream="odd")
    facts.add_configuration("shared.key", "declarer")
    builder.set_bolt("end", Tally()).global_grouping("facts")
    return builder.create_topology()


class Lengths(BatchBolt):
    """A columnar bolt: emits the length of every text, anchored by row; texts that are empty fail."""

    def prepare(self, conf, context, collector):
        self.collector = collector
        self.rows = 0

    def execute_batch(self, batch, collector):
        import pyarrow as pa
        import pyarrow.compute as pc

        self.rows += batch.num_rows
        lengths = pc.utf8_length(batch.column(0))
        empty = [row for row, length in enumerate(lengths.to_pylist()) if length == 0]
        full = [row for row in range(batch.num_rows) if row not in empty]
        out = pa.RecordBatch.from_arrays(
            [batch.column(0).take(pa.array(full)), lengths.take(pa.array(full)).cast(pa.int64())],
            names=["text", "length"],
        )
        collector.emit(out, parent=full)
        collector.fail(empty)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("text", "length"))


class LengthSum(BatchBolt):
    """A columnar bolt with state."""

    def prepare(self, conf, context, collector):
        self.sums: dict[int, int] = {}

    def execute_batch(self, batch, collector):
        for length, count in zip(*[c.to_pylist() for c in batch.select(["length"]).columns] * 2, strict=True):
            self.sums[length] = self.sums.get(length, 0) + count


TEXTS = ["a", "bb", "", "ccc", "dd", "a", "", "ünï"] * 50


def columnar() -> Topology:
    """Tuples to batches to batches, and to tuples again."""
    builder = TopologyBuilder()
    builder.set_spout("texts", ListSpout(TEXTS, fields=["text"], max_fails=0))
    builder.set_bolt("lengths", Lengths(), 2).shuffle_grouping("texts")
    builder.set_bolt("sums", LengthSum(), 2).fields_grouping("lengths", "length")
    builder.set_bolt("end", Witness(), 2).fields_grouping("lengths", "text")
    return builder.create_topology()


def unreliable() -> Topology:
    """Without message ids nothing is tracked."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(1000, burst=100, ids=False))
    builder.set_bolt("relay", Relay("n")).shuffle_grouping("numbers")
    builder.set_bolt("tally", Tally(), 2).shuffle_grouping("relay")
    return builder.create_topology()


class Sized(BaseBasicBolt):
    """Emits how much it carries."""

    def __init__(self, model):
        self.model = model

    def execute(self, tup, collector):
        collector.emit([len(self.model)])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("size"))
