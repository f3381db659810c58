"""The coordinator with spout hosts in the same process: offsets, outcomes, restarts, completion."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stormtest import FakeHost, Nothing, make_worker

from storm_on_spark.api import BaseRichSpout, Fields, TopologyBuilder
from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.runtime.batches import coordinator as coordinator_module
from storm_on_spark.runtime.batches.clock import ManualClock
from storm_on_spark.runtime.batches.coordinator import Coordinator
from storm_on_spark.runtime.batches.files import BatchFiles
from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.runtime.batches.rules.planning import BatchPace
from storm_on_spark.runtime.codec import chunk
from storm_on_spark.runtime.spouts.host_process import spout_executors, spread_executors
from storm_on_spark.runtime.spouts.log import WriterEpoch, iter_cuts
from storm_on_spark.runtime.spouts.messages import Want
from storm_on_spark.runtime.storage import LocalStorage
from storm_on_spark.runtime.tracking.acker import ACKED, FAILED
from storm_on_spark.runtime.tracking.ids import root_base

pytestmark = pytest.mark.usefixtures("hosts_in_this_process")


class Counting(BaseRichSpout):
    """Counts to `limit`; every failed message is emitted again."""

    def __init__(self, limit: int = 1_000_000, ids: bool = True):
        self.limit, self.ids = limit, ids

    def open(self, conf, context, collector):
        self.collector, self.next, self.acked, self.failed, self.again = collector, 0, [], [], []

    def next_tuple(self):
        if self.again:
            number = self.again.pop()
        elif self.next < self.limit:
            number, self.next = self.next, self.next + 1
        else:
            return
        self.collector.emit([number], message_id=number if self.ids else None)

    def ack(self, message_id):
        self.acked.append(message_id)

    def fail(self, message_id):
        self.failed.append(message_id)
        self.again.append(message_id)

    def exhausted(self):
        return self.next >= self.limit and not self.again

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("number"))


class Run:
    """A coordinator with its hosts."""

    def __init__(
        self,
        folder: Path,
        *,
        tasks: int = 1,
        limit: int = 1_000_000,
        ids: bool = True,
        conf: Mapping[str, Any] | None = None,
    ) -> None:
        builder = TopologyBuilder()
        builder.set_spout("spout", Counting(limit, ids), tasks)
        builder.set_bolt("bolt", Nothing()).shuffle_grouping("spout").add_configurations(
            {"topology.tick.tuple.freq.secs": 10} if (conf or {}).pop("tick", False) else {}
        )
        self.spec = make_worker(builder, conf).spec
        self.folder = folder
        self.clock = ManualClock()
        self.failures: list[str] = []
        FakeHost.made.clear()
        self.coordinator = Coordinator(
            self.spec, folder, self.clock, True, lambda failure: self.failures.append(failure.message)
        )

    def start(self, planned: Offset | None = None) -> Run:
        self.coordinator.start(planned or Offset())
        return self

    def want(self) -> None:
        """Asks all hosts for cuts, as a poll does."""
        for host in FakeHost.made:
            host.send(Want())

    @property
    def task(self) -> int:
        return self.spec.plan.components["spout"].tasks[0]

    @property
    def spout(self) -> Any:
        return FakeHost.made[0].loops[self.task].task.spout

    def tuples(self, start: Offset, end: Offset) -> dict[int, int]:
        """How many tuples of each task lie between two offsets."""
        return {
            task: sum(
                cut.tuples for cut in iter_cuts(self.folder / "spouts" / str(task), start.logs.get(task, 0), position)
            )
            for task, position in end.logs.items()
        }

    def deliver(
        self,
        batch: int,
        numbers: list[int],
        code: int = ACKED,
        task: int | None = None,
        carried: Sequence[bytes] = (),
    ) -> None:
        roots = np.array([root_base(task or self.task) + n for n in numbers], np.uint64)
        body = chunk.encode_outcome(roots, np.full(len(roots), code, np.uint8), source=9)
        self.coordinator.deliver(batch, [body] if numbers else [], carried)


def crash(run: Run) -> None:
    for host in FakeHost.made:
        host.die()


# --- offsets -----------------------------------------------------------------------------------------------------


def test_poll_covers_what_was_cut_and_says_nothing_new_otherwise(tmp_path: Path) -> None:
    run = Run(tmp_path, limit=7).start()
    first = run.coordinator.poll(Offset())
    assert run.tuples(Offset(), first) == {run.task: 5}
    second = run.coordinator.poll(first)
    assert run.tuples(first, second) == {run.task: 2}
    assert run.coordinator.poll(second) is second


def test_a_batch_takes_its_share_from_every_task_but_at_least_one_cut(tmp_path: Path) -> None:
    run = Run(tmp_path, tasks=3, conf={"topology.batch.max.tuples": 12}).start()
    for host in FakeHost.made:
        for loop in host.loops.values():
            for _ in range(4):
                host.work(loop, 2)
    FakeHost.calls = 0
    offset, seen = Offset(), []
    for _ in range(2):
        end = run.coordinator.poll(offset)
        seen.append(sorted(run.tuples(offset, end).values()))
        offset = end
    assert seen == [[4, 4, 4], [4, 4, 4]]
    FakeHost.calls = 5
    one = Run(tmp_path / "big", conf={"topology.batch.max.tuples": 3}).start()
    end = one.coordinator.poll(Offset())
    assert one.tuples(Offset(), end) == {one.task: 5}, "a cut is never divided"


def test_back_pressure_stops_a_spout_until_a_batch_is_committed(tmp_path: Path) -> None:
    run = Run(tmp_path, conf={"topology.batch.max.tuples": 10}).start()
    FakeHost.calls = 50
    offset = run.coordinator.poll(Offset())
    assert run.spout.next == 20
    run.want()
    assert run.spout.next == 20
    end = run.coordinator.poll(offset)
    assert run.spout.next > 20
    assert sum(run.tuples(offset, end).values()) > 0


def test_a_cut_that_only_saves_acks_is_no_reason_for_a_batch(tmp_path: Path) -> None:
    run = Run(tmp_path, limit=5).start()
    first = run.coordinator.poll(Offset())
    run.deliver(0, [1, 2, 3, 4, 5])
    assert run.coordinator.poll(first) is first
    assert run.spout.acked == [0, 1, 2, 3, 4]
    head = FakeHost.made[0].loops[run.task].task.log.end
    assert head > first.logs[run.task]
    assert run.coordinator.completed.is_set()


def test_ticks_and_timeouts_start_a_batch(tmp_path: Path) -> None:
    run = Run(tmp_path, limit=1, conf={"tick": True}).start()
    first = run.coordinator.poll(Offset())
    assert run.coordinator.poll(first) is first
    run.clock.advance(9.9)
    assert run.coordinator.poll(first) is first
    run.clock.advance(0.2)
    second = run.coordinator.poll(first)
    assert (second.clock, second.logs) == (10_100, first.logs)
    other = Run(tmp_path / "other", limit=1).start()
    first = other.coordinator.poll(Offset())
    other.clock.advance(31)
    assert other.coordinator.poll(first).clock == 31_000, "a message is pending, so its timeout is looked at"
    settled = other.coordinator.poll(first)
    other.deliver(1, [1])
    other.clock.advance(31)
    assert other.coordinator.poll(settled) is settled, "an idle topology runs no batches"


def test_a_batch_waits_for_the_interval_unless_it_is_full(tmp_path: Path) -> None:
    conf = {"topology.batch.min.interval.ms": 60_000, "topology.batch.max.tuples": 10}
    run = Run(tmp_path, conf=conf).start()
    first = run.coordinator.poll(Offset())
    assert run.tuples(Offset(), first) == {run.task: 5}, "the first one does not wait"
    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(run.coordinator.poll, first)
        with pytest.raises(FutureTimeoutError):
            second.result(0.1)
        run.want()
        assert run.tuples(first, second.result()) == {run.task: 10}


def test_a_poll_that_waits_ends_when_the_query_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Coordinator, "pace", BatchPace(poll_secs=600.0, most_poll_secs=600.0))
    run = Run(tmp_path, limit=1).start()
    first = run.coordinator.poll(Offset())
    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(run.coordinator.poll, first)
        run.coordinator.let_go()
        assert second.result() is first


def test_carried_tuples_are_read_once_and_then_deleted(tmp_path: Path) -> None:
    run = Run(tmp_path, limit=1).start()
    first = run.coordinator.poll(Offset())
    run.coordinator.deliver(0, [], [b"carried"])
    second = run.coordinator.poll(first)
    assert second.carried == 0
    assert BatchFiles(tmp_path / "carried").batches() == [0]
    run.coordinator.deliver(1, [], [])
    assert run.coordinator.poll(second) is second
    assert BatchFiles(tmp_path / "carried").batches() == []


# --- outcomes -------------------------------------------------------------------------------------------------------


def test_spouts_hear_of_outcomes_when_the_batch_is_committed(tmp_path: Path) -> None:
    run = Run(tmp_path, limit=5).start()
    first = run.coordinator.poll(Offset())
    run.deliver(0, [1, 2])
    assert run.spout.acked == []
    run.deliver(0, [1, 3])
    run.coordinator.poll(first)
    assert run.spout.acked == [0, 2]


def test_outcomes_are_kept_until_every_spout_has_saved_them(tmp_path: Path) -> None:
    run = Run(tmp_path, tasks=2).start()
    first = run.coordinator.poll(Offset())
    one, other = run.spec.plan.components["spout"].tasks
    bodies = []
    for task in (one, other):
        roots = np.array([root_base(task) + 1], np.uint64)
        bodies.append(chunk.encode_outcome(roots, np.array([ACKED], np.uint8), source=9))
    run.coordinator.deliver(0, bodies, [])
    assert BatchFiles(tmp_path / "outcomes").batches() == [0]
    loops = FakeHost.made[0].loops
    FakeHost.calls = 0
    for loop in loops.values():
        loop.cut_if_due = lambda active: None  # nobody cuts for now
    run.coordinator.poll(first)
    for task in (one, other):
        assert loops[task].task.spout.acked == [0]
        assert BatchFiles(tmp_path / "outcomes").batches() == [0]
        del loops[task].cut_if_due
        loops[task].cut_if_due(True)
    assert BatchFiles(tmp_path / "outcomes").batches() == []


def test_outcomes_of_a_spout_that_is_gone_are_forgotten(tmp_path: Path) -> None:
    run = Run(tmp_path, limit=1).start()
    first = run.coordinator.poll(Offset())
    run.deliver(0, [1], task=77)
    run.coordinator.poll(first)
    assert BatchFiles(tmp_path / "outcomes").batches() == []


def test_damaged_outcomes_are_noticed_at_the_start(tmp_path: Path) -> None:
    BatchFiles(tmp_path / "outcomes").write(3, [b"x"])
    (path,) = (tmp_path / "outcomes").iterdir()
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match="damaged"):
        Run(tmp_path).start()


# --- the driver is killed --------------------------------------------------------------------------------------------


def test_after_a_restart_a_batch_that_was_not_committed_may_end_otherwise(tmp_path: Path) -> None:
    run = Run(tmp_path, limit=5).start()
    first = run.coordinator.poll(Offset())
    run.deliver(0, [1, 2])
    crash(run)
    again = Run(tmp_path, limit=5).start(first)
    assert again.spout.acked == []
    again.deliver(0, [2, 3])
    again.coordinator.poll(first)
    assert again.spout.acked == [1, 2], "what the first attempt said of message 1 does not count"


def test_after_a_restart_outcomes_that_were_not_saved_are_told_again(tmp_path: Path) -> None:
    run = Run(tmp_path, limit=5).start()
    first = run.coordinator.poll(Offset())
    run.deliver(0, [1, 2])
    loop = FakeHost.made[0].loops[run.task]
    loop.cut_if_due = lambda active: None
    run.coordinator.poll(first)
    assert run.spout.acked == [0, 1]
    crash(run)
    again = Run(tmp_path, limit=5).start(first)
    again.coordinator.poll(first)
    assert again.spout.acked == [0, 1]
    assert BatchFiles(tmp_path / "outcomes").batches() == []


def test_after_a_restart_the_backlog_comes_in_batches_as_before(tmp_path: Path) -> None:
    conf = {"topology.batch.max.tuples": 10}
    run = Run(tmp_path, conf=dict(conf)).start()
    first = run.coordinator.poll(Offset())
    for _ in range(10):
        run.want()
    crash(run)
    again = Run(tmp_path, conf=dict(conf)).start(first)
    assert again.spout.next == 20
    FakeHost.calls = 50
    again.want()
    assert again.spout.next == 25, "what waited before counts for back pressure"
    FakeHost.calls = 0
    offset, sizes = first, []
    while (end := again.coordinator.poll(offset)) is not offset:
        sizes += again.tuples(offset, end).values()
        offset = end
    assert sizes == [10, 10]


def test_a_log_that_ends_before_what_was_planned_is_refused(tmp_path: Path) -> None:
    run = Run(tmp_path).start()
    first = run.coordinator.poll(Offset())
    crash(run)
    folder = tmp_path / "spouts" / str(run.task)
    (segment,) = folder.glob("*.log")
    os.truncate(segment, first.logs[run.task] - 1)
    with pytest.raises(CheckpointError, match=f"must reach to {first.logs[run.task]}, as Spark has planned"):
        Run(tmp_path).start(first)


def test_the_clock_goes_on_from_what_was_planned(tmp_path: Path) -> None:
    run = Run(tmp_path).start(Offset(clock=5000))
    assert run.clock.now_ms() == 5000
    assert run.coordinator.poll(Offset(clock=5000)).clock == 5000


# --- a host is killed ----------------------------------------------------------------------------------------------


def test_a_host_that_died_is_told_what_it_missed_and_its_cuts_count(tmp_path: Path) -> None:
    run = Run(tmp_path).start()
    host = FakeHost.made[0]
    first = run.coordinator.poll(Offset())
    run.deliver(0, [1, 2])
    loop = host.loops[run.task]
    loop.cut_if_due = lambda active: None
    second = run.coordinator.poll(first)
    loop.task.cut()  # ... and dies before it can say so
    loop.task.next_tuple()
    assert host.kill() == 0.0
    run.deliver(1, [3])
    third = run.coordinator.poll(second)
    host.start()
    assert run.spout.acked == [0, 1, 2]
    assert run.spout.next == 10
    end = run.coordinator.poll(third)
    assert sum(run.tuples(Offset(), end).values()) == run.spout.next
    assert run.failures == []


def test_a_host_that_dies_when_its_spouts_are_open_is_started_again_also_before_the_query_is(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.coordinator.launch(Offset())
    host = FakeHost.made[0]
    host.loops[run.task].task.next_tuple()
    host.loops[run.task].task.cut()  # ... and dies before it can say so
    assert host.kill() == 0.0
    host.start()
    run.coordinator.wait_until_open()
    end = run.coordinator.poll(Offset())
    assert sum(run.tuples(Offset(), end).values()) == host.loops[run.task].task.spout.next
    assert run.failures == []


def test_a_host_that_dies_before_its_spouts_are_open_ends_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(tmp_path)
    monkeypatch.setattr(FakeHost, "start", lambda host: None)
    run.coordinator.launch(Offset())
    assert FakeHost.made[0].kill() is None
    assert "ended unexpectedly" in run.failures[0]
    assert "while it was opened" in run.failures[0]


def test_a_host_that_keeps_dying_ends_the_topology(tmp_path: Path) -> None:
    run = Run(tmp_path).start()
    host = FakeHost.made[0]
    host.ran_secs = 1.0
    pauses = []
    while (pause := host.kill()) is not None:
        pauses.append(pause)
        host.start()
    assert pauses == [0.0, 0.5, 1.0, 2.0, 4.0]
    assert len(run.failures) == 1
    assert "the process 1 of spout" in run.failures[0]
    assert "after 5 restarts in a row" in run.failures[0]


def test_a_spout_that_fails_ends_the_topology_with_its_reason(tmp_path: Path) -> None:
    run = Run(tmp_path).start()
    FakeHost.made[0].fail("it broke")
    assert run.failures == ["it broke"]
    start = Offset()
    assert run.coordinator.poll(start) is start


@pytest.mark.parametrize("folder", ["carried", "outcomes"])
def test_a_checkpoint_that_can_not_be_written_ends_the_topology(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    run = Run(tmp_path, limit=5).start()
    offset = run.coordinator.poll(Offset())
    run.deliver(0, [1], carried=[b"carried"])
    delete = LocalStorage.delete

    def broken(storage: LocalStorage, name: str) -> None:
        if Path(storage.url).name == folder:
            raise OSError(5, "Input/output error")
        delete(storage, name)

    monkeypatch.setattr(LocalStorage, "delete", broken)
    for _ in range(3):
        offset = run.coordinator.poll(offset)
    assert run.failures[:1] == ["the checkpoint can't be written: [Errno 5] Input/output error"]


# --- the end ---------------------------------------------------------------------------------------------------------


def test_a_finite_topology_is_complete_when_all_is_acked_and_not_before(tmp_path: Path) -> None:
    run = Run(tmp_path, limit=3).start()
    first = run.coordinator.poll(Offset())
    run.coordinator.poll(first)
    assert not run.coordinator.completed.is_set()
    run.deliver(0, [1, 2])
    run.deliver(1, [3], FAILED)
    second = run.coordinator.poll(first)
    assert run.spout.failed == [2]
    assert not run.coordinator.completed.is_set()
    assert run.tuples(first, second) == {run.task: 1}
    run.deliver(2, [4])
    run.coordinator.poll(second)
    assert run.coordinator.completed.is_set()


def test_drained_waits_for_the_spouts_word(tmp_path: Path) -> None:
    run = Run(tmp_path).start()
    offset = run.coordinator.poll(Offset())
    FakeHost.made[0].loops[run.task].task.next_tuple()
    run.coordinator.set_active(False)
    assert not run.coordinator.drained()
    end = run.coordinator.poll(offset)
    run.coordinator.poll(end)
    assert not run.coordinator.drained(), "messages are pending"
    run.deliver(0, list(range(1, 12)))
    last = run.coordinator.poll(end)
    assert run.coordinator.drained()
    run.coordinator.set_active(True)
    assert not run.coordinator.drained()
    assert run.coordinator.poll(last) is not last


# --- executors ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", range(1, 6))
@pytest.mark.parametrize("count", range(1, 8))
def test_executors_are_dealt_out_in_turn(count: int, workers: int) -> None:
    executors = [(n, n + 100) for n in range(count)]
    hosts = spread_executors(executors, workers)
    assert len(hosts) == min(workers, count)
    assert sorted(executor for host in hosts for executor in host) == executors
    sizes = [len(host) for host in hosts]
    assert max(sizes) - min(sizes) <= 1


def test_tasks_of_a_spout_are_spread_over_its_executors_in_order(tmp_path: Path) -> None:
    builder = TopologyBuilder()
    builder.set_spout("spout", Counting(), 2).set_num_tasks(5)
    builder.set_bolt("bolt", Nothing()).shuffle_grouping("spout")
    spec = make_worker(builder).spec
    tasks = spec.plan.components["spout"].tasks
    found = spout_executors(spec.plan)
    assert found == [tasks[:3], tasks[3:]]


# --- the loss of the machine -----------------------------------------------------------------------------------------


class Disk:
    """What is forced to the disk, and what spouts were told by then."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.calls: list[tuple[str, object, list[int]]] = []

    def force(self) -> None:
        self.calls.append(("all", BatchFiles(self.run.folder / "outcomes").batches(), list(self.run.spout.acked)))

    def committed(self, batch: int) -> None:
        self.calls.append(("commit", batch, list(self.run.spout.acked)))


