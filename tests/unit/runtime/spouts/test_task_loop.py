"""What a spout host does with one task: limits, cuts, answers."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from endless import Endless
from stormtest import Spouts

from storm_on_spark.runtime.reports.report import Reported
from storm_on_spark.runtime.run.settings import SpoutSettings
from storm_on_spark.runtime.spouts.live_line import LineChanged
from storm_on_spark.runtime.spouts.messages import Consumed, Idle, Message, Progress, Settle, Want, Written
from storm_on_spark.runtime.spouts.pacing import Pace
from storm_on_spark.runtime.spouts.task_loop import TaskLoop
from storm_on_spark.runtime.tracking.acker import ACKED
from storm_on_spark.runtime.tracking.ids import root_base
from storm_on_spark.runtime.tracking.runs import Runs

NEVER = 1e9


def pace_of(**settings: Any) -> Pace:
    """Bursts end by their counts only, however slow the machine is."""
    return Pace(burst_secs=NEVER, **settings)


USUAL = pace_of()
QUIET = pace_of(cut_secs=NEVER, report_secs=NEVER)
"""Cuts only what is wanted, and reports nothing."""


def loop_of(
    folder: Path, conf: dict[str, Any] | None = None, pace: Pace = USUAL, now: list[float] | None = None, **spout: Any
) -> tuple[TaskLoop, list[Message]]:
    """A task's loop and what it sends; `now` holds the time."""
    spouts = Spouts(Endless(**spout), folder, conf)
    sent: list[Message] = []
    task = spouts.open()
    task.now = time.monotonic if now is None else lambda: now[0]
    return TaskLoop(task, spouts.worker.wiring.settings(SpoutSettings, "spout"), sent.append, 0, pace), sent


def settle(loop: TaskLoop, batch: int, numbers: list[int]) -> None:
    roots = np.array([root_base(loop.task.task) + n for n in numbers], np.uint64)
    loop.handle(Settle(loop.task.task, batch, Runs.of(roots, np.full(len(roots), ACKED, np.uint8))))


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
    loop.handle(Consumed(loop.task.task, cuts[-1].written.position))
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


def test_bytes_that_wait_are_limited_but_nothing_waits_for_a_batch_that_never_comes(tmp_path: Path) -> None:
    loop, _ = loop_of(tmp_path, {"topology.spout.log.max.bytes": 100_000}, pace_of(gather_secs=0.0), width=5_000)
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


def test_a_cut_of_large_tuples_is_bounded_by_bytes(tmp_path: Path) -> None:
    pace = pace_of(cut_secs=NEVER, cut_bytes=500_000)
    loop, sent = loop_of(tmp_path, {"topology.spout.log.max.bytes": 2_000_000}, pace, width=20_000)
    while loop.burst(True):
        loop.cut_if_due(True)
    cuts = [message for message in sent if isinstance(message, Progress) and message.cut]
    assert len(cuts) >= 3
    # What a tuple takes is a guess before the first cut, and known from then on.
    assert all(cut.tuples <= 27 for cut in cuts)
    assert 1_400_000 < loop.task.log.end < 2_600_000
    loop.task.close()


def test_what_is_consumed_leaves_the_disk_once_a_cut_that_needs_it_no_more_is_committed(tmp_path: Path) -> None:
    limit = 400_000
    loop, _ = loop_of(tmp_path, {"topology.spout.log.max.bytes": limit}, width=20_000)
    for batch in range(6):
        while loop.burst(True):
            loop.handle(Want())
            loop.cut_if_due(True)
        size = sum(path.stat().st_size for path in tmp_path.iterdir())
        assert size < 2.5 * limit, batch
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


# --- cuts and answers -------------------------------------------------------------------------------------------


def test_a_want_is_answered_by_a_cut_or_by_idle(tmp_path: Path) -> None:
    loop, sent = loop_of(tmp_path, pace=QUIET, limit=3)
    loop.burst(True)
    loop.cut_if_due(True)
    assert sent == [], "nobody wants it yet"
    loop.handle(Want())
    loop.cut_if_due(True)
    (cut,) = sent
    assert isinstance(cut, Progress)
    assert (cut.cut, cut.tuples, cut.written) == (True, 3, loop.task.log.written)
    assert (cut.stats.emitted, cut.stats.pending, cut.stats.exhausted) == (3, 3, True)
    loop.handle(Want())
    loop.cut_if_due(False)
    assert sent[1:] == [Idle(loop.task.task, False)]
    loop.cut_if_due(False)
    assert len(sent) == 2, "one answer is enough"
    loop.task.close()


