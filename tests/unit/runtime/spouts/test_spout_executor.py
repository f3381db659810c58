"""The thread of a spout executor."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from endless import Endless
from stormtest import ExecutorHost, Spouts
from waiting import eventually

from storm_on_spark.runtime.run.settings import SpoutSettings
from storm_on_spark.runtime.spouts.messages import Failed, Idle, Progress, SetActive, Settle, Want
from storm_on_spark.runtime.spouts.spout_host import Executor
from storm_on_spark.runtime.spouts.task_loop import TaskLoop
from storm_on_spark.runtime.tracking.ids import root_base
from storm_on_spark.runtime.tracking.runs import Runs


@pytest.fixture
def started() -> Iterator[list[Executor]]:
    executors: list[Executor] = []
    yield executors
    for executor in executors:
        executor.stop()
        executor.join(20)
        assert not executor.is_alive()


def start(
    executors: list[Executor], folder: Path, active: bool = True, spout: Any = None
) -> tuple[Any, ExecutorHost, Executor]:
    spouts = Spouts(spout or Endless(limit=10), folder)
    loops: list[TaskLoop] = []

    def make(task: int) -> TaskLoop:
        opened = spouts.open()
        opened.now = time.monotonic
        loops.append(TaskLoop(opened, spouts.worker.wiring.settings(SpoutSettings, "spout"), host.send, 0))
        return loops[-1]

    host = ExecutorHost(make)
    executor = Executor(host, (spouts.task_id,), active)  # type: ignore[arg-type]
    executors.append(executor)
    executor.start()
    eventually(lambda: loops or host.sent)
    return loops[0] if loops else None, host, executor


def test_an_executor_activates_emits_cuts_and_closes(tmp_path: Path, started: list[Executor]) -> None:
    loop, host, executor = start(started, tmp_path)
    eventually(lambda: loop.task.stats.emitted == 10)
    for active in (True, False, False, True):
        executor.tell(SetActive(active))
    eventually(lambda: len(loop.task.spout.calls) == 3)
    executor.tell(
        Settle(loop.task.task, 0, Runs.of(np.array([root_base(loop.task.task) + 1], np.uint64), np.zeros(1, np.uint8)))
    )
    eventually(lambda: loop.task.stats.acked)
    executor.stop()
    executor.join(20)
    assert loop.task.spout.calls == ["activate", "deactivate", "activate", "close"]
    assert not loop.task.dirty
    assert [m for m in host.sent if isinstance(m, Progress)][-1].saved_batch == 0, "nobody knows what it saved"
    assert not [m for m in host.sent if isinstance(m, Failed)]


def test_a_spout_that_starts_inactive_waits(tmp_path: Path, started: list[Executor]) -> None:
    loop, host, executor = start(started, tmp_path, active=False)
    executor.tell(Want())
    eventually(lambda: Idle(loop.task.task, False) in host.sent)
    assert (loop.task.spout.next, loop.task.spout.calls) == (0, [])
    executor.tell(SetActive(True))
    eventually(lambda: loop.task.stats.emitted == 10)


class Breaks(Endless):
    def next_tuple(self):
        super().next_tuple()
        if self.next == 4:
            raise ConnectionError("gone")


def test_a_spout_that_raises_says_so_once(tmp_path: Path, started: list[Executor]) -> None:
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
    tmp_path: Path, started: list[Executor]
) -> None:
    _, host, executor = start(started, tmp_path, spout=Cancelled())
    executor.join(20)
    (failed,) = [m for m in host.sent if isinstance(m, Failed)]
    assert "CancelledError: who awaits me?" in failed.message


def test_a_log_that_can_not_be_written_is_named(
    tmp_path: Path, started: list[Executor], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: Any, **kwargs: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("storm_on_spark.runtime.spouts.log.writer.write_all", full)
    _, host, executor = start(started, tmp_path)
    executor.join(20)
    (failed,) = [m for m in host.sent if isinstance(m, Failed)]
    assert "the spout log can't be written" in failed.message
    assert "No space left on device" in failed.message


class Silent(Endless):
    """Ends when it is told to, after a silence."""

    def open(self, conf, context, collector):
        super().open(conf, context, collector)
        self.over = False

    def exhausted(self):
        return self.over


def test_a_tuple_an_error_and_the_end_after_a_silence_are_told(
    tmp_path: Path, started: list[Executor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storm_on_spark.runtime.spouts.spout_host._SHORT_FROM_SECS", 1e-9)
    monkeypatch.setattr("storm_on_spark.runtime.spouts.spout_host._SHORT_SECS", 1e9)
    calls: list[bool] = []
    called = TaskLoop.call_once
    monkeypatch.setattr(TaskLoop, "call_once", lambda self: calls.append(called(self)) or calls[-1])
    loop, host, _ = start(started, tmp_path, spout=Silent(limit=0))
    spout = loop.task.spout

    def silent() -> None:
        before = len(calls)
        eventually(lambda: len(calls) > before + 3, "it is called, and nothing else is done")

    def told(what: Callable[[Progress], object]) -> None:
        eventually(lambda: any(isinstance(said, Progress) and what(said) for said in list(host.sent)))

    silent()
    spout.limit = 1
    told(lambda said: said.cut and said.tuples == 1)
    silent()
    assert sum(calls) == 1
    spout.collector.report_error(ValueError("late"))
    told(lambda said: any("late" in str(error) for error in said.errors))
    silent()
    spout.over = True
    told(lambda said: said.stats.exhausted)
