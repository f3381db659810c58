"""Real time through Spark: messages end between micro-batches, and state is exact whatever happens."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession
from waiting import eventually

from storm_on_spark import (
    BaseBasicBolt,
    BaseRichSpout,
    BaseWindowedBolt,
    Duration,
    Fields,
    TopologyBuilder,
    compile_topology,
)
from storm_on_spark.runtime.live.execution.rounds import ROUNDS, read_rounds
from storm_on_spark.runtime.processes.run_folder import run_folder
from storm_on_spark.spark.state import read_bolt_state, read_pending_roots
from storm_on_spark.testing import ListSpout

EVERY = 0.004
KEYS = 10
POISON = 300


class Numbers(BaseRichSpout):
    """Counts up every few milliseconds until there is a file."""

    def __init__(self, end):
        self.end = end

    def open(self, conf, context, collector):
        self.collector, self.next, self.again, self.due = collector, 0, [], 0.0

    def next_tuple(self):
        now = time.monotonic()
        if self.again:
            self.emit(self.again.pop(), 1)
        elif now >= self.due and not self.over():
            self.emit(self.next, 0)
            self.next, self.due = self.next + 1, now + EVERY

    def emit(self, number, attempt):
        self.collector.emit([number, attempt], message_id=number)

    def fail(self, message_id):
        self.again.append(message_id)

    def over(self):
        return self.next > POISON and Path(self.end).exists()

    def exhausted(self):
        return self.over() and not self.again

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("number", "attempt"))


class Keyed(BaseBasicBolt):
    """Waits while there is a file."""

    def __init__(self, wait):
        self.wait = wait

    def execute(self, tup, collector):
        while Path(self.wait).exists():
            time.sleep(0.01)
        collector.emit([*tup, tup[0] % KEYS])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("number", "attempt", "key"))


class Count(BaseBasicBolt):
    """Counts each number; raises at one of them until it comes again, after it has counted it.

    The first of each two tasks waits for a service.
    """

    def __init__(self, pause):
        self.pause = pause

    def prepare(self, conf, context):
        self.counts = Counter()
        self.waits = context.this_task_index % 2 == 0

    def execute(self, tup, collector):
        if self.waits:
            time.sleep(self.pause)
        self.counts[tup[0]] += 1
        if tup[0] == POISON and tup["attempt"] == 0:
            raise ValueError(tup[0])


FIRST, FURTHER = "storm_on_spark.runtime.live.processes.process", "storm_on_spark.runtime.live.processes.member"


def live_processes(module: str) -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if module.encode() in words and any(run_folder(word.decode()).exists() for word in words[3:]):
                found.append(int(folder.name))
    return found


def have_moved(checkpoint: Path) -> bool:
    """Whether rounds on the disk say that tasks are in another live process than they began in."""
    for file in checkpoint.glob(f"**/{ROUNDS}/*"):
        with suppress(FileNotFoundError):
            if any(done.moved for done in read_rounds(file.parent, bytes.fromhex(file.name))):
                return True
    return False


@contextmanager
def stopped_workers() -> Iterator[None]:
    """Stops Spark's Python workers within its block, so that a micro-batch does not end."""

    def found() -> list[psutil.Process]:
        workers = []
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):  # it has ended
                if "storm_on_spark.spark.worker_daemon" in process.cmdline():
                    workers.append(process)
        return workers

    workers = eventually(found, "no micro-batch needs a worker")
    for process in workers:
        with suppress(psutil.NoSuchProcess):
            process.suspend()
    try:
        yield
    finally:
        for process in workers:
            with suppress(psutil.NoSuchProcess):
                process.resume()