def test_a_spout_hears_of_an_ack_only_when_the_commit_would_survive_the_machine(tmp_path: Path) -> None:
    run = Run(tmp_path)
    disk = Disk(run)
    run.coordinator = Coordinator(run.spec, tmp_path, run.clock, True, lambda failure: None, disk)
    run.start()
    first = run.coordinator.poll(Offset())
    run.deliver(0, [1, 2])
    assert disk.calls == [("all", [0], [])], "before Spark commits, with all that the batch left behind"
    run.coordinator.poll(first)
    assert disk.calls[1] == ("commit", 0, [])
    assert run.spout.acked == [0, 1]


def test_a_disk_that_fails_ends_the_topology_before_a_spout_hears_of_an_ack(tmp_path: Path) -> None:
    run = Run(tmp_path)

    class Failing(Disk):
        def committed(self, batch: int) -> None:
            raise OSError(5, "Input/output error")

    failures: list[str] = []
    run.coordinator = Coordinator(
        run.spec, tmp_path, run.clock, True, lambda failure: failures.append(failure.message), Failing(run)
    )
    run.start()
    first = run.coordinator.poll(Offset())
    run.deliver(0, [1])
    run.coordinator.poll(first)
    assert failures == ["the checkpoint can't be written: [Errno 5] Input/output error"]
    assert run.spout.acked == []


