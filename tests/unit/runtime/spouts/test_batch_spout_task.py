"""A task of a `BatchSpout`: what it emits, cuts and is told; and what is left of that after it was killed."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from counting import Counting, KilledAnywhere, chunks, numbers_of, settle
from stormtest import Spouts

from storm_on_spark.api import BatchSpout, Fields
from storm_on_spark.api.errors import CheckpointError, ComponentError, TupleError
from storm_on_spark.runtime.codec import chunk
from storm_on_spark.runtime.codec.chunk import Kind
from storm_on_spark.runtime.spouts import message_ids, spout_task
from storm_on_spark.runtime.spouts.batch_spout_task import BatchSpoutTask
from storm_on_spark.runtime.tracking.acker import ACKED, FAILED, INIT, TIMED_OUT


class Columns(BatchSpout):
    """Counts in batches of three; every fifth number has no message id. Emits again what failed, as `Counting` does."""

    def open(self, conf, context, collector):
        self.collector, self.lock = collector, threading.Lock()
        self.next, self.acked, self.failed, self.again, self.calls = 0, [], [], [], []

    def next_batch(self):
        if self.again:
            numbers, self.again = self.again, []
        else:
            numbers = list(range(self.next, self.next + 3))
            self.next += 3
        self.emit(numbers)

    def emit(self, numbers):
        ids = pa.array([None if number % 5 == 4 else number for number in numbers], pa.int32())
        self.collector.emit(pa.record_batch({"number": numbers}), ids)

    def ack_batch(self, message_ids):
        assert message_ids.type == pa.int32()
        self.acked += message_ids.to_pylist()
        self.calls.append(("ack", len(message_ids), self.collector.pending_count()))

    def fail_batch(self, message_ids):
        failed = message_ids.to_pylist()
        self.calls.append(("fail", len(failed), self.collector.pending_count()))
        self.failed += failed
        self.again += [number for number in failed if number % 2 == 0]
        self.emit([number for number in failed if number % 2])

    def exhausted(self):
        return self.next >= 100

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("number"))


def opened(spout: BatchSpout, folder: Path, conf: dict[str, Any] | None = None) -> BatchSpoutTask:
    task = Spouts(spout, folder, conf).open()
    assert isinstance(task, BatchSpoutTask)
    return task


def test_a_cut_holds_record_batches_inits_and_ids(tmp_path: Path) -> None:
    spouts = Spouts(Columns(), tmp_path)
    spouts.clock_ms = 1234
    task = spouts.open()
    for _ in range(4):
        assert task.next_tuple()
    assert (task.fresh, len(task.pending)) == (12, 10)
    cut = task.cut()
    assert (cut.tuples, cut.messages, cut.first) == (12, 10, 1)
    sent, roots = 0, set()
    values: dict[int, int] = {}
    targets = set()
    for header, body in chunks(tmp_path, 0, cut.end):
        if header.kind == Kind.ACKS:
            begun, _, marks, told = chunk.read_acks(header, body)
            assert (header.sequence, set(marks.tolist())) == (1234, {INIT})
            continue
        assert header.kind == Kind.ARROW
        targets.add(header.target)
        lineage, payload, _ = chunk.read_lineage(header, body)
        rows = chunk.read_batch(payload)["number"].to_pylist()
        sent ^= chunk.receipt(header, body)
        values.update(zip(rows, [int(root) & 0xFFFF for root in lineage.roots], strict=True))
        roots |= set(lineage.roots) - {0}
    assert len(targets) == 2, "both tasks of the reader get some"
    assert begun.tolist() == sorted(roots)
    assert told == sent != 0
    # Numbered in the order of the rows, those without an id left out.
    assert values == {n: 0 if n % 5 == 4 else n + 1 - n // 5 - (n % 5 > 4) for n in range(12)}
    assert task.stats.transferred == 12
    task.close()


def test_one_call_for_all_that_ended(tmp_path: Path) -> None:
    spouts = Spouts(Columns(), tmp_path)
    task = spouts.open()
    spouts.now = 1.0
    for _ in range(3):
        task.next_tuple()
    task.cut()
    spouts.now = 2.0
    task.next_tuple()
    task.cut()
    spouts.now = 3.0
    settle(task, 0, [1, 2, 3, 9], ACKED)
    assert (task.spout.acked, task.spout.calls) == ([0, 1, 2, 10], [("ack", 4, 6)])
    assert task.latencies.count == 4
    roots = np.array([number + (task.task << 44) for number in (3, 4, 5, 6)], np.uint64)
    task.settle(1, roots, np.array([ACKED, FAILED, TIMED_OUT, ACKED], np.uint8))
    assert task.spout.calls[1:] == [("ack", 1, 3), ("fail", 2, 3)]
    assert (task.spout.acked[4:], task.spout.failed) == ([6], [3, 5])
    assert (task.stats.acked, task.stats.failed, task.stats.timed_out) == (5, 2, 1)
    task.close()


def test_ids_in_any_form(tmp_path: Path) -> None:
    class Any_(Columns):
        def next_batch(self):
            ids = np.array([7, 8])
            batch = pa.record_batch({"number": [1, 2]})
            self.collector.emit(batch, ids)
            ids[:] = 0  # it is the spout's own
            self.collector.emit(batch, [9, None])
            self.collector.emit(batch, pa.chunked_array([[10], [11]]))
            self.collector.emit(batch)
            self.collector.emit(batch.slice(0, 0), [])

        def ack_batch(self, message_ids):
            self.acked += message_ids.to_pylist()

    task = opened(Any_(), tmp_path)
    task.next_tuple()
    assert task.fresh == 8
    cut = task.cut()
    assert (cut.tuples, cut.messages) == (8, 5)
    settle(task, 0, numbers_of(task), ACKED)
    assert task.spout.acked == [7, 8, 9, 10, 11]
    task.close()


@pytest.mark.parametrize(
    ("emit", "message"),
    [
        (lambda c, b: c.emit([1]), "emitted a list; emit a pyarrow.RecordBatch"),
        (lambda c, b: c.emit(b, [1]), "emitted 1 message id.s. with a batch of 2 row"),
        (lambda c, b: c.emit(b, [1, "a"]), "emitted message ids that can't be an Arrow array"),
        (lambda c, b: c.emit(b, 7), "emitted message ids that can't be an Arrow array"),
        (lambda c, b: c.emit(b, stream="no"), 'emitted to stream "no", which it does not declare'),
        (lambda c, b: c.emit(pa.record_batch({"n": [1]})), 'emitted a batch of columns "n", not "number"'),
        (lambda c, b: (c.emit(b, [1, 2]), c.emit(b, ["a", "b"])), "type string after others of type int64"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path: Path, emit, message: str) -> None:
    class Wrong(Columns):
        def next_batch(self):
            emit(self.collector, pa.record_batch({"number": [1, 2]}))

    task = opened(Wrong(), tmp_path)
    with pytest.raises(ComponentError, match=rf'"spout" \(task \d\) failed in next_batch: TupleError: .*{message}'):
        task.next_tuple()
    task.close()


def test_a_refused_batch_leaves_nothing(tmp_path: Path) -> None:
    class Careless(Columns):
        def next_batch(self):
            try:
                self.collector.emit(pa.record_batch({"wrong": [1, 2]}), [1, 2])
            except TupleError as error:
                self.collector.report_error(error)

    task = opened(Careless(), tmp_path)
    assert not task.next_tuple()
    assert (len(task.pending), task.fresh, len(task.errors)) == (0, 0, 1)
    task.close()


def test_without_ackers_messages_are_acked_when_they_are_emitted(tmp_path: Path) -> None:
    task = opened(Columns(), tmp_path, {"topology.acker.executors": 0})
    task.next_tuple()
    task.next_tuple()
    assert (task.spout.acked, len(task.pending), task.stats.acked) == ([0, 1, 2, 3, 5], 0, 5)
    cut = task.cut()
    assert {header.kind for header, _ in chunks(tmp_path, 0, cut.end)} == {Kind.ARROW}
    task.close()


def test_errors_name_the_phase(tmp_path: Path) -> None:
    class Bad(Columns):
        def ack_batch(self, message_ids):
            raise ValueError("no")

        fail_batch = ack_batch

    task = opened(Bad(), tmp_path)
    task.next_tuple()
    task.cut()
    with pytest.raises(ComponentError, match="failed in ack_batch: ValueError: no") as raised:
        settle(task, 0, [1], ACKED)
    assert raised.value.input == "1 message id: [0]"
    with pytest.raises(ComponentError, match="failed in fail_batch: ValueError: no"):
        settle(task, 0, [2], FAILED)
    task.close()


def test_old_messages_keep_the_type_of_their_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spout_task, "STRAGGLERS", 3)
    spouts = Spouts(Columns(), tmp_path, segment_bytes=3000)
    task = spouts.open()
    lost = [1, 3]
    for batch in range(100):
        task.next_tuple()
        task.cut()
        settle(task, batch, [n for n in numbers_of(task) if n not in lost], ACKED)
        task.trim(task.log.end)
    again = spouts.open()
    assert [n for n in numbers_of(again) if n in lost] == lost
    settle(again, 100, numbers_of(again), ACKED)
    assert sorted(again.spout.acked) == [n for n in range(300) if n % 5 != 4]


def test_a_spout_may_become_columnar_and_back(tmp_path: Path) -> None:
    """Its log has ids of both kinds then."""

    class Rows(Counting):
        def emit(self, number):
            self.collector.emit([number], message_id=number)

        def ack(self, message_id):
            self.acked.append(message_id)

    class Batches(Columns):
        def ack_batch(self, message_ids):
            self.acked += message_ids.to_pylist()

    rows = Spouts(Rows(), tmp_path).open()
    rows.next_tuple()
    rows.cut()
    batches = Spouts(Batches(), tmp_path).open()
    batches.next_tuple()
    batches.cut()
    rows = Spouts(Rows(), tmp_path).open()
    settle(rows, 0, numbers_of(rows), ACKED)
    assert rows.spout.acked == [0, 1, 2, 3]
    batches = Spouts(Batches(), tmp_path).open()
    settle(batches, 0, numbers_of(batches), ACKED)
    assert batches.spout.acked == [0, 1, 2, 3]


def test_ids_that_are_no_arrow_array_keep_a_spout_from_becoming_columnar(tmp_path: Path) -> None:
    task = Spouts(Counting(), tmp_path).open()  # its ids are tuples of a text and a number
    task.next_tuple()
    task.cut()
    with pytest.raises(CheckpointError, match=r'spout "spout" \(task 3\) has pending messages whose ids are not an'):
        Spouts(Columns(), tmp_path).open()


def test_damaged_ids_are_refused() -> None:
    data = message_ids.encode(pa.array(["a", "b"]))
    assert message_ids.decode(data).to_pylist() == ["a", "b"]
    for cut in (0, 5, len(data) // 2):
        with pytest.raises(CheckpointError, match="message ids in a spout log can't be read"):
            message_ids.decode(data[:cut])


class KilledAnywhereInBatches(KilledAnywhere):
    spout = Columns

    @staticmethod
    def number_of(message_id: Any) -> int:
        return message_id.as_py()


TestKilledAnywhereInBatches = KilledAnywhereInBatches.TestCase
del KilledAnywhere  # it is run where it is
