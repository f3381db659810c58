"""Noticing a bolt that hangs: from its frames, with a clock that is driven by hand."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
import pytest
from stormtest import anchored, batch_input, ids, solo

from storm_on_spark.api import BaseBasicBolt, BaseRichBolt, BatchBolt
from storm_on_spark.runtime.stall import Stall, StallWatch, clear_notes, read_notes


class Gate:
    """Where a bolt waits, tuple by tuple, until the test lets it go on."""

    def __init__(self) -> None:
        self.reached, self.open = threading.Semaphore(0), threading.Semaphore(0)

    def wait(self) -> None:
        self.reached.release()
        assert self.open.acquire(timeout=20)


GATE: list[Gate] = []


class Basic(BaseBasicBolt):
    def execute(self, tup: Any, collector: Any) -> None:
        GATE[0].wait()


class Rich(BaseRichBolt):
    def execute(self, tup: Any) -> None:
        GATE[0].wait()


class Columns(BatchBolt):
    def execute_batch(self, batch: pa.RecordBatch, collector: Any) -> None:
        GATE[0].wait()


@contextmanager
def executing(bolt: Any) -> Iterator[threading.Thread]:
    """A thread in which a bolt executes two tuples, or two batches, and waits at each."""
    task = solo(bolt)
    if isinstance(bolt, BatchBolt):
        inputs = [batch_input(pa.record_batch([[1, 2]], names=["value"])) for _ in range(2)]
    else:
        inputs = [anchored(["one", "two"])]
    GATE[:] = [Gate()]
    thread = threading.Thread(target=task.execute, args=(inputs, ids(), 1))
    thread.start()
    assert GATE[0].reached.acquire(timeout=20)
    yield thread
    GATE[0].open.release(2)
    thread.join(20)


def frame_of(thread: threading.Thread) -> FrameType | None:
    assert thread.ident is not None
    return sys._current_frames().get(thread.ident)


@pytest.mark.parametrize(
    ("bolt", "what"),
    [(Basic(), "Tuple(value='one'; from source"), (Rich(), "Tuple(value='one'; from source"), (Columns(), "2 rows")],
    ids=["basic", "rich", "batch"],
)
def test_what_takes_too_long_is_named_and_what_goes_on_is_not(bolt: Any, what: str) -> None:
    now = [100.0]
    watch = StallWatch(10, lambda: now[0])
    with executing(bolt) as thread:
        assert watch.look(frame_of(thread)) is None
        now[0] += 9.9
        assert watch.look(frame_of(thread)) is None
        now[0] += 0.2
        stall = watch.look(frame_of(thread))
        assert stall is not None
        assert stall.component == "bolt"
        assert f'component "bolt" (task {stall.task}) has been executing one tuple for 10 s' in stall.sentence
        assert "topology.task.stall.secs = 10" in stall.sentence
        assert what in stall.sentence
        # The next tuple has its own time.
        GATE[0].open.release()
        assert GATE[0].reached.acquire(timeout=20)
        assert watch.look(frame_of(thread)) is None
        now[0] += 9.9
        assert watch.look(frame_of(thread)) is None
        now[0] += 0.2
        assert watch.look(frame_of(thread)) is not None


def test_a_worker_that_waits_for_work_does_not_hang() -> None:
    now = [0.0]
    watch = StallWatch(1, lambda: now[0])
    for _ in range(5):
        now[0] += 100
        assert watch.look(sys._getframe()) is None
        assert watch.look(None) is None


def test_notes_are_read_in_their_order_and_torn_ones_left_out(tmp_path: Path) -> None:
    assert read_notes(tmp_path) == []
    clear_notes(tmp_path)
    folder = tmp_path / "stalls"
    folder.mkdir()
    (folder / "2-7").write_text('["b", 2, "second"]')
    (folder / "1-9").write_text('["a", 1, "first"]')
    (folder / "3-1").write_text('["c", 3, "th')
    assert read_notes(tmp_path) == [Stall("a", 1, "first"), Stall("b", 2, "second")]
    clear_notes(tmp_path)
    assert read_notes(tmp_path) == []