def test_a_spout_that_was_idle_is_cut_at_once_when_it_emits(tmp_path: Path) -> None:
    loop, sent = loop_of(tmp_path, pace=QUIET, limit=0)
    loop.handle(Want())
    loop.burst(True)
    loop.cut_if_due(True)
    assert sent == [Idle(loop.task.task, True)]
    loop.task.spout.limit = 2
    loop.burst(True)
    loop.cut_if_due(True)
    assert [m.tuples for m in sent[1:]] == [2]
    loop.task.close()


def test_a_spout_that_goes_on_emitting_is_given_a_moment(tmp_path: Path) -> None:
    pace, now = pace_of(report_secs=NEVER), [100.0]
    loop, sent = loop_of(tmp_path, None, pace, now)
    now[0] += 1
    loop.handle(Want())
    while not sent:
        loop.burst(True)
        loop.cut_if_due(True)
        now[0] += pace.gather_secs / 4
    assert sent[0].tuples > 200, "not only the first burst"
    loop.task.close()


def test_a_cut_that_nobody_wants_is_made_after_a_while(tmp_path: Path) -> None:
    pace, now = pace_of(report_secs=NEVER), [100.0]
    loop, sent = loop_of(tmp_path, None, pace, now, limit=3)
    now[0] += 10
    loop.burst(True)
    loop.cut_if_due(True)
    now[0] += 0.9 * pace.cut_secs
    loop.cut_if_due(True)
    assert sent == []
    now[0] += 0.2 * pace.cut_secs
    loop.cut_if_due(True)
    assert [m.tuples for m in sent] == [3]
    loop.task.close()


def test_what_was_settled_is_saved_and_said(tmp_path: Path) -> None:
    loop, sent = loop_of(tmp_path, pace=pace_of(cut_secs=0.0, cut_share=0), limit=3)
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


def test_errors_and_counters_are_reported_without_a_cut(tmp_path: Path) -> None:
    loop, sent = loop_of(tmp_path, pace=pace_of(cut_secs=NEVER, report_secs=0.0), limit=13)
    loop.burst(True)
    loop.cut_if_due(True)
    assert [(m.cut, [error.message for error in m.errors], m.stats.pending) for m in sent] == [
        (False, ["ValueError: thirteen"], 13)
    ]
    assert 'report_error(ValueError("thirteen"))' in sent[0].errors[0].own_trace
    loop.cut_if_due(True)
    assert len(sent) == 1, "nothing is new"
    loop.task.close()


def test_the_end_of_a_live_process_that_was_replaced_changes_nothing(tmp_path: Path) -> None:
    class Line:
        def __init__(self) -> None:
            self.heard: list[Written] = []

        def send(self, written: Written) -> None:
            self.heard.append(written)

    loop, _ = loop_of(tmp_path)
    former, present = Line(), Line()
    loop.handle(LineChanged(former, on=True))
    loop.handle(LineChanged(present, on=True))
    loop.handle(LineChanged(former, on=False))
    loop.burst(True)
    loop.cut_if_due(True)
    assert [written.end for written in present.heard[1:]] == [loop.task.log.written]
    loop.handle(LineChanged(present, on=False))
    loop.burst(True)
    loop.cut_if_due(True)
    assert len(present.heard) == 2, "nobody is told, and nothing is cut at once"
    loop.task.close()


def test_an_idle_spout_is_called_and_nothing_else_until_there_is_something_to_tell(tmp_path: Path) -> None:
    now = [100.0]
    loop, sent = loop_of(tmp_path, now=now, limit=5)
    assert not loop.is_idle(), "its first report is due"
    while loop.burst(True):
        pass
    assert not loop.is_idle(), "there are tuples to cut"
    for now[0] in (101.0, 102.0):
        loop.burst(True)
        loop.cut_if_due(True)
    assert loop.is_idle()
    del sent[:]
    spout = loop.task.spout
    assert not loop.call_once()
    assert not loop.has_to_tell()
    loop.handle(Want())
    assert not loop.is_idle(), "the coordinator waits for an answer"
    loop.cut_if_due(True)
    assert loop.is_idle()
    assert [type(message) for message in sent] == [Idle]
    spout.limit = 6
    assert loop.call_once()
    assert (spout.next, loop.task.fresh) == (6, 1)
    now[0] = 103.0
    loop.cut_if_due(True)
    assert loop.is_idle()
    loop.task.errors.append(Reported("odd", "", ""))
    assert loop.has_to_tell()
    assert not loop.is_idle()
