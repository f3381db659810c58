"""Topologies for the tests of acks, fails and replays."""

from __future__ import annotations

import random

from topologies.notes import note
from topologies.parts import Numbers, Witness

from storm_on_spark import (
    BaseBasicBolt,
    BaseRichBolt,
    BaseRichSpout,
    FailedException,
    Fields,
    ReportedFailedException,
    Topology,
    TopologyBuilder,
)

JUDGED = 300


class Letters(BaseRichSpout):
    """Emits numbers; the message id says which task emitted it, and is no mere number."""

    def open(self, conf, context, collector):
        self.collector, self.task = collector, context.this_task_id
        self.next = 0

    def next_tuple(self):
        if self.next < JUDGED:
            self.collector.emit([self.next], ("letter", self.task, {"n": self.next}))
            self.next += 1

    def exhausted(self):
        return self.next >= JUDGED

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("n"))


class Judge(BaseRichBolt):
    """Of three tuples it fails the first, acks the second, and passes the third on before it acks it."""

    def prepare(self, conf, context, collector):
        self.collector = collector

    def execute(self, tup):
        if tup["n"] % 3 == 0:
            self.collector.fail(tup)
            return
        if tup["n"] % 3 == 2:
            self.collector.emit([tup["n"]], tup)
        self.collector.ack(tup)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("n"))


def judged() -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("letters", Letters(), 3)
    builder.set_bolt("judge", Judge(), 2).shuffle_grouping("letters")
    builder.set_bolt("end", Witness(), 2).fields_grouping("judge", "n")
    return builder.create_topology()


class FailAll(BaseRichBolt):
    """Fails every tuple."""

    def prepare(self, conf, context, collector):
        self.collector = collector
        self.seen = 0

    def execute(self, tup):
        self.seen += 1
        self.collector.fail(tup)


def failing() -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(200, burst=20))
    builder.set_bolt("fail", FailAll(), 2).shuffle_grouping("numbers")
    return builder.create_topology()


class Eager(Numbers):
    """Notes the most messages that it ever had pending."""

    def open(self, conf, context, collector):
        super().open(conf, context, collector)
        self.task = context.this_task_id
        self.most = 0

    def next_tuple(self):
        super().next_tuple()
        self.most = max(self.most, self.collector.pending_count())

    def close(self):
        note(self.conf, "most", self.task, self.most)


def limited() -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Eager(84), 2).set_max_spout_pending(7)
    builder.set_bolt("end", Witness(), 2).fields_grouping("numbers", "n")
    return builder.create_topology()


REPLAYED = 400


def fails_of(seed: int, number: int) -> int:
    """How often a number fails: up to 3 times, at random."""
    return random.Random(f"{seed}/{number}").randrange(4)


class FailFirst(BaseRichBolt):
    """Fails every number as often as chance says, then lets it through."""

    def prepare(self, conf, context, collector):
        self.conf, self.collector = conf, collector
        self.fails: dict[int, int] = {}

    def execute(self, tup):
        number = tup["n"]
        failed = self.fails.get(number, 0)
        if failed < fails_of(self.conf["test.seed"], number):
            self.fails[number] = failed + 1
            # What was emitted before the fail is processed all the same, as in Storm.
            self.collector.emit([number, False], tup)
            self.collector.fail(tup)
        else:
            self.collector.emit([number, True], tup)
            self.collector.ack(tup)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("n", "through"))


def replayed() -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(REPLAYED, burst=40), 2)
    builder.set_bolt("fail", FailFirst(), 2).fields_grouping("numbers", "n")
    builder.set_bolt("end", Witness(), 2).fields_grouping("fail", "n")
    return builder.create_topology()


POISONED = 210


def fate(number: int) -> str:
    if number % 7 == 0:
        return "raise"
    if number % 11 == 0:
        return "fail"
    return "report" if number % 13 == 0 else "pass"


class Poisonable(BaseBasicBolt):
    """Changes its state and emits, and then raises for some numbers."""

    def prepare(self, conf, context):
        self.sum = 0
        self.seen: list[int] = []

    def execute(self, tup, collector):
        number = tup["n"]
        self.sum += number
        self.seen.append(number)
        collector.emit([number])
        what = fate(number)
        if what == "raise":
            raise ValueError(f"{number} is poison")
        if what == "fail":
            raise FailedException(f"{number} is failed")
        if what == "report":
            raise ReportedFailedException(f"{number} is reported")

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("n"))


class PoisonableRich(BaseRichBolt):
    """The same for a bolt that acks by itself, before it raises."""

    def prepare(self, conf, context, collector):
        self.collector = collector
        self.sum = 0

    def execute(self, tup):
        self.sum += tup["n"]
        self.collector.ack(tup)
        if fate(tup["n"]) == "raise":
            raise KeyError(tup["n"])


def poisoned() -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(POISONED, burst=35, replay=False))
    builder.set_bolt("basic", Poisonable(), 2).fields_grouping("numbers", "n")
    builder.set_bolt("rich", PoisonableRich(), 2).fields_grouping("numbers", "n")
    builder.set_bolt("end", Witness(), 2).shuffle_grouping("basic")
    return builder.create_topology()


def slow_feed() -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(2000, burst=100))
    builder.set_bolt("end", Witness(), 2).shuffle_grouping("numbers")
    return builder.create_topology()
