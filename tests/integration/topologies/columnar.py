"""A topology whose tuples come as record batches: a `BatchSpout`, a `BatchBolt`, and an ordinary bolt with state."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from topologies.notes import NOTES, note, read_notes

from storm_on_spark import BaseBasicBolt, BatchBolt, BatchSpout, Fields, Topology, TopologyBuilder

BATCH = 500
WORDS = 17


def is_tracked(number: int) -> bool:
    """Whether a row has a message id."""
    return number % 11 != 10


def fails_once(number: int) -> bool:
    """Whether a row fails when it comes for the first time."""
    return number % 7 == 3 and is_tracked(number)


def line_of(number: int) -> str:
    return f"w{number % WORDS} all"


class Lines(BatchSpout):
    """Emits lines in batches and keeps book of acks and fails by number, in attributes; emits again what failed.

    Its last batch waits until this many spout hosts have begun: a test that kills them has the time it needs.
    """

    def __init__(self, count: int, hosts: int) -> None:
        self.count = count
        self.hosts = hosts
        self.next = 0
        self.acks = np.zeros(count, np.uint8)
        self.fails = np.zeros(count, np.uint8)
        self.again: list[pa.Array] = []

    def open(self, conf, context, collector):
        self.conf, self.collector = conf, collector
        # Not part of the state, since a lock can't be pickled: new in every process.
        self.new = threading.Lock()

    def next_batch(self):
        if self.new.acquire(blocking=False):
            note(self.conf, "begun", self.next)
        if self.again:
            self.emit(self.again.pop(0).to_pylist())
        elif self.next < self.count - BATCH or (self.next < self.count and self.enough_hosts()):
            numbers = list(range(self.next, min(self.next + BATCH, self.count)))
            self.next = numbers[-1] + 1
            self.emit(numbers)

    def enough_hosts(self):
        return len(read_notes(Path(self.conf[NOTES]), "begun")) >= self.hosts

    def emit(self, numbers):
        lines = [line_of(number) for number in numbers]
        fails = [fails_once(number) and not self.fails[number] for number in numbers]
        ids = pa.array([number if is_tracked(number) else None for number in numbers], pa.int64())
        self.collector.emit(pa.record_batch({"line": lines, "fail": fails}), ids)

    def ack_batch(self, message_ids):
        assert message_ids.type == pa.int64()
        np.add.at(self.acks, message_ids.to_numpy(), 1)
        note(self.conf, "acked", len(message_ids))

    def fail_batch(self, message_ids):
        np.add.at(self.fails, message_ids.to_numpy(), 1)
        self.again.append(message_ids)

    def exhausted(self):
        return self.next >= self.count and not self.again

    def close(self):
        note(self.conf, "closed", self.next, self.acks.tolist(), self.fails.tolist(), self.collector.pending_count())

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("line", "fail"))


class Split(BatchBolt):
    """Splits lines in columns, and fails those that say so."""

    stateless = True

    def execute_batch(self, batch, collector):
        collector.fail(np.flatnonzero(batch["fail"].to_numpy(zero_copy_only=False)))
        rows = np.flatnonzero(~batch["fail"].to_numpy(zero_copy_only=False))
        words = pc.utf8_split_whitespace(batch["line"].take(pa.array(rows)))
        parents = rows[pc.list_parent_indices(words).to_numpy()]
        collector.emit(pa.record_batch([pc.list_flatten(words)], names=["word"]), parents)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("word"))


class Count(BaseBasicBolt):
    """Counts words, one by one."""

    def prepare(self, conf, context):
        self.counts: Counter[str] = Counter()

    def execute(self, tup, collector):
        self.counts[tup["word"]] += 1


def expected_counts(count: int) -> Counter[str]:
    return Counter(word for number in range(count) for word in line_of(number).split())


def columnar(count: int, max_pending: int | None = None, hosts: int = 1) -> Topology:
    builder = TopologyBuilder()
    spout = builder.set_spout("lines", Lines(count, hosts))
    if max_pending is not None:
        spout.set_max_spout_pending(max_pending)
    builder.set_bolt("split", Split(), 2).shuffle_grouping("lines")
    builder.set_bolt("count", Count(), 2).fields_grouping("split", "word")
    return builder.create_topology()