@pytest.mark.parametrize(
    ("processes", "victim"), [pytest.param(1, FIRST, marks=pytest.mark.representative), (2, FURTHER)]
)
def test_messages_end_between_micro_batches_and_state_is_exact_when_a_live_process_dies(
    spark_session: SparkSession, tmp_path: Path, processes: int, victim: str
) -> None:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(str(tmp_path / "end")))
    wait = tmp_path / "wait"
    builder.set_bolt("keyed", Keyed(str(wait))).shuffle_grouping("numbers")
    # Of four tasks two wait; both begin in the first process, and have six of ten keys.
    count = Count(EVERY * 1.25) if processes > 1 else Count(0.0)
    builder.set_bolt("count", count, 2 * processes).fields_grouping("keyed", "key")
    conf = {
        "topology.profile": "realtime",
        "topology.state.checkpoint.interval.ms": 3000 // processes,
        "topology.workers": processes,
    }
    compiled = compile_topology(builder.create_topology(), conf)
    query = compiled.start(spark_session, f"realtime-{processes}", checkpoint=tmp_path / "checkpoint")

    def acked() -> int:
        return query.status_info().acked

    def batch() -> int:
        return query.lastProgress["batchId"] if query.lastProgress else -1

    def ends_between_batches() -> bool:
        before, known = batch(), acked()
        time.sleep(0.5)
        after = acked()
        return batch() == before and after >= known + 20

    try:
        eventually(lambda: acked() > 0)
        eventually(ends_between_batches)
        # One that was slow to start may have been started twice, and one of the test before may not have ended yet.
        eventually(lambda: [len(live_processes(module)) for module in (FIRST, FURTHER)] == [1, processes - 1])
        [victim_id] = live_processes(victim)
        if victim == FIRST:
            # It is also looked at while Spark asks nothing: a micro-batch runs, and can't end.
            with stopped_workers():
                eventually(lambda: query.status_info().mode == "real time")
                wait.touch()
                os.kill(victim_id, signal.SIGKILL)
                eventually(lambda: query.status_info().mode == "micro-batches")
                eventually(lambda: "ended unexpectedly" in str(query.status_info().system_errors))
            repeats = eventually(lambda: query.status_info().repetition)
            assert repeats.executed < repeats.rounds
            wait.unlink()
            eventually(lambda: query.status_info().repetition is None)
        else:
            eventually(lambda: have_moved(tmp_path / "checkpoint"))
            os.kill(victim_id, signal.SIGKILL)
        known = acked()
        eventually(lambda: acked() > known)
        eventually(ends_between_batches)
        (tmp_path / "end").touch()
        query.awaitTermination(60)
    finally:
        query.stop()

    info = query.status_info()
    # The poison failed once, and came again.
    assert (info.status, info.acked, info.failed, info.pending) == ("COMPLETED", info.emitted - 1, 1, 0)
    states = read_bolt_state(spark_session, tmp_path / "checkpoint", "count").values()
    assert sum((state["counts"] for state in states), Counter()) == Counter(range(info.acked))
    eventually(lambda: not live_processes(FIRST) and not live_processes(FURTHER))


class Windows(BaseWindowedBolt):
    """Keeps what is new in its windows, and writes it down."""

    def prepare(self, conf, context, collector):
        self.notes, self.entered = Path(conf["test.notes"]), []

    def execute(self, window):
        new = [tup["number"] for tup in window.new]
        self.entered += new
        with self.notes.open("a") as file:
            file.writelines(f"{number}\n" for number in new)


def test_a_topology_that_a_timer_ends_leaves_all_in_the_state(spark_session: SparkSession, tmp_path: Path) -> None:
    numbers, notes = list(range(200)), tmp_path / "notes"
    builder = TopologyBuilder()
    builder.set_spout("numbers", ListSpout([(number,) for number in numbers], ["number"], message_ids=True))
    window = Windows().with_window(Duration(1500), Duration(500))
    builder.set_bolt("windows", window).shuffle_grouping("numbers")
    conf = {
        "topology.profile": "realtime",
        "topology.state.checkpoint.interval.ms": 100,
        "test.notes": str(notes),
    }
    compiled = compile_topology(builder.create_topology(), conf)
    for _ in range(2):  # the second one has nothing to do
        query = compiled.start(spark_session, "ends-late", checkpoint=tmp_path / "checkpoint")
        assert query.awaitTermination(60)
        assert query.status_info().status == "COMPLETED"
        assert read_pending_roots(spark_session, tmp_path / "checkpoint") == []
        [state] = read_bolt_state(spark_session, tmp_path / "checkpoint", "windows").values()
        assert sorted(state["entered"]) == numbers
        assert sorted(map(int, notes.read_text().split())) == numbers
