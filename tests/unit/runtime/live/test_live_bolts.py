"""Bolts in a real live process, without Spark: one that hangs, is slow, raises; ticks and timeouts."""

from __future__ import annotations

import ctypes
import dataclasses
import os
import select
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lengths
import psutil
import pytest
import stormtest
from endless import Endless
from stormtest import Spouts, make_worker
from waiting import eventually

from storm_on_spark.api import BaseBasicBolt, BaseRichBolt, TopologyBuilder
from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.runtime.bolts.watching.stall import EXIT_CODE, read_notes
from storm_on_spark.runtime.codec import chunk
from storm_on_spark.runtime.codec.chunk import Kind
from storm_on_spark.runtime.live import client
from storm_on_spark.runtime.live.client import LiveClient
from storm_on_spark.runtime.live.messages import Adopt, Cut
from storm_on_spark.runtime.processes.run_folder import remove_run_folder
from storm_on_spark.runtime.spouts.live_line import LiveLine
from storm_on_spark.runtime.spouts.messages import Settle, Written
from storm_on_spark.runtime.tracking.acker import ACKED, FAILED, TIMED_OUT

LIMIT = 1
"""Seconds that one tuple may take."""


class Blocking(BaseBasicBolt):
    """Never ends its first tuple."""

    def execute(self, tup, collector):
        while True:
            time.sleep(0.1)


class Slow(BaseBasicBolt):
    """Takes longer for two tuples than one may take."""

    def execute(self, tup, collector):
        time.sleep(0.6 * LIMIT)


class Holding(BaseBasicBolt):
    """Calls native code that keeps the interpreter and never ends, in the processes of one module."""

    def __init__(self, module):
        self.module = module

    def execute(self, tup, collector):
        if any(self.module in word for word in sys.orig_argv):
            ctypes.PyDLL(None).pause()


class Gated(BaseBasicBolt):
    """Executes a tuple until a file is gone."""

    def __init__(self, file):
        self.file = file

    def execute(self, tup, collector):
        while os.path.exists(self.file):
            time.sleep(0.01)


class Raising(BaseBasicBolt):
    def prepare(self, conf, context):
        self.seen = 0

    def execute(self, tup, collector):
        self.seen += 1
        if self.seen == 3:
            raise ValueError("the third")


class Keeping(BaseRichBolt):
    """Never acks."""

    def execute(self, tup):
        """Does nothing."""


class Ticking(BaseBasicBolt):
    """Notes when ticks come."""

    def __init__(self, file):
        self.file = file

    def get_component_configuration(self):
        return {"topology.tick.tuple.freq.secs": 1}

    def execute(self, tup, collector):
        if tup.source_stream == "__tick":
            with open(self.file, "a") as out:
                out.write(f"{time.monotonic()}\n")


@dataclasses.dataclass
class Live:
    """A live process that has adopted one bolt."""

    spouts: Spouts
    asked: LiveClient
    process: subprocess.Popen[bytes]
    folder: Path
    adopt: Adopt

    def written(self, count: int) -> dict[int, Any]:
        task = self.spouts.open()
        for _ in range(count):
            task.next_tuple(0.0)
        marks = {self.spouts.task_id: task.cut().mark}
        task.close()
        return marks

    def cut(self, count: int) -> Cut | None:
        end = self.asked.barrier(Offset(), self.written(count))
        return None if end is None else self.asked.fetch(b"token", Offset(), end)


@contextmanager
def live(
    bolt: Any,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    stall_secs: float = LIMIT,
    processes: int = 1,
    **more: Any,
) -> Iterator[Live]:
    spouts = Spouts(Endless(), folder, partitions=1)
    builder = TopologyBuilder()
    builder.set_spout("spout", Endless())
    builder.set_bolt("bolt", bolt, processes).shuffle_grouping("spout")
    conf = {
        "topology.profile": "realtime",
        "topology.workers": processes,
        "topology.task.stall.secs": LIMIT,
        "topology.acker.executors": 1,
        **more,
    }
    spouts.worker = make_worker(builder, conf, 1)
    [spouts.task_id] = spouts.worker.wiring.plan.components["spout"].tasks
    spouts.folder = folder / "spouts" / str(spouts.task_id)
    start_id = uuid.uuid4().hex
    spec = dataclasses.replace(spouts.worker.spec, folder=str(folder), start_id=start_id)
    # The modules of spout and bolt, and what this one imports.
    path = {str(Path(module).parent) for module in (stormtest.__file__, __file__, lengths.__file__)}
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path))
    asked = LiveClient(start_id, stall_secs)
    asked.start(processes)
    _, process = client.started[start_id]
    try:
        eventually(asked.listens)
        assert asked.look(0, time.monotonic()).live is False
        adopt = Adopt(start_id, spec.dumps(), b"token", Offset(), {}, ())
        assert asked.adopt(adopt)
        yield Live(spouts, asked, process, folder, adopt)
    finally:
        process.kill()
        process.wait()
        remove_run_folder(start_id)


