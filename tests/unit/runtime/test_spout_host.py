"""What a spout host does with one task: limits, cuts, answers; and its executor's thread."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stormtest import Spouts

from storm_on_spark.api import BaseRichSpout, Fields
from storm_on_spark.runtime import spout_host
from storm_on_spark.runtime.acker import ACKED
from storm_on_spark.runtime.ids import root_base
from storm_on_spark.runtime.messages import Consumed, Failed, Idle, Message, Progress, SetActive, Settle, Want
from storm_on_spark.runtime.spout_host import _Executor, _TaskLoop


class Endless(BaseRichSpout):
    """Emits as often as it is called, `width` bytes a tuple; counts what is done to it."""

    def __init__(self, width: int = 1, limit: int = 1 << 30):
        self.width, self.limit = width, limit

    def open(self, conf, context, collector):
        self.collector, self.next, self.calls = collector, 0, []

    def next_tuple(self):
        if self.next < self.limit:
            self.collector.emit(["x" * self.width], message_id=self.next)
            self.next += 1
            if self.next == 13:
                self.collector.report_error(ValueError("thirteen"))

    def activate(self):
        self.calls.append("activate")

    def deactivate(self):
        self.calls.append("deactivate")

    def close(self):
        self.calls.append("close")

    def exhausted(self):
        return self.next >= self.limit

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("text"))


def loop_of(folder: Path, conf: dict[str, Any] | None = None, **spout: Any) -> tuple[_TaskLoop, list[Message]]:
    spouts = Spouts(Endless(**spout), folder, conf)
    sent: list[Message] = []
    task = spouts.open()
    return _TaskLoop(task, spouts.worker.wiring.conf("spout"), sent.append, 0), sent


def settle(loop: _TaskLoop, batch: int, numbers: list[int]) -> None:
    roots = np.array([root_base(loop.task.task) + n for n in numbers], np.uint64)
    loop.handle(Settle(loop.task.task, batch, roots, np.full(len(roots), ACKED, np.uint8)))


# --- limits ----------------------------------------------------------------------------------------------------


def test_max_spout_pending_counts_messages_of_the_task(tmp_path: Path) -> None:
    loop, _ = loop_of(tmp_path, {"topology.max.spout.pending": 5})
    while loop.burst(True):
        pass
    assert (loop.task.spout.next, loop.blocked()) == (5, True)
    settle(loop, 0, [2, 4])
    while loop.burst(True):
        pass
    assert loop.task.spout.next == 7
    loop.task.close()


def test_tuples_that_wait_are_limited_until_batches_are_committed(tmp_path: Path) -> None:
    loop, sent = loop_of(tmp_path, {"topology.batch.max.tuples": 50})
    while loop.burst(True):
        loop.cut_if_due(True)
    assert loop.task.spout.next == 100
    cuts = [message for message in sent if isinstance(message, Progress) and message.cut]
    assert [cut.tuples for cut in cuts] == [50, 50], "a cut fits in a micro-batch"
    loop.handle(Consumed(loop.task.task, cuts[-1].position))
    assert not loop.blocked()
    loop.task.close()


def test_a_spout_gets_ready_what_the_next_micro_batches_hold_and_no_more(tmp_path: Path) -> None:
    loop, sent = loop_of(tmp_path)
    loop.handle(Want(20))
    while loop.burst(True):
        loop.cut_if_due(True)
    assert loop.task.spout.next == 40
    assert [m.tuples for m in sent if isinstance(m, Progress) and m.cut] == [20, 20]
    loop.handle(Want(100))
    while loop.burst(True):
        loop.cut_if_due(True)
    assert loop.task.spout.next == 200
    loop.task.close()


def test_bytes_that_wait_are_limited_but_nothing_waits_for_a_batch_that_never_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spout_host, "_GATHER_SECONDS", 0.0)
    loop, _ = loop_of(tmp_path, {"topology.spout.log.max.bytes": 100_000}, width=5_000)
    while loop.burst(True):
        loop.handle(Want())
        loop.cut_if_due(True)
    assert loop.task.log.end >= 100_000
    assert 10 < loop.task.spout.next < 200
    position = loop.task.log.end
    # Only acks are in the log behind what was consumed: no batch will come for these.
    for batch in range(30):
        settle(loop, batch, [batch + 1])
        loop.task.spout.state = "y" * 10_000 + str(batch)
        loop.task.cut()
    assert loop.blocked()
    loop.handle(Consumed(loop.task.task, position))
    assert loop.task.log.end - position >= 100_000
    assert not loop.blocked()
    loop.task.close()


def test_a_cut_of_large_tuples_is_bounded_by_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spout_host, "_CUT_SECONDS", 1e9)
    monkeypatch.setattr(spout_host, "_CUT_BYTES", 500_000)
    loop, sent = loop_of(tmp_path, {"topology.spout.log.max.bytes": 2_000_000}, width=20_000)
    while loop.burst(True):
        loop.cut_if_due(True)
    cuts = [message for message in sent if isinstance(message, Progress) and message.cut]
    assert len(cuts) >= 3
    # What a tuple takes is a guess before the first cut, and known from then on.
    assert all(cut.tuples <= 27 for cut in cuts)
    assert 1_400_000 < loop.task.log.end < 2_600_000
    loop.task.close()


def test_what_is_consumed_leaves_the_disk_with_the_next_cut(tmp_path: Path) -> None:
    limit = 400_000
    loop, _ = loop_of(tmp_path, {"topology.spout.log.max.bytes": limit}, width=20_000)
    for batch in range(6):
        while loop.burst(True):
            loop.handle(Want())
            loop.cut_if_due(True)
        size = sum(path.stat().st_size for path in tmp_path.iterdir())
        assert size < 1.5 * limit, batch
        settle(loop, batch, list(range(1, loop.task.spout.next + 1)))
        loop.handle(Want())
        loop.cut_if_due(True)
        loop.handle(Consumed(loop.task.task, loop.task.log.end))
    loop.task.close()


def test_an_inactive_spout_is_not_called(tmp_path: Path) -> None:
    loop, _ = loop_of(tmp_path)
    assert not loop.burst(False)
    assert loop.task.spout.next == 0
    loop.task.close()


def test_a_spout_is_held_only_while_no_call_and_no_cut_is_due(tmp_path: Path) -> None:
    loop, _ = loop_of(tmp_path, {"topology.max.spout.pending": 5})
    assert (loop.held(active=True), loop.held(active=False)) == (False, True)
    while loop.burst(True):
        pass
    assert loop.blocked()
    assert not loop.held(active=True), "what it emitted waits to be cut"
    loop.handle(Want())
    loop.cut_if_due(True)
    assert loop.held(active=True)
    settle(loop, 0, [2])
    assert not loop.held(active=True)
    loop.task.close()


def test_waits_of_an_idle_spout_grow_to_twenty_milliseconds_within_two_seconds() -> None:
    waits = [spout_host._idle_seconds(calls) for calls in range(1, 400)]
    assert waits == sorted(waits)
    assert (waits[0], waits[-1]) == (0.001, 0.02)
    assert 1.5 < sum(wait for wait in waits if wait < 0.02) < 2.5


# --- cuts and answers -------------------------------------------------------------------------------------------


def test_a_want_is_answered_by_a_cut_or_by_idle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spout_host, "_REPORT_SECONDS", 1e9)
    monkeypatch.setattr(spout_host, "_CUT_SECONDS", 1e9)
    loop, sent = loop_of(tmp_path, limit=3)
    loop.burst(True)
    loop.cut_if_due(True)
    assert sent == [], "nobody wants it yet"
    loop.handle(Want())
    loop.cut_if_due(True)
    (cut,) = sent
    assert isinstance(cut, Progress)
    assert (cut.cut, cut.tuples, cut.position) == (True, 3, loop.task.log.end)
    assert (cut.stats.emitted, cut.stats.pending, cut.stats.exhausted) == (3, 3, True)
    loop.handle(Want())
    loop.cut_if_due(False)
    assert sent[1:] == [Idle(loop.task.task, False)]
    loop.cut_if_due(False)
    assert len(sent) == 2, "one answer is enough"
    loop.task.close()


def test_a_spout_that_was_idle_is_cut_at_once_when_it_emits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spout_host, "_REPORT_SECONDS", 1e9)
    monkeypatch.setattr(spout_host, "_CUT_SECONDS", 1e9)
    loop, sent = loop_of(tmp_path, limit=0)
    loop.handle(Want())
    loop.burst(True)
    loop.cut_if_due(True)
    assert sent == [Idle(loop.task.task, True)]
    loop.task.spout.limit = 2
    loop.burst(True)
    loop.cut_if_due(True)
    assert [m.tuples for m in sent[1:]] == [2]
    loop.task.close()


def test_a_spout_that_goes_on_emitting_is_given_a_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spout_host, "_REPORT_SECONDS", 1e9)
    now = [100.0]
    monkeypatch.setattr(spout_host.time, "monotonic", lambda: now[0])
    loop, sent = loop_of(tmp_path)
    now[0] += 1
    loop.handle(Want())
    while not sent:
        loop.burst(True)
        loop.cut_if_due(True)
        now[0] += spout_host._GATHER_SECONDS / 4
    assert sent[0].tuples > 200, "not only the first burst"
    loop.task.close()


def test_a_cut_that_nobody_wants_is_made_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spout_host, "_REPORT_SECONDS", 1e9)
    now = [100.0]
    monkeypatch.setattr(spout_host.time, "monotonic", lambda: now[0])
    loop, sent = loop_of(tmp_path, limit=3)
    now[0] += 10
    loop.burst(True)
    loop.cut_if_due(True)
    now[0] += 0.9 * spout_host._CUT_SECONDS
    loop.cut_if_due(True)
    assert sent == []
    now[0] += 0.2 * spout_host._CUT_SECONDS
    loop.cut_if_due(True)
    assert [m.tuples for m in sent] == [3]
    loop.task.close()


def test_what_was_settled_is_saved_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spout_host, "_CUT_SECONDS", 0.0)
    monkeypatch.setattr(spout_host, "_CUT_SHARE", 0)
    loop, sent = loop_of(tmp_path, limit=3)
    loop.burst(True)
    loop.cut_if_due(True)
    assert sent[-1].saved_batch == -1
    settle(loop, 4, [1, 2])
    loop.handle(Want())
    loop.cut_if_due(True)
    progress, idle = sent[-2:]
    assert (progress.cut, progress.tuples, progress.saved_batch, progress.stats.acked) == (True, 0, 4, 2)
    assert progress.latencies.count == 2
    assert isinstance(idle, Idle), "a cut that only saves acks is no answer"
    loop.task.close()


def test_errors_and_counters_are_reported_without_a_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spout_host, "_CUT_SECONDS", 1e9)
    monkeypatch.setattr(spout_host, "_REPORT_SECONDS", 0.0)
    loop, sent = loop_of(tmp_path, limit=13)
    loop.burst(True)
    loop.cut_if_due(True)
    assert [(m.cut, m.errors, m.stats.pending) for m in sent] == [(False, ("ValueError: thirteen",), 13)]
    loop.cut_if_due(True)
    assert len(sent) == 1, "nothing is new"
    loop.task.close()


# --- the thread --------------------------------------------------------------------------------------------------


class Host:
    """What an executor needs of its host."""

    def __init__(self, make: Callable[[int], _TaskLoop]) -> None:
        self.make, self.sent = make, []

    def open(self, task: int) -> _TaskLoop:
        return self.make(task)

    def send(self, message: Message) -> None:
        self.sent.append(message)

    def component_of(self, task: int) -> str:
        return "spout"


def wait_for(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        threading.Event().wait(0.001)


@pytest.fixture
def started() -> Iterator[list[_Executor]]:
    executors: list[_Executor] = []
    yield executors
    for executor in executors:
        executor.stop()
        executor.join(20)
        assert not executor.is_alive()


def start(
    executors: list[_Executor], folder: Path, active: bool = True, spout: Any = None
) -> tuple[Any, Host, _Executor]:
    spouts = Spouts(spout or Endless(limit=10), folder)
    loops: list[_TaskLoop] = []

    def make(task: int) -> _TaskLoop:
        loops.append(_TaskLoop(spouts.open(), spouts.worker.wiring.conf("spout"), host.send, 0))
        return loops[-1]

    host = Host(make)
    executor = _Executor(host, (spouts.task_id,), active)  # type: ignore[arg-type]
    executors.append(executor)
    executor.start()
    wait_for(lambda: loops or host.sent)
    return loops[0] if loops else None, host, executor


def test_an_executor_activates_emits_cuts_and_closes(tmp_path: Path, started: list[_Executor]) -> None:
    loop, host, executor = start(started, tmp_path)
    wait_for(lambda: loop.task.stats.emitted == 10)
    for active in (True, False, False, True):
        executor.tell(SetActive(active))
    wait_for(lambda: len(loop.task.spout.calls) == 3)
    executor.tell(
        Settle(loop.task.task, 0, np.array([root_base(loop.task.task) + 1], np.uint64), np.zeros(1, np.uint8))
    )
    wait_for(lambda: loop.task.stats.acked)
    executor.stop()
    executor.join(20)
    assert loop.task.spout.calls == ["activate", "deactivate", "activate", "close"]
    assert not loop.task.dirty
    assert not [m for m in host.sent if isinstance(m, Failed)]


def test_a_spout_that_starts_inactive_waits(tmp_path: Path, started: list[_Executor]) -> None:
    loop, host, executor = start(started, tmp_path, active=False)
    executor.tell(Want())
    wait_for(lambda: host.sent)
    assert host.sent[0] == Idle(loop.task.task, False)
    assert (loop.task.spout.next, loop.task.spout.calls) == (0, [])
    executor.tell(SetActive(True))
    wait_for(lambda: loop.task.stats.emitted == 10)


class Breaks(Endless):
    def next_tuple(self):
        super().next_tuple()
        if self.next == 4:
            raise ConnectionError("gone")


def test_a_spout_that_raises_says_so_once(tmp_path: Path, started: list[_Executor]) -> None:
    _, host, executor = start(started, tmp_path, spout=Breaks())
    executor.join(20)
    (failed,) = [m for m in host.sent if isinstance(m, Failed)]
    assert failed.component == "spout"
    assert "failed in next_tuple: ConnectionError: gone" in failed.message
    assert "gone" in failed.trace


class Cancelled(Endless):
    def next_tuple(self):
        raise asyncio.CancelledError("who awaits me?")


def test_a_spout_that_raises_what_is_no_exception_does_not_end_without_a_word(
    tmp_path: Path, started: list[_Executor]
) -> None:
    _, host, executor = start(started, tmp_path, spout=Cancelled())
    executor.join(20)
    (failed,) = [m for m in host.sent if isinstance(m, Failed)]
    assert "CancelledError: who awaits me?" in failed.message


def test_a_log_that_can_not_be_written_is_named(
    tmp_path: Path, started: list[_Executor], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: Any, **kwargs: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("storm_on_spark.runtime.spout_log.SpoutLog._write", full)
    _, host, executor = start(started, tmp_path)
    executor.join(20)
    (failed,) = [m for m in host.sent if isinstance(m, Failed)]
    assert "the spout log can't be written" in failed.message
    assert "No space left on device" in failed.message
