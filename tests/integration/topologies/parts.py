"""Components that several tests use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from topologies.notes import note

from storm_on_spark import BaseBasicBolt, BaseRichBolt, BaseRichSpout, Fields


class Received(NamedTuple):
    """What a `Witness` notes of a tuple."""

    component: str
    task: int
    source_component: str
    source_stream: str
    source_task: int
    values: tuple[Any, ...]


class Witness(BaseBasicBolt):
    """Notes every tuple and where it came from; without state of its own."""

    stateless = True

    def prepare(self, conf, context):
        self.conf = conf
        self.me = context.this_component_id, context.this_task_id

    def execute(self, tup, collector):
        origin = tup.source_component, tup.source_stream, tup.source_task
        note(self.conf, "received", *self.me, *origin, tuple(tup))


class Tally(BaseBasicBolt):
    """Counts what it receives and adds up the first value, as state."""

    def prepare(self, conf, context):
        self.count = 0
        self.sum = 0

    def execute(self, tup, collector):
        self.count += 1
        self.sum += tup[0]


class Relay(BaseBasicBolt):
    """Emits what it receives."""

    stateless = True

    def __init__(self, *fields: str) -> None:
        self.fields = fields

    def execute(self, tup, collector):
        collector.emit(tup.values)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields(*self.fields))


class Numbers(BaseRichSpout):
    """A plain counting spout: emits 0, 1, 2... with the number as message id, and again what fails.

    Args:
        count: how many.
        burst: how many a call of `next_tuple` emits.
        ids: whether messages have ids.
        replay: whether what fails is emitted again.
    """

    def __init__(self, count: int, burst: int = 1, *, ids: bool = True, replay: bool = True) -> None:
        self.count = count
        self.burst = burst
        self.ids = ids
        self.replay = replay

    def open(self, conf, context, collector):
        self.conf: Mapping[str, Any] = conf
        self.collector = collector
        self.tasks = len(context.component_tasks(context.this_component_id))
        self.next = context.this_task_index
        self.replays: list[int] = []
        self.acked = 0
        self.failed = 0

    def next_tuple(self):
        if self.replays:
            self.send(self.replays.pop(0))
            return
        for _ in range(self.burst):
            if self.next < self.count:
                self.send(self.next)
                self.next += self.tasks

    def send(self, number: int) -> None:
        self.collector.emit([number], number if self.ids else None)

    def ack(self, message_id):
        self.acked += 1

    def fail(self, message_id):
        self.failed += 1
        if self.replay:
            self.replays.append(message_id)

    def exhausted(self):
        return self.next >= self.count and not self.replays

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("n"))


class Join(BaseRichBolt):
    """Keeps the first of two tuples with the same first value, and emits when the second comes, anchored to both."""

    def prepare(self, conf, context, collector):
        self.collector = collector
        self.waiting: dict[Any, Any] = {}

    def execute(self, tup):
        other = self.waiting.pop(tup[0], None)
        if other is None:
            self.waiting[tup[0]] = tup
            return
        self.collector.emit([tup[0]], [other, tup])
        self.collector.ack(other)
        self.collector.ack(tup)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("n"))