def test_what_a_micro_batch_without_a_commit_left_counts_for_nothing_whole_or_torn(tmp_path: Path) -> None:
    run = Run(tmp_path).start()
    first = run.coordinator.poll(Offset())
    run.deliver(0, [1])
    crash(run)
    (tmp_path / "outcomes" / f"{1:012d}.bin").touch()
    again = Run(tmp_path)
    again.coordinator.start(first, committed=-1)
    again.coordinator.poll(first)
    assert again.spout.acked == []
    crash(again)
    (tmp_path / "outcomes" / f"{1:012d}.bin").touch()
    once_more = Run(tmp_path)
    with pytest.raises(CheckpointError, match="is not a file of a micro-batch"):
        once_more.coordinator.start(first, committed=1)


def test_a_driver_that_did_not_plan_what_spark_goes_on_from_ends(tmp_path: Path) -> None:
    run = Run(tmp_path).start()
    first = run.coordinator.poll(Offset())
    other = Offset(first.logs, first.clock, first.carried, dict.fromkeys(first.epochs, WriterEpoch(99, 1)))
    with pytest.raises(CheckpointError, match="another one runs on this checkpoint"):
        run.coordinator.poll(other)


def test_the_input_of_a_micro_batch_that_runs_again_outlives_what_is_cut_before_it_is_committed(tmp_path: Path) -> None:
    # Without message ids, nothing but the micro-batch itself needs the log.
    run = Run(tmp_path, ids=False).start()
    first = run.coordinator.poll(Offset())
    second = run.coordinator.poll(first)
    crash(run)
    # The second one was planned and not committed. A host that starts begins a segment with its first cut.
    again = Run(tmp_path, ids=False).start(second)
    FakeHost.made[0].send(Want())
    assert again.tuples(first, second)[run.task] > 0
    third = again.coordinator.poll(second)
    assert third.epochs[run.task] > second.epochs[run.task]