def ends(cut: Cut | None) -> list[int]:
    """What became of the messages."""
    assert cut is not None
    outcomes = [body for body in cut.rows if chunk.read_header(body).kind == Kind.OUTCOME]
    return [code for body in outcomes for code in chunk.read_outcome(chunk.read_header(body), body)[1].tolist()]


def test_a_bolt_that_blocks_for_longer_than_the_limit_ends_the_live_process_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with live(Blocking(), tmp_path, monkeypatch) as found:
        assert found.cut(1) is None, "its tuple is for the next micro-batch"
        assert found.process.wait(30) == EXIT_CODE
        [stall] = read_notes(tmp_path)
        assert stall.component == "bolt"
        assert f"topology.task.stall.secs = {LIMIT}" in stall.sentence
        assert "from spout" in stall.sentence


def test_a_bolt_that_is_slow_executes_all_although_together_they_take_longer_than_one_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with live(Slow(), tmp_path, monkeypatch) as found:
        assert ends(found.cut(2)) == [ACKED] * 2
        assert found.process.poll() is None
        assert read_notes(tmp_path) == []


@pytest.mark.parametrize("processes", [1, 2])
def test_no_round_follows_once_a_worker_was_refused_a_cut_and_executes_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processes: int
) -> None:
    with live(Slow(), tmp_path, monkeypatch, processes=processes) as found:

        def is_live() -> bool:
            status = found.asked.look(0, time.monotonic())
            assert status is not None
            return status.live

        assert is_live()
        assert found.asked.fetch(b"another state", Offset(), Offset()) is None
        assert not is_live()
        assert found.asked.barrier(Offset(), found.written(1)) is None
        # It is no fault of the process, which takes the state that the worker has made of the log.
        assert found.asked.adopt(dataclasses.replace(found.adopt, token=b"the state after it"))
        assert is_live()
        assert found.process.poll() is None


def test_a_tuple_may_take_longer_than_a_process_that_is_stopped_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "ANSWER_SECS", 0.05)
    file = tmp_path / "gate"
    file.touch()
    conf = {"topology.task.stall.secs": 60}
    with live(Gated(str(file)), tmp_path, monkeypatch, stall_secs=60, **conf) as found:
        cuts: list[Cut | None] = []
        asking = threading.Thread(target=lambda: cuts.append(found.cut(1)))
        asking.start()
        # Each look is answered by the pulse, however long the tuple takes.
        for _ in range(20):
            status = found.asked.look(0, time.monotonic())
            assert status is not None
            assert status.live
            time.sleep(0.02)
        assert asking.is_alive()
        file.unlink()
        asking.join(30)
        assert ends(cuts[0]) == [ACKED]
        assert found.process.poll() is None


def test_a_process_that_is_stopped_is_ended_and_that_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with live(Slow(), tmp_path, monkeypatch, stall_secs=60) as found:
        monkeypatch.setattr(client, "ANSWER_SECS", 0.2)
        found.process.send_signal(signal.SIGSTOP)
        # Each of its threads stops when it comes to that; until then, the pulse answers.
        threads = Path(f"/proc/{found.process.pid}/task")
        eventually(lambda: all("State:\tT" in (thread / "status").read_text() for thread in threads.iterdir()))
        assert found.asked.look(0, time.monotonic()) is None
        assert found.process.wait(30) == -signal.SIGKILL
        assert "it has been stopped for" in caplog.text


