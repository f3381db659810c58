"""Noticing a bolt that hangs, and how far one is that takes long: from its frames."""

from __future__ import annotations

import ctypes
import dataclasses
import inspect
import os
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
import pytest
from lengths import PATIENCE_SECS
from stormtest import Source, anchored, batch_input, ids, make_worker, solo

from storm_on_spark.api import BaseBasicBolt, BaseRichBolt, BatchBolt, TopologyBuilder
from storm_on_spark.api.info import ComponentAtWork
from storm_on_spark.runtime.bolts import worker as worker_module
from storm_on_spark.runtime.bolts.bolt_task import BoltTask
from storm_on_spark.runtime.bolts.watching.at_work import WorkNotes, clear_work, read_work
from storm_on_spark.runtime.bolts.watching.holding import HolderWatch
from storm_on_spark.runtime.bolts.watching.stall import EXIT_CODE, Stall, StallWatch, clear_notes, read_notes
from storm_on_spark.runtime.bolts.worker import worker_for
from storm_on_spark.runtime.processes.diagnostics import prints
from storm_on_spark.runtime.storage.place import LocalPlace


class Gate:
    """Where a bolt waits, tuple by tuple, until the test lets it go on."""

    def __init__(self) -> None:
        self.reached, self.open = threading.Semaphore(0), threading.Semaphore(0)

    def wait(self) -> None:
        self.reached.release()
        assert self.open.acquire(timeout=PATIENCE_SECS)


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
def executing(task: BoltTask) -> Iterator[threading.Thread]:
    """A thread in which a bolt executes two tuples, or two batches, and waits at each."""
    bolt = task.instance
    if isinstance(bolt, BatchBolt):
        inputs = [batch_input(pa.record_batch([[1, 2]], names=["value"])) for _ in range(2)]
    else:
        inputs = [anchored(["one", "two"])]
    GATE[:] = [Gate()]
    thread = threading.Thread(target=task.execute, args=(inputs, ids(), 1))
    thread.start()
    assert GATE[0].reached.acquire(timeout=PATIENCE_SECS)
    yield thread
    GATE[0].open.release(2)
    thread.join(20)


def frame_of(thread: threading.Thread) -> FrameType | None:
    assert thread.ident is not None
    return sys._current_frames().get(thread.ident)


def test_a_loop_without_a_tuple_in_hand_does_not_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    task = solo(Basic())
    watch = StallWatch(1.0, task.wiring, lambda: 100.0)

    def loop(self: BoltTask) -> Stall | None:
        return watch.look(inspect.currentframe())

    monkeypatch.setattr(watch, "_loops", frozenset({loop.__code__}))
    assert loop(task) is None


@pytest.mark.parametrize(
    ("bolt", "what"),
    [(Basic(), "('one',) from source"), (Rich(), "('one',) from source"), (Columns(), "2 rows")],
    ids=["basic", "rich", "batch"],
)
def test_what_takes_too_long_is_named_and_what_goes_on_is_not(bolt: Any, what: str) -> None:
    now = [100.0]
    task = solo(bolt)
    watch, other = (StallWatch(10, wiring, lambda: now[0]) for wiring in (task.wiring, solo(bolt).wiring))
    with executing(task) as thread:
        assert watch.look(frame_of(thread)) is None
        assert other.look(frame_of(thread)) is None
        now[0] += 9.9
        assert watch.look(frame_of(thread)) is None
        now[0] += 0.2
        stall = watch.look(frame_of(thread))
        assert other.look(frame_of(thread)) is None, "it watches another run"
        assert stall is not None
        assert stall.component == "bolt"
        assert f'component "bolt" (task {stall.task}) has been executing one tuple for 10 s' in stall.sentence
        assert "topology.task.stall.secs = 10" in stall.sentence
        assert what in stall.sentence
        # The next tuple has its own time.
        GATE[0].open.release()
        assert GATE[0].reached.acquire(timeout=PATIENCE_SECS)
        assert watch.look(frame_of(thread)) is None
        now[0] += 9.9
        assert watch.look(frame_of(thread)) is None
        now[0] += 0.2
        assert watch.look(frame_of(thread)) is not None


