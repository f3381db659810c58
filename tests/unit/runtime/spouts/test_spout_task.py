"""A spout task: what it emits, cuts and is told; and what is left of that after it was killed."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from counting import Counting, KilledAnywhere, chunks, numbers_of, settle
from hypothesis import settings
from lengths import examples
from stormtest import Spouts

from storm_on_spark.api.errors import CheckpointError, ComponentError
from storm_on_spark.runtime.codec import chunk
from storm_on_spark.runtime.codec.chunk import Kind
from storm_on_spark.runtime.spouts import spout_task
from storm_on_spark.runtime.spouts.log import SpoutLog
from storm_on_spark.runtime.tracking.acker import ACKED, FAILED, INIT, TIMED_OUT
from storm_on_spark.runtime.tracking.ids import root_base
from storm_on_spark.runtime.values import pickling

# --- one cut -----------------------------------------------------------------------------------------------------


def test_a_cut_holds_tuples_inits_ids_and_the_snapshot(tmp_path: Path) -> None:
    spouts = Spouts(Counting(), tmp_path)
    spouts.clock_ms = 1234
    task = spouts.open()
    for _ in range(10):
        assert task.next_tuple()
    assert (task.fresh, task.dirty) == (10, True)
    cut = task.cut()
    assert (cut.tuples, cut.messages, cut.first, cut.clock, cut.snapshot) == (10, 8, 1, 1234, 0)
    assert (task.fresh, task.dirty) == (0, False)
    assert task.stats.emitted == 10
    assert task.stats.transferred == 10
    roots: set[int] = set()
    receipts = 0
    values = []
    for header, body in chunks(tmp_path, 0, cut.end):
        assert header.source == task.task
        if header.kind == Kind.TUPLES:
            lineage, payload, _ = chunk.read_lineage(header, body)
            values += chunk.read_rows(header, payload)
            roots.update(list(lineage.roots))
            assert not lineage.reported
            receipts ^= chunk.receipt(header, body)
        else:
            assert (header.kind, header.sequence) == (Kind.ACKS, 1234)
            begun, xors, marks, sent = chunk.read_acks(header, body)
            assert (set(xors.tolist()), set(marks.tolist())) == ({0}, {INIT}), "who executes the tuples tells the rest"
    assert sorted(values) == [(n,) for n in range(10)]
    assert begun.tolist() == sorted(roots - {0}) == [root_base(task.task) + n for n in range(1, 9)]
    assert receipts == sent != 0
    task.close()


@pytest.mark.parametrize("ackers", [1, 3])
@pytest.mark.parametrize("readers", [0, 1, 2])
def test_each_acker_hears_of_its_roots_and_of_all_that_was_sent(tmp_path: Path, readers: int, ackers: int) -> None:
    task = Spouts(Counting(), tmp_path, {"topology.acker.executors": ackers}, readers=readers).open()
    for _ in range(1000):
        task.next_tuple()
    cut = task.cut()
    sent, told, begun = 0, [], {}
    for header, body in chunks(tmp_path, 0, cut.end):
        if header.kind == Kind.ACKS:
            roots, _, _, receipts = chunk.read_acks(header, body)
            told.append(receipts)
            begun[header.target] = roots.tolist()
            assert len(body) < 100
        else:
            sent ^= chunk.receipt(header, body)
    assert told == [sent] * ackers
    assert (sent != 0) == (readers > 0)
    roots = [root for part in begun.values() for root in part]
    assert sorted(roots) == [root_base(task.task) + n for n in range(1, 801)]
    assert all(len({root % ackers for root in part}) == 1 for part in begun.values())
    task.close()


def test_ticks_of_the_wall_do_not_matter_but_latency_is_measured(tmp_path: Path) -> None:
    spouts = Spouts(Counting(), tmp_path)
    task = spouts.open()
    spouts.now = 10.0
    task.next_tuple()
    task.cut()
    spouts.now = 10.25
    settle(task, 0, [1], FAILED)
    assert task.latencies.count == 0
    spouts.now = 11.0
    settle(task, 1, [2], ACKED)
    assert task.latencies.count == 0, "number 0 waits for the next call"
    task.next_tuple()
    task.cut()
    spouts.now = 11.5
    settle(task, 2, [2], ACKED)
    assert task.latencies.percentile(50) == pytest.approx(500, rel=0.05)
    task.close()


def test_a_message_that_fail_emits_again_is_as_old_as_its_emit(tmp_path: Path) -> None:
    spouts = Spouts(Counting(), tmp_path)
    task = spouts.open()
    task.next_tuple()
    task.next_tuple()
    spouts.now = 100.0
    settle(task, 0, [2], TIMED_OUT)
    spouts.now = 100.5
    settle(task, 1, [3], ACKED)
    assert task.latencies.percentile(50) == pytest.approx(500, rel=0.05)
    assert (task.stats.acked, task.stats.failed, task.stats.timed_out) == (1, 1, 1)
    task.close()


def test_each_message_is_answered_once(tmp_path: Path) -> None:
    task = Spouts(Counting(), tmp_path).open()
    for _ in range(3):
        task.next_tuple()
    settle(task, 0, [1, 3], ACKED)
    settle(task, 0, [1, 3], ACKED)
    settle(task, 1, [3], FAILED)
    settle(task, 1, [99], FAILED)
    assert (task.spout.acked, task.spout.failed) == ([0, 2], [])
    assert numbers_of(task) == [2]
    task.close()


def test_errors_name_the_phase(tmp_path: Path) -> None:
    class Bad(Counting):
        def next_tuple(self):
            raise OSError("gone")

        def ack(self, message_id):
            raise ValueError(message_id)

        fail = ack

        def exhausted(self):
            raise KeyError("k")

    class BadOpen(Counting):
        def open(self, conf, context, collector):
            raise OSError("no")

    task = Spouts(Bad(), tmp_path).open()
    with pytest.raises(ComponentError, match=r'"spout" \(task \d\) failed in next_tuple: OSError: gone'):
        task.next_tuple()
    task.emit([1], "m", "default")
    with pytest.raises(ComponentError, match="failed in ack: ValueError: m") as raised:
        settle(task, 0, [1], ACKED)
    assert raised.value.input == "message id 'm'"
    task.emit([1], {"url": "http://ann:hush@host", "rest": "x" * 500}, "default")
    with pytest.raises(ComponentError, match="failed in fail") as raised:
        settle(task, 0, [2], FAILED)
    assert raised.value.input.startswith("message id {'url': 'http://ann:*****@host', 'rest': 'xxx")
    assert len(raised.value.input) == 200
    with pytest.raises(ComponentError, match="failed in exhausted"):
        task.exhausted()
    task.close()
    with pytest.raises(ComponentError, match="failed in open: OSError: no"):
        Spouts(BadOpen(), tmp_path / "other").open()


# --- no ackers, emits in odd places --------------------------------------------------------------------------------


def test_without_ackers_a_message_is_acked_when_it_is_emitted(tmp_path: Path) -> None:
    class Chatty(Counting):
        def next_tuple(self):
            self.collector.emit([self.next], message_id=("id", self.next))
            assert self.next not in self.acked, "not before next_tuple has returned"
            self.next += 1

        def ack(self, message_id):
            super().ack(message_id)
            if message_id[1] == 2:
                self.collector.emit([1000], message_id=("id", 1000))

    spouts = Spouts(Chatty(), tmp_path, {"topology.acker.executors": 0})
    task = spouts.open()
    for _ in range(4):
        task.next_tuple()
    assert task.spout.acked == [0, 1, 2, 1000, 3]
    assert (len(task.pending), task.stats.acked) == (0, 5)
    cut = task.cut()
    assert {header.kind for header, _ in chunks(tmp_path, 0, cut.end)} == {Kind.TUPLES}
    task.close()
    assert spouts.open().spout.acked == [0, 1, 2, 1000, 3]


def test_a_spout_may_emit_in_open_at_every_start(tmp_path: Path) -> None:
    class Eager(Counting):
        def open(self, conf, context, collector):
            super().open(conf, context, collector)
            collector.emit([-1], message_id=("id", -1))

    spouts = Spouts(Eager(), tmp_path)
    numbers = []
    for start in range(3):
        task = spouts.open()
        task.next_tuple()
        task.cut()
        numbers.append(numbers_of(task))
        assert [message_id for _, message_id in task.pending.items()] == [
            ("id", n) for n in (-1, 0, -1, 1, -1, 2)[: 2 * start + 2]
        ]
        task.close()
    assert numbers[-1] == [1, 2, 3, 4, 5, 6]


def test_values_that_can_not_be_pickled_are_named(tmp_path: Path) -> None:
    task = Spouts(Counting(), tmp_path).open()
    task.emit([threading.Lock()], None, "default")
    with pytest.raises(
        ValueError, match='emitted a value for field "number" of stream "default" that can\'t be pickled'
    ):
        task.cut()
    task.close()


# --- after a kill -----------------------------------------------------------------------------------------------------


def test_a_snapshot_of_another_version_is_refused(tmp_path: Path) -> None:
    spouts = Spouts(Counting(), tmp_path)
    task = spouts.open()
    task.next_tuple()
    task.close()
    log = SpoutLog(tmp_path)
    log.append([], tuples=0, messages=0, first=1, clock=0, snapshot=pickling.dumps((9, b"")))
    log.close()
    with pytest.raises(CheckpointError, match=r'snapshot of spout "spout" \(task \d\) has format version 9'):
        spouts.open()


def test_what_open_makes_and_can_not_be_pickled_is_there_after_a_restart(tmp_path: Path) -> None:
    spouts = Spouts(Counting(), tmp_path)
    task = spouts.open()
    task.next_tuple()
    task.cut()
    task = spouts.open()
    assert task.spout.next == 1
    assert task.spout.lock.acquire(blocking=False)
    task.next_tuple()
    task.close()


def test_the_log_outlives_messages_that_were_acked_after_the_last_cut(tmp_path: Path) -> None:
    """A restart goes back to the last cut, where these were pending; their acks are told again and need their ids."""
    spouts = Spouts(Counting(), tmp_path, segment_bytes=2000)
    task = spouts.open()
    while len(task.log.bases()) < 3:
        task.next_tuple()
        task.cut()
    numbers = numbers_of(task)
    settle(task, 0, numbers, ACKED)
    task.trim(task.log.end)
    again = spouts.open()
    assert numbers_of(again) == numbers
    settle(again, 0, numbers, ACKED)
    assert again.spout.acked == [n for n in range(again.spout.next) if n % 5 != 4]


def test_a_few_old_messages_do_not_keep_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spout_task, "STRAGGLERS", 3)
    spouts = Spouts(Counting(), tmp_path, segment_bytes=3000)
    task = spouts.open()
    lost = [1, 3]
    for batch in range(300):
        task.next_tuple()
        task.cut()
        settle(task, batch, [n for n in numbers_of(task) if n not in lost], ACKED)
        task.trim(task.log.end)
    assert len(task.log.bases()) <= 3
    assert task.log.bases()[0] > 0
    for _ in range(2):
        task = spouts.open()
        assert [n for n in numbers_of(task) if n in lost] == lost
        task.next_tuple()
        task.cut()
    settle(task, 300, numbers_of(task), ACKED)
    assert sorted(task.spout.acked) == [n for n in range(302) if n % 5 != 4]


def test_many_old_messages_keep_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spout_task, "STRAGGLERS", 3)
    spouts = Spouts(Counting(), tmp_path, segment_bytes=3000)
    task = spouts.open()
    for _ in range(100):
        task.next_tuple()
        task.cut()
        task.trim(task.log.end)
    assert task.log.bases()[0] == 0
    assert len(spouts.open().pending) == 80


TestKilledAnywhere = KilledAnywhere.TestCase
TestKilledAnywhere.settings = settings(max_examples=examples(60), stateful_step_count=40, deadline=None)
