"""A spout that emits what the test orders while the topology runs, and a bolt that does what the order says."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from topologies.notes import NOTES, note

from storm_on_spark import BaseRichBolt, BaseRichSpout, Fields, Topology, TopologyBuilder

ORDERS = "orders"


class Orders:
    """The test's side: appends orders to the file that `Told` reads."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / ORDERS
        self.path.touch()
        self.pings = 0

    def give(self, *orders: str) -> None:
        with self.path.open("a") as file:
            file.write("".join(f"{order}\n" for order in orders))

    def round_trip(self, running: Any) -> Any:
        """Waits until a message has gone all the way and back: what was ordered before has been dealt with."""
        self.pings += 1
        ping = f"ping {self.pings}"
        self.give(ping)
        return running.wait_until(lambda captured: ping in captured.acked())


class Told(BaseRichSpout):
    """Emits every line of the file of orders, with the line as message id, until one says `end`."""

    def __init__(self) -> None:
        self.at = 0
        self.ended = False

    def open(self, conf, context, collector):
        self.path = os.path.join(conf[NOTES], ORDERS)
        self.collector = collector

    def next_tuple(self):
        with open(self.path, "rb") as file:
            file.seek(self.at)
            line = file.readline()
        if not line.endswith(b"\n"):
            return
        self.at += len(line)
        order = line.decode().rstrip("\n")
        if order == "end":
            self.ended = True
        else:
            self.collector.emit([order], order)

    def exhausted(self):
        return self.ended

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("order"))


class Puppet(BaseRichBolt):
    """Does with its tuples what the orders in them say.

    `hold X` keeps the tuple as X; `ack X`, `fail X` and `reset X` do that to X; `child X HOW` emits HOW, anchored to
    X; `join X Y HOW` the same with two anchors. Every order but `hold` and those of `alone` is acked at once.
    """

    def prepare(self, conf, context, collector):
        self.conf, self.collector = conf, collector
        self.held: dict[str, Any] = {}

    def execute(self, tup):
        verb, *words = tup["order"].split()
        note(self.conf, "orders", tup["order"])
        getattr(self, f"do_{verb}")(tup, *words)
        if verb not in ("hold", "alone"):
            self.collector.ack(tup)

    def do_ping(self, tup, number):
        pass

    def do_hold(self, tup, name):
        self.held[name] = tup

    def do_ack(self, tup, *names):
        for name in names:
            self.collector.ack(self.held[name])

    def do_fail(self, tup, *names):
        for name in names:
            self.collector.fail(self.held[name])

    def do_reset(self, tup, name):
        self.collector.reset_timeout(self.held[name])

    def do_child(self, tup, name, how):
        self.collector.emit([how], self.held[name])

    def do_join(self, tup, one, other, how):
        self.collector.emit([how], [self.held[one], self.held[other]])

    def do_twice(self, tup, name, how):
        self.collector.emit([how], [self.held[name], self.held[name]])

    def do_unanchored(self, tup, how):
        self.collector.emit([how])

    def do_alone(self, tup, *verbs):
        for verb in verbs:
            getattr(self.collector, verb)(tup)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("how"))


class Child(BaseRichBolt):
    """Acks, fails or ignores, as the tuple says."""

    def prepare(self, conf, context, collector):
        self.collector = collector

    def execute(self, tup):
        if tup["how"] == "ack":
            self.collector.ack(tup)
        elif tup["how"] == "fail":
            self.collector.fail(tup)


def puppets() -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("told", Told())
    builder.set_bolt("puppet", Puppet()).global_grouping("told")
    builder.set_bolt("child", Child(), 2).shuffle_grouping("puppet")
    return builder.create_topology()