def test_a_worker_that_waits_for_work_does_not_hang() -> None:
    now = [0.0]
    watch = StallWatch(1, solo(Basic()).wiring, lambda: now[0])
    for _ in range(5):
        now[0] += 100
        assert watch.look(inspect.currentframe()) is None
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


# --- how far it is ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bolt", "inputs", "executed"),
    [
        (Basic(), [["a", "b"], ["c", "d", "e"]], 3),
        (Rich(), [["a", "b"], ["c", "d", "e"]], 3),
        (Columns(), [pa.record_batch([[1, 2]], names=["value"])] * 4, 6),
    ],
    ids=["basic", "rich", "batch"],
)
def test_what_takes_long_is_noted_and_what_has_ended_counts_whole(
    bolt: Any, inputs: list[Any], executed: int, tmp_path: Path
) -> None:
    task, other = solo(bolt), solo(bolt)
    notes, of_others = (WorkNotes(wiring, tmp_path) for wiring in (task.wiring, other.wiring))
    given = [batch_input(part) if isinstance(part, pa.RecordBatch) else anchored(part) for part in inputs]
    tuples = sum(part.size for part in given)
    GATE[:] = [Gate()]
    thread = threading.Thread(target=task.execute, args=(given, ids(), 7))
    thread.start()
    for _ in range(3):
        assert GATE[0].reached.acquire(timeout=PATIENCE_SECS)
        GATE[0].open.release()
    assert GATE[0].reached.acquire(timeout=PATIENCE_SECS)
    notes.look(frame_of(thread))
    assert read_work(tmp_path, 7) == (), "it may be short"
    for _ in range(2):
        of_others.look(frame_of(thread))
    notes.look(frame_of(thread))
    assert read_work(tmp_path, 7) == (ComponentAtWork("bolt", executed, tuples),)
    assert read_work(tmp_path, 6) == ()
    GATE[0].open.release(9)
    thread.join(PATIENCE_SECS)
    notes.look(None)
    assert read_work(tmp_path, 7) == (ComponentAtWork("bolt", tuples, tuples),)


def test_notes_of_a_components_tasks_are_added_up_and_torn_ones_left_out(tmp_path: Path) -> None:
    assert read_work(tmp_path, 0) == ()
    clear_work(tmp_path)
    folder = tmp_path / "at-work"
    folder.mkdir()
    (folder / "3").write_text('["count", 3, 0, 1000, 4000]')
    (folder / "4").write_text('["count", 4, 0, 2000, 4716]')
    (folder / "5").write_text('["count", 5, 0, 2')
    (folder / "6").write_text('["split", 6, 0, 5, 5]')
    assert set(read_work(tmp_path, 0)) == {ComponentAtWork("count", 3000, 8716), ComponentAtWork("split", 5, 5)}
    clear_work(tmp_path)
    assert list(folder.iterdir()) == []


# --- in a worker ------------------------------------------------------------------------------------------------------


class Sleepy(BaseBasicBolt):
    stateless = True

    def execute(self, tup: Any, collector: Any) -> None:
        time.sleep(tup[0])


class Holding(BaseBasicBolt):
    """Doesn't let any other thread run while it executes."""

    stateless = True

    def execute(self, tup: Any, collector: Any) -> None:
        ctypes.PyDLL(None).usleep(int(tup[0] * 1e6))


