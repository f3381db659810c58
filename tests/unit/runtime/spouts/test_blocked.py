"""Which calls of `next_tuple` block."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from stormtest import Spouts
from waiting import eventually

from storm_on_spark.api import BaseRichSpout, Fields, OutputFieldsDeclarer, SpoutOutputCollector, TopologyContext
from storm_on_spark.runtime.spouts.spout_task import SpoutTask
from storm_on_spark.runtime.spouts.watching.blocked import BlockedWatch


class Waiting(BaseRichSpout):
    """Waits in each call until it is let go."""

    def open(self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector) -> None:
        self.calls, self.go = 0, threading.Semaphore(0)

    def next_tuple(self) -> None:
        self.calls += 1
        assert self.go.acquire(timeout=20)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("n"))


@pytest.fixture
def called(tmp_path: Path) -> Iterator[tuple[SpoutTask, Waiting, int]]:
    """A task whose thread calls `next_tuple` twice."""
    task = Spouts(Waiting(), tmp_path).open()
    spout: Any = task.spout
    thread = threading.Thread(target=lambda: [task.next_tuple() for _ in range(2)], daemon=True)
    thread.start()
    assert thread.ident is not None
    yield task, spout, thread.ident
    spout.go.release(2)
    thread.join(20)
    assert not thread.is_alive()


def looking(watch: BlockedWatch, thread: int) -> Callable[[float], list[str]]:
    return lambda now: [each.message for each in watch.look([thread], sys._current_frames(), now)]


def test_each_call_is_told_once_and_in_time(called: tuple[SpoutTask, Waiting, int]) -> None:
    task, spout, thread = called
    look = looking(BlockedWatch(5.0), thread)
    eventually(lambda: spout.calls == 1)
    assert [look(now) for now in (100.0, 104.9)] == [[], []]
    [told] = look(105.0)
    assert told.startswith(f'next_tuple of component "{task.component}" (task {task.task}) has not returned for 5 s: ')
    assert look(200.0) == []
    spout.go.release()
    eventually(lambda: spout.calls == 2)
    assert [look(now) for now in (201.0, 205.9)] == [[], []]
    assert len(look(206.0)) == 1


def test_a_thread_that_calls_no_spout_does_not_block() -> None:
    look = looking(BlockedWatch(0.0), threading.get_ident())
    assert look(0.0) == look(100.0) == []
    assert BlockedWatch(0.0).look([-1], {}, 0.0) == []
