"""A spout that counts, and what tests ask of its task."""

from __future__ import annotations

import threading
from collections import Counter, deque
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from stormtest import Spouts

from storm_on_spark.api import BaseRichSpout, Fields
from storm_on_spark.runtime.codec import chunk
from storm_on_spark.runtime.codec.chunk import Kind
from storm_on_spark.runtime.spouts import spout_task
from storm_on_spark.runtime.spouts.log import MESSAGE_IDS, SNAPSHOT, read_entries
from storm_on_spark.runtime.spouts.spout_task import SpoutTask
from storm_on_spark.runtime.tracking.acker import ACKED, FAILED, TIMED_OUT
from storm_on_spark.runtime.tracking.ids import root_base
from storm_on_spark.runtime.values.batches import to_rows


class Counting(BaseRichSpout):
    """Counts; emits what failed again, at once or with the next call."""

    def open(self, conf, context, collector):
        self.collector, self.lock = collector, threading.Lock()
        self.next, self.acked, self.failed, self.again = 0, [], [], deque()

    def next_tuple(self):
        if self.again:
            self.emit(self.again.popleft())
        else:
            self.emit(self.next)
            self.next += 1

    def emit(self, number):
        if number % 5 == 4:
            self.collector.emit([number])
        else:
            self.collector.emit([number], message_id=("id", number))

    def ack(self, message_id):
        self.acked.append(message_id[1])

    def fail(self, message_id):
        self.failed.append(message_id[1])
        if message_id[1] % 2:
            self.emit(message_id[1])
        else:
            self.again.append(message_id[1])

    def exhausted(self):
        return self.next >= 100

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("number"))


def chunks(folder: Path, start: int, end: int) -> list[tuple[chunk.Header, bytes]]:
    return [
        (chunk.read_header(body), body)
        for _, target, body in read_entries(folder, start, end, lambda t: t not in (SNAPSHOT, MESSAGE_IDS))
    ]


def settle(task: SpoutTask, batch: int, numbers: list[int], code: int) -> None:
    roots = np.array([root_base(task.task) + n for n in sorted(numbers)], np.uint64)
    task.settle(batch, roots, np.full(len(roots), code, np.uint8))


def numbers_of(task: SpoutTask) -> list[int]:
    """The numbers of the pending messages."""
    numbers = [number for number, _ in task.pending.items()]
    assert len(numbers) == len(task.pending)
    return numbers


class KilledAnywhere(RuleBasedStateMachine):
    """A counting spout that is cut, answered, trimmed and killed at random; nothing is lost or told twice.

    The coordinator's part: outcomes are kept until a cut has saved them, and told again after a restart.
    """

    spout: type = Counting

    @staticmethod
    def number_of(message_id: Any) -> int:
        """The number that a message id stands for."""
        return message_id[1]

    @initialize(seed=st.integers(0, 2**32))
    def begin(self, seed: int) -> None:
        self.random = Random(seed)
        self.temporary = TemporaryDirectory()
        self.folder = Path(self.temporary.name) / "log"
        self.spouts = Spouts(self.spout(), self.folder, segment_bytes=1)
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(spout_task, "STRAGGLERS", 2)
        self.task = self.spouts.open()
        self.batch = 0
        #: Outcomes that are not in a snapshot yet: (batch, numbers, code).
        self.unsaved: list[tuple[int, list[int], int]] = []
        #: Root number -> spout's number, for all messages in the log; what has ended.
        self.logged: dict[int, int] = {}
        self.ended: dict[int, int] = {}
        #: What the log says was emitted, in order.
        self.emitted: list[int] = []
        self.consumed = 0

    @rule(count=st.integers(1, 6))
    def emit(self, count: int) -> None:
        for _ in range(count):
            self.task.next_tuple()

    @rule()
    def cut(self) -> None:
        if not self.task.dirty:
            return
        cut = self.task.cut()
        self.unsaved = [told for told in self.unsaved if told[0] > self.task.settled_batch]
        # Several tasks may read the stream, so values are put in order by number of emit within the cut.
        values, numbers = [], []
        for header, body in chunks(self.folder, cut.position, cut.end):
            if header.kind != Kind.ACKS:
                lineage, payload, _ = chunk.read_lineage(header, body)
                batch = header.kind == Kind.ARROW
                read = to_rows(chunk.read_batch(payload)) if batch else chunk.read_rows(header, payload)
                rows = [value for (value,) in read]
                values += rows
                roots = [0] * len(rows) if lineage is None else list(lineage.roots)
                numbers += [(r - root_base(self.task.task), v) for r, v in zip(roots, rows, strict=True) if r]
        assert len(values) == cut.tuples
        assert sorted(n for n, _ in numbers) == list(range(cut.first, cut.first + cut.messages))
        for number, value in numbers:
            assert number not in self.logged, "a message number was given twice"
            self.logged[number] = value
        self.emitted += sorted(values)

    @precondition(lambda self: set(self.logged) - set(self.ended))
    @rule(code=st.sampled_from([ACKED, ACKED, FAILED, TIMED_OUT]), share=st.floats(0.1, 1))
    def batch_ends(self, code: int, share: float) -> None:
        """Spark has committed a batch in which some messages ended."""
        open_ones = sorted(set(self.logged) - set(self.ended))
        numbers = sorted(n for n in open_ones if self.random.random() < share)
        self.batch += 1
        self.ended.update(dict.fromkeys(numbers, code))
        self.unsaved.append((self.batch, numbers, code))
        settle(self.task, self.batch, numbers, code)

    @rule(part=st.floats(0, 1))
    def committed(self, part: float) -> None:
        log = self.task.log
        ends = [cut.end for cut in log.cuts(log.bases()[0])] if log.end else []
        if ends:
            self.consumed = max(self.consumed, ends[int(part * (len(ends) - 1))])
            self.task.trim(self.consumed)

    @rule(extra=st.booleans())
    def killed(self, extra: bool) -> None:
        """The process goes without a word; the next one is told again what may not have been saved, and more."""
        self.task = self.spouts.open()
        assert self.task.settled_batch <= self.batch
        for batch, numbers, code in self.unsaved:
            settle(self.task, batch, numbers, code)
            if extra:
                settle(self.task, batch, numbers, code)

    @invariant()
    def nothing_is_lost(self) -> None:
        if not hasattr(self, "task"):
            return
        task, spout = self.task, self.task.spout
        in_log = {n for n in numbers_of(task) if n in self.logged}
        assert in_log == set(self.logged) - set(self.ended)
        assert {n: self.number_of(i) for n, i in task.pending.items() if n in self.logged} == {
            n: self.logged[n] for n in in_log
        }
        acked = Counter(self.logged[n] for n, code in self.ended.items() if code == ACKED)
        failed = Counter(self.logged[n] for n, code in self.ended.items() if code != ACKED)
        assert Counter(spout.acked) == acked
        assert Counter(spout.failed) == failed
        # Without a gap or a repeat: what is in the log and what is not cut yet, first emits only.
        first = sorted(set(self.emitted))
        assert first == list(range(len(first)))
        assert Counter(self.emitted) <= Counter(range(spout.next)) + failed
        # What Spark has not committed is there to be read.
        list(read_entries(self.folder, self.consumed, task.log.end, lambda t: True))

    def teardown(self) -> None:
        if not hasattr(self, "task"):
            return
        self.cut()
        self.batch_ends(ACKED, 2.0)
        self.nothing_is_lost()
        assert not {n for n in numbers_of(self.task) if n in self.logged}
        self.patch.undo()
        self.task.close()
        self.temporary.cleanup()