def test_hosts_of_every_start_write_with_an_epoch_of_their_own(tmp_path: Path) -> None:
    planned, epochs = Offset(), []
    for _ in range(3):
        run = Run(tmp_path).start(planned)
        planned = run.coordinator.poll(planned)
        FakeHost.made[0].kill()
        FakeHost.made[0].start()
        end = run.coordinator.poll(planned)
        epochs += [planned.epochs[run.task], end.epochs[run.task]]
        planned = end
        crash(run)
    assert epochs == sorted(set(epochs))


def test_a_writer_in_the_logs_is_known_also_when_its_claim_is_gone(tmp_path: Path) -> None:
    run = Run(tmp_path).start()
    first = run.coordinator.poll(Offset())
    crash(run)
    for claim in (tmp_path / "writers").iterdir():
        claim.unlink()
    # Spark has no offset either: only the segments say that the first writer was there.
    again = Run(tmp_path).start()
    end = again.coordinator.poll(Offset())
    assert end.epochs[run.task].owner > first.epochs[run.task].owner


def test_logs_are_read_side_by_side_at_the_start_and_one_after_the_other_when_hosts_are_told_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading takes long from a store, and nothing is told before all spouts are open."""
    both_read = threading.Barrier(2)
    reading = threading.Semaphore(1)
    starting, threads, alone = True, [], []

    def noting(*args: Any) -> Any:
        if starting:
            both_read.wait(60)
        else:
            alone.append(reading.acquire(blocking=False))
            # Time for the other to come in, where nothing keeps it out.
            time.sleep(0.2)
            reading.release()
        return iter_cuts(*args)

    def on_a_thread(host: FakeHost) -> None:
        threads.append(threading.Thread(target=start, args=(host,)))
        threads[-1].start()

    start = FakeHost.start
    monkeypatch.setattr(FakeHost, "start", on_a_thread)
    monkeypatch.setattr(coordinator_module, "iter_cuts", noting)
    run = Run(tmp_path, tasks=2, conf={"topology.workers": 2}).start()
    assert len(FakeHost.made) == 2
    assert both_read.n_waiting == 0
    assert not both_read.broken
    starting = False
    for host in FakeHost.made:
        host.kill()
    for host in FakeHost.made:
        host.start()
    for thread in threads:
        thread.join(60)
    assert alone == [True, True]
    assert not run.failures