def in_a_worker(
    folders: dict[str, tuple[Path, int]], run: str, seconds: float, bolt: BaseBasicBolt | None = None, **given: Any
) -> int:
    """Lets a worker that knows several runs, each with its limit, execute one tuple of one of them.

    Args:
        folders: of each run, with its limit in seconds.
        run: which.
        seconds: how long the tuple takes.
        bolt: of the runs.
        given: changed parts of the specifications.

    Returns the worker's exit code.
    """
    child = os.fork()
    if child == 0:
        code = 99
        try:
            for name, (folder, limit) in folders.items():
                builder = TopologyBuilder()
                builder.set_spout("source", Source(default=["value"]))
                builder.set_bolt("bolt", bolt or Sleepy()).global_grouping("source")
                spec = make_worker(builder, {"topology.task.stall.secs": limit}).spec
                spec = dataclasses.replace(spec, start_id=name, folder=str(folder), **given)
                known = worker_for(name, spec.dumps())
                if name == run:
                    worker = known
            task = worker.prepare(worker.wiring.plan.components["bolt"].tasks[0])
            with prints.speaking(task.component, task.task):
                task.execute([anchored([seconds])], ids(), 1)
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_worker_is_ended_for_the_limit_of_the_run_that_it_executes(tmp_path: Path) -> None:
    folders = {name: tmp_path / name for name in ("strict", "patient")}
    for folder in folders.values():
        folder.mkdir()
    both = {"strict": (folders["strict"], 1), "patient": (folders["patient"], 600)}
    assert in_a_worker(both, "patient", 3.0) == 0, "the limit of another run ended it"
    assert not any(read_notes(folder) for folder in folders.values())
    # The same without the other run: the watch does its work.
    assert in_a_worker(both, "strict", 30.0) == EXIT_CODE
    (stall,) = read_notes(folders["strict"])
    assert stall.component == "bolt"
    assert not read_notes(folders["patient"])


def test_native_code_that_holds_the_interpreter_is_noted_in_a_store_by_the_next_worker(tmp_path: Path) -> None:
    local, store = tmp_path / "of-this-machine", LocalPlace(str(tmp_path / "store"))
    given = {"place": store, "local_folder": str(local)}
    runs = {"run": (tmp_path, 1)}
    assert in_a_worker(runs, "run", 30.0, Holding(), **given) == 1
    assert read_notes(store.open()) == [], "the worker that has ended could not"
    assert local.stat().st_mode & 0o077 == 0

    assert in_a_worker(runs, "run", 0.5, Sleepy(), **given) == 0
    (stall,) = read_notes(store.open())
    assert (stall.component, stall.task is not None) == ("bolt", True)
    assert "or what it calls, has held the Python interpreter for 0:00:01" in stall.sentence
    assert stall.sentence.endswith("in execute")
    assert in_a_worker(runs, "run", 0.5, Sleepy(), **given) == 0
    assert read_notes(store.open()) == [stall], "it is noted once"


def test_a_run_that_is_forgotten_is_not_watched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(worker_module, "workers", OrderedDict())
    before = set(threading.enumerate())
    builder = TopologyBuilder()
    builder.set_spout("source", Source(default=["value"]))
    spec = make_worker(builder, {"topology.task.stall.secs": 1}).spec
    data = dataclasses.replace(spec, folder=str(tmp_path)).dumps()
    workers = [worker_for(str(number), data) for number in range(20)]
    deadline = time.monotonic() + PATIENCE_SECS
    while len(set(threading.enumerate()) - before) > 8 and time.monotonic() < deadline:
        time.sleep(0.05)
    watches = set(threading.enumerate()) - before
    assert 0 < len(watches) <= 8
    for worker in workers[-8:]:
        worker.watch.close()
    for thread in watches:
        thread.join(20)


def test_a_worker_notes_what_it_executes(tmp_path: Path) -> None:
    seen: list[Any] = []
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            seen.extend(read_work(tmp_path, 1))
            time.sleep(0.05)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        assert in_a_worker({"run": (tmp_path, 600)}, "run", 4.0) == 0
    finally:
        over.set()
        thread.join()
    assert ComponentAtWork("bolt", 0, 1) in seen


def test_a_worker_that_is_late_makes_no_folder_of_a_run_that_is_over(tmp_path: Path) -> None:
    gone = tmp_path / "checkpoint" / "storm"
    with pytest.raises(FileNotFoundError):
        HolderWatch(10, gone)
    assert not gone.parent.exists()
