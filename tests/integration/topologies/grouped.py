"""Topologies for the tests of groupings, and the plain Python that says where tuples must go."""

from __future__ import annotations

import datetime
import enum
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from topologies.notes import note
from topologies.parts import Numbers, Relay, Tally, Witness

from storm_on_spark import (
    BaseRichBolt,
    CustomStreamGrouping,
    Fields,
    Topology,
    TopologyBuilder,
    TupleError,
)
from storm_on_spark.testing import ListSpout

COUNT = 100_000


def even() -> Topology:
    """Every even grouping, from a spout and from bolts, into bolts with state."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(COUNT, burst=200))
    builder.set_bolt("relay", Relay("n"), 2).shuffle_grouping("numbers")
    builder.set_bolt("shuffle", Tally(), 2).shuffle_grouping("numbers")
    builder.set_bolt("none", Tally(), 2).none_grouping("numbers")
    builder.set_bolt("local", Tally(), 2).local_or_shuffle_grouping("numbers")
    builder.set_bolt("relayed", Tally(), 2).shuffle_grouping("relay")
    return builder.create_topology()


@dataclass(frozen=True)
class Point:
    x: int
    y: float


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


NOON = datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.timezone.utc)
KEYS: list[Any] = [
    *[1, 1.0, True, Decimal(1), Fraction(1), 1 + 0j],
    *[0, 0.0, -0.0, False],
    *[2**80, float(2**80), -5, -5.0],
    *[None, None],
    *["storm", "storm", "", "ü", "日本"],
    *[b"storm", b"storm"],
    *[("a", 1), ("a", 1.0), ("a", True), (None, ("b", 2)), (None, ("b", 2.0)), ()],
    *[Point(1, 2.0), Point(1, 2), Point(2, 1.0)],
    *[frozenset({1, 2, 3}), frozenset({3, 2, 1.0})],
    *[Colour.RED, Colour.RED, Colour.BLUE],
    *[NOON, NOON.astimezone(datetime.timezone(datetime.timedelta(hours=5)))],
    *[datetime.date(2024, 5, 1), datetime.date(2024, 5, 1)],
    *[f"word-{n}" for n in range(40)],
]
"""Keys to group by; some of them are equal to others of another type."""


def keyed() -> Topology:
    """The same keys from a spout and from a bolt; one field, and two."""
    builder = TopologyBuilder()
    rows = [[key, n % 7] for n, key in enumerate(KEYS)]
    builder.set_spout("keys", ListSpout(rows, fields=["key", "group"]))
    builder.set_bolt("relay", Relay("key", "group"), 2).shuffle_grouping("keys")
    one = builder.set_bolt("one", Witness(), 4)
    one.fields_grouping("keys", "key").fields_grouping("relay", Fields("key"))
    two = builder.set_bolt("two", Witness(), 4)
    two.fields_grouping("keys", ["group", "key"]).fields_grouping("relay", ["group", "key"])
    return builder.create_topology()


class EvenTwice(CustomStreamGrouping):
    """Even numbers go to two tasks, odd ones to one, multiples of five nowhere."""

    def prepare(self, context, stream, target_tasks):
        self.targets = target_tasks

    def choose_tasks(self, task_id, values):
        return even_twice(values[0], self.targets)


def even_twice(number: int, targets: list[int]) -> list[int]:
    if number % 5 == 0:
        return []
    first = targets[number % len(targets)]
    return [first, targets[(number + 1) % len(targets)]] if number % 2 == 0 else [first]


def skewed(number: int) -> int:
    """Three of four tuples have the key 0."""
    return 0 if number % 4 else number


class Router(BaseRichBolt):
    """Emits every number on every stream and notes the tasks that `emit` returned."""

    stateless = True
    plain = ("all", "global", "custom", "partial", "shuffle", "unheard")

    def prepare(self, conf, context, collector):
        self.conf, self.collector = conf, collector
        self.directs = context.component_tasks("direct")
        self.stranger = context.this_task_id

    def execute(self, tup):
        number = tup[0]
        for stream in self.plain:
            value = skewed(number) if stream == "partial" else number
            tasks = self.collector.emit([value], tup, stream=stream)
            note(self.conf, "emitted", stream, value, tasks)
        self.collector.emit_direct(self.directs[number % 3], [number], tup, stream="direct")
        if number == 0:
            self.mistakes(tup)
        self.collector.ack(tup)

    def mistakes(self, tup) -> None:
        calls = {
            "stranger": lambda: self.collector.emit_direct(self.stranger, [0], tup, stream="direct"),
            "plain emit": lambda: self.collector.emit([0], tup, stream="direct"),
            "plain stream": lambda: self.collector.emit_direct(self.directs[0], [0], tup, stream="all"),
        }
        for name, call in calls.items():
            try:
                call()
            except TupleError as error:
                note(self.conf, "mistakes", name, str(error))

    def declare_output_fields(self, declarer):
        for stream in self.plain:
            declarer.declare_stream(stream, Fields("n"))
        declarer.declare_stream("direct", Fields("n"), direct=True)


ROUTED = 300


def routed() -> Topology:
    """One bolt with a stream for each of the groupings that choose."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(ROUTED, burst=20))
    builder.set_bolt("router", Router()).shuffle_grouping("numbers")
    builder.set_bolt("all", Witness(), 3).all_grouping("router", "all")
    builder.set_bolt("global", Witness(), 3).global_grouping("router", "global")
    builder.set_bolt("custom", Witness(), 3).custom_grouping("router", EvenTwice(), "custom")
    builder.set_bolt("partial", Witness(), 3).partial_key_grouping("router", "n", "partial")
    builder.set_bolt("shuffle", Witness(), 3).shuffle_grouping("router", "shuffle")
    builder.set_bolt("direct", Witness(), 3).direct_grouping("router", "direct")
    return builder.create_topology()