def test_a_bolt_that_holds_the_interpreter_is_named_and_its_process_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with live(Holding("live.processes.process"), tmp_path, monkeypatch, stall_secs=LIMIT) as found:
        monkeypatch.setattr(client, "ANSWER_SECS", 0.2)
        assert found.cut(1) is None, "its tuple is for the next micro-batch"
        assert found.process.wait(30) == -signal.SIGKILL
        [task] = found.spouts.worker.wiring.plan.components["bolt"].tasks
        [said] = [record.getMessage() for record in caplog.records]
        assert f'component "bolt" (task {task}), or what it calls, has held the Python interpreter for ' in said
        assert f"(topology.task.stall.secs = {LIMIT})" in said


@pytest.mark.slow
def test_a_bolt_that_holds_the_interpreter_of_a_further_live_process_is_named_and_that_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with live(Holding("live.processes.member"), tmp_path, monkeypatch, processes=2) as found:
        [member] = psutil.Process(found.process.pid).children()
        assert found.cut(8) is None, "its tuples are for the next micro-batch"
        eventually(lambda: not member.is_running())
        assert found.process.poll() is None
        tasks = found.spouts.worker.wiring.plan.components["bolt"].tasks
    said = capfd.readouterr().err
    assert any(f'component "bolt" (task {task}), or what it calls, has held the Python' in said for task in tasks)
    assert f"of the live process {member.pid} for " in said


def test_whoever_waits_for_a_long_tuple_is_let_go_when_the_topology_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "ANSWER_SECS", 0.05)
    file = tmp_path / "gate"
    file.touch()
    conf = {"topology.task.stall.secs": 60}
    with live(Gated(str(file)), tmp_path, monkeypatch, stall_secs=60, **conf) as found:
        found.asked.let_go()
        assert found.cut(1) is None
        assert found.process.poll() is None


def test_a_bolt_that_raises_fails_that_message_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with live(Raising(), tmp_path, monkeypatch) as found:
        cut = found.cut(3)
        assert sorted(ends(cut)) == [ACKED, ACKED, FAILED]
        told = [body for body in cut.rows if chunk.read_header(body).kind == Kind.REPORT]
        assert "the third" in repr([chunk.read_report(body) for body in told])


def test_a_tick_comes_when_it_is_due_and_not_at_the_next_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "ticks"
    file.touch()
    with live(Ticking(str(file)), tmp_path, monkeypatch) as found:
        began = time.monotonic()
        # By chance, that is no multiple of what the process waits for otherwise.
        found.asked.look(130, began)

        def late() -> list[float]:
            # 0.13 s were over then: they are due at 0.87, 1.87, ... and never before.
            return [(float(line) - began - 0.87) % 1.0 for line in file.read_text().splitlines()]

        # A machine that is busy may be late; without an own wake-up each would be, by 0.12 s or more.
        eventually(lambda: any(secs < 0.05 for secs in late()))


def test_a_message_times_out_when_it_is_due_and_not_at_the_next_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf = {"topology.message.timeout.secs": 1}
    with live(Keeping(), tmp_path, monkeypatch, **conf) as found:
        began = time.monotonic()
        found.asked.look(1130, began)

        def clock() -> float:
            return 1.13 + time.monotonic() - began

        def late(emitted: float) -> float:
            """Emits a message at that time of the topology; returns how late it timed out, without any barrier."""
            found.spouts.clock_ms = int(1000 * emitted)
            [(task, mark)] = found.written(1).items()
            line.send(Written(task, 0, mark, None))
            told: list[Any] = []
            while not (settles := [said for said in told if isinstance(said, Settle)]):
                assert select.select([line], [], [], 30)[0]
                told += line.received()
            [settle] = settles
            assert settle.ended.codes.tolist() == [TIMED_OUT]
            return clock() - (int(emitted) + 2)

        line = LiveLine(str(found.asked.path), found.process.pid, lambda connection: None)
        try:
            lates = [late(0.0)]
            # A machine that is busy may be late; without an own wake-up each would be, by 0.12 s or more.
            while lates[-1] >= 0.05 and len(lates) < 10:
                lates.append(late(clock()))
        finally:
            line.close()
    assert min(lates) >= 0, "two whole periods have to be over"
    assert lates[-1] < 0.05, lates
