"""Tuples that Spark loses, or brings twice, between two stages: their messages fail, and nothing is acked in error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from stormtest import make_worker, tuples_chunk

from storm_on_spark.api import BaseBasicBolt, BaseRichBolt, BaseRichSpout, Fields, TopologyBuilder
from storm_on_spark.runtime.bolts.stage import Row
from storm_on_spark.runtime.codec import chunk
from storm_on_spark.runtime.codec.chunk import Kind
from storm_on_spark.runtime.tracking.acker import ACKED, FAILED
from storm_on_spark.testing.simulated import SimulatedSpark

pytestmark = pytest.mark.usefixtures("hosts_in_this_process")

LIMIT = 60


class Numbers(BaseRichSpout):
    """Emits what failed again."""

    def open(self, conf, context, collector):
        self.collector, self.next, self.acked, self.failed = collector, 0, [], []

    def next_tuple(self):
        if self.next < LIMIT:
            self.collector.emit([self.next], message_id=self.next)
            self.next += 1

    def ack(self, message_id):
        self.acked.append(message_id)

    def fail(self, message_id):
        self.failed.append(message_id)
        self.collector.emit([message_id], message_id=message_id)

    def exhausted(self):
        return self.next >= LIMIT

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("number"))


class Twice(BaseBasicBolt):
    def execute(self, tup, collector):
        collector.emit([tup[0], "a"])
        collector.emit([tup[0], "b"])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("number", "part"))


class Seen(BaseRichBolt):
    """Notes what it gets, and holds every fifth tuple until the next one comes."""

    def prepare(self, conf, context, collector):
        self.collector, self.seen, self.held = collector, [], []

    def execute(self, tup):
        self.seen.append((tup[0], tup[1]))
        for held in self.held:
            self.collector.ack(held)
        self.held = [tup] if tup[0] % 5 == 0 else []
        if not self.held:
            self.collector.ack(tup)

    def declare_output_fields(self, declarer):
        pass


class Tampering(SimulatedSpark):
    """An exchange that changes one chunk of tuples in one micro-batch."""

    def __init__(self, *args: Any, change: Callable[[Row], list[Row]], **options: Any) -> None:
        self.change, self.changed_in = change, None
        super().__init__(*args, **options)

    def exchanged(self, batch: int, rows: list[Row]) -> list[Row]:
        rows = super().exchanged(batch, rows)
        tuples = [i for i, (_, body) in enumerate(rows) if chunk.read_header(body).kind == Kind.TUPLES]
        if batch < 2 or self.changed_in not in (None, batch) or not tuples:
            return rows
        self.changed_in = batch
        return [*rows[: tuples[0]], *self.change(rows[tuples[0]]), *rows[tuples[0] + 1 :]]


def of_another_attempt(row: Row) -> list[Row]:
    """The stage before was computed again, and its bolt emitted one tuple less to this task."""
    key, body = row
    header = chunk.read_header(body)
    lineage, payload, _ = chunk.read_lineage(header, body)
    values = list(chunk.read_rows(header, payload))[1:]
    head = {"target": header.target, "source": header.source, "sequence": header.sequence, "stream": header.stream}
    return [(key, tuples_chunk(values, lineage.roots[1:], lineage.edges[1:], **head))]


@pytest.mark.parametrize("ackers", [1, 2])
@pytest.mark.parametrize("change", [lambda row: [], lambda row: [row, row], of_another_attempt])
def test_what_was_lost_or_came_twice_fails_and_is_emitted_again(
    tmp_path: Path, change: Callable[[Row], list[Row]], ackers: int
) -> None:
    builder = TopologyBuilder()
    builder.set_spout("spout", Numbers())
    builder.set_bolt("twice", Twice()).shuffle_grouping("spout")
    builder.set_bolt("seen", Seen(), 2).fields_grouping("twice", "number")
    spec = make_worker(builder, {"topology.acker.executors": ackers}, 2).spec
    cluster = Tampering(spec, tmp_path, Random(1), change=change)
    cluster.start()
    for _ in range(80):
        cluster.step()
        cluster.clock.advance(0.01)
        (loop,) = [loop for host in cluster.hosts for loop in host.loops.values()]
        if len(loop.task.spout.acked) == LIMIT - 12 and loop.task.spout.next == LIMIT:
            break
    spout = loop.task.spout
    ended = Counter((batch, code) for batch, _, code in cluster.outcomes)
    assert cluster.changed_in is not None
    assert ended[cluster.changed_in, FAILED] > 0, "all that was open has failed"
    assert ended[cluster.changed_in, ACKED] == 0
    assert {batch for batch, code in ended if code == FAILED} == {cluster.changed_in}
    assert [error.component for error in cluster.errors] == ["__acker"] * ackers
    assert "lost tuples between two stages" in cluster.errors[0].message
    assert sorted(Counter(spout.acked).values())[-1] == 1
    assert set(spout.failed) <= {*spout.acked, *(message for _, message in loop.task.pending.items())}
