"""Topologies for the tests of message ids, and of what spouts do when they hear of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from topologies.notes import note
from topologies.puppets import Child, Told

from storm_on_spark import (
    BaseRichBolt,
    BaseRichSpout,
    BaseTickTupleAwareRichBolt,
    Config,
    Fields,
    Topology,
    TopologyBuilder,
)


@dataclass
class Letter:
    """A message id that can't be hashed."""

    to: str
    pages: list[int] = field(default_factory=list)


IDS: list[tuple[Any, str]] = [
    (0, "ack"),
    (0.0, "fail"),
    (False, "ack"),
    ("", "fail"),
    (b"bytes", "ack"),
    (("key", 7, None), "fail"),
    (["a", "list"], "ack"),
    ({"a": {"dict"}}, "fail"),
    (np.int64(7), "ack"),
    (7, "fail"),
    (Letter("you", [1, 2]), "ack"),
    (frozenset({1}), "fail"),
    ("twin", "ack"),
    ("twin", "fail"),
    ("twin", "ack"),
    (None, "fail"),
]
"""Message ids, and what becomes of their tuples. Some are equal, some can't be hashed; None means no id."""


class Odd(BaseRichSpout):
    """Emits once for each of `IDS`, to one task directly the second half, and once more from `ack` and from `fail`."""

    def __init__(self) -> None:
        self.next = 0
        self.told: list[tuple[str, Any]] = []

    def open(self, conf, context, collector):
        self.collector = collector
        self.children = context.component_tasks("child")

    def next_tuple(self):
        if self.next < len(IDS):
            message_id, how = IDS[self.next]
            if self.next % 2:
                self.collector.emit([how], message_id)
            else:
                self.collector.emit_direct(self.children[self.next % 3 % 2], [how], message_id, stream="direct")
            self.next += 1

    def ack(self, message_id):
        if not isinstance(message_id, str) or not message_id.startswith("from "):
            self.collector.emit(["fail"], f"from ack of {message_id!r}")

    def fail(self, message_id):
        if not isinstance(message_id, str) or not message_id.startswith("from "):
            self.collector.emit(["ack"], f"from fail of {message_id!r}")

    def exhausted(self):
        return self.next >= len(IDS)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("how"))
        declarer.declare_stream("direct", Fields("how"), direct=True)


def odd() -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("odd", Odd())
    child = builder.set_bolt("child", Child(), 2)
    child.shuffle_grouping("odd").direct_grouping("odd", "direct")
    return builder.create_topology()


TICK = 10


class AckOnTick(BaseTickTupleAwareRichBolt):
    """Collects tuples; a tick deals with all of them, and emits what it dealt with, anchored to them."""

    def prepare(self, conf, context, collector):
        self.conf, self.collector = conf, collector
        self.held: list[Any] = []

    def process(self, tup):
        note(self.conf, "held", tup["order"])
        self.held.append(tup)

    def on_tick_tuple(self, tup):
        self.collector.emit([len(self.held)], self.held)
        for held in self.held:
            (self.collector.fail if held["order"].startswith("bad") else self.collector.ack)(held)
        self.collector.ack(tup)
        self.held = []

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("count"))

    def get_component_configuration(self):
        return {Config.TOPOLOGY_TICK_TUPLE_FREQ_SECS: TICK}


class Ack(BaseRichBolt):
    """Acks."""

    def prepare(self, conf, context, collector):
        self.collector = collector

    def execute(self, tup):
        self.collector.ack(tup)


class Obedient(Told):
    """Notes that it was deactivated."""

    def open(self, conf, context, collector):
        super().open(conf, context, collector)
        self.conf = conf

    def deactivate(self):
        note(self.conf, "deactivated")


def ticking() -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("told", Obedient())
    builder.set_bolt("gather", AckOnTick()).global_grouping("told")
    builder.set_bolt("end", Ack(), 2).shuffle_grouping("gather")
    return builder.create_topology()
