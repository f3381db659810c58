"""Large snapshots are taken by a copy of the process: as they were at the barrier, whatever happens meanwhile."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from live_simulation import LiveSimulation
from stormtest import Source, make_worker

from storm_on_spark.api import BaseBasicBolt, TopologyBuilder
from storm_on_spark.api.errors import StormError
from storm_on_spark.runtime.bolts.saved import SavedTask
from storm_on_spark.runtime.live.execution import copied, local_tasks
from storm_on_spark.runtime.live.execution.copied import Copy, FailedCopyError
from storm_on_spark.runtime.live.execution.local_tasks import LocalTasks
from storm_on_spark.runtime.live.execution.state import LiveState

TASK = 2


class Slow:
    """Can't be pickled before a file is there."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> object:
        while not self.file.exists():
            time.sleep(0.001)
        return Slow, (self.file,)


class Keeper(BaseBasicBolt):
    def prepare(self, conf, context) -> None:
        self.kept = {"words": 0}

    def execute(self, tup, collector) -> None: ...


class Lockable:
    """Is pickled, but not any more once it is locked."""

    locked = False

    def __reduce__(self) -> object:
        if self.locked:
            raise ValueError("locked")
        return Lockable, ()


class CountedCopy(Copy):
    made = 0

    def __init__(self, tasks) -> None:
        type(self).made += 1
        super().__init__(tasks)


@pytest.fixture(autouse=True)
def trusted_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copied, "trusted", True)
    monkeypatch.setattr(copied, "LARGE", 0)
    monkeypatch.setattr(local_tasks, "_SMALL", -1)
    monkeypatch.setattr(CountedCopy, "made", 0)
    monkeypatch.setattr(local_tasks, "Copy", CountedCopy)


@pytest.fixture
def kept() -> Iterator[LocalTasks]:
    """A share with one bolt, which was saved once."""
    builder = TopologyBuilder()
    builder.set_spout("source", Source())
    builder.set_bolt("keeper", Keeper()).shuffle_grouping("source")
    worker = make_worker(builder, partitions=1)
    [task] = worker.wiring.plan.components["keeper"].tasks
    held = LocalTasks(worker, {})
    worker.tasks[task] = SavedTask(worker, task, LiveState({}).of(task)).taken_out()
    touch(held)
    held.save(1)
    assert held.take_changes()
    yield held
    held.close()


def touch(held: LocalTasks, **attributes: object) -> None:
    """Changes the bolt as an execution would that is not saved."""
    [cached] = held.worker.tasks.values()
    vars(cached.bolt.instance).update(attributes)
    cached.unsaved = True


def read(held: LocalTasks) -> dict[str, object]:
    """The bolt's attributes as the state has them."""
    held.go_back()
    [(task, cached)] = held.worker.tasks.items()
    held.worker.tasks[task] = SavedTask(held.worker, task, held.state.of(task)).taken_out()
    return vars(cached.bolt.instance)


def test_messages_go_on_while_a_copy_pickles_what_was_there_at_the_barrier(kept: LocalTasks, tmp_path: Path) -> None:
    file = tmp_path / "go"
    touch(kept, kept={"words": 7}, slow=Slow(file))
    kept.save(2, later=True)
    assert kept.take_changes() == {}
    assert kept.owes
    assert kept.late_changes(wait=False) is None, "it can't be ready: nobody has let it"
    touch(kept, kept={"words": 8})
    file.touch()
    changes = kept.late_changes()
    assert {name for _, name, _ in changes} == {"snapshot", "version"}
    assert not kept.owes
    [cached] = kept.worker.tasks.values()
    assert cached.unsaved, "what was executed since is not saved"
    assert read(kept)["kept"] == {"words": 7}


def test_nothing_changes_where_nothing_has(kept: LocalTasks) -> None:
    touch(kept)
    kept.save(2, later=True)
    assert (kept.take_changes(), kept.late_changes()) == ({}, {})
    assert CountedCopy.made == 1


def test_an_attribute_that_can_not_be_pickled_any_more_is_warned_of_once(
    kept: LocalTasks, caplog: pytest.LogCaptureFixture
) -> None:
    lockable = Lockable()
    touch(kept, lockable=lockable)
    kept.save(2, later=True)
    assert kept.late_changes()
    lockable.locked = True
    for words in (3, 4):
        touch(kept, kept={"words": words})
        kept.save(3, later=True)
        assert kept.late_changes()
    [cached] = kept.worker.tasks.values()
    assert cached.bolt.snapshots.transient == {"lockable"}
    assert not caplog.records, "the copy says it, not this process"
    assert read(kept)["kept"] == {"words": 4}


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGSTOP])
def test_a_copy_that_ends_or_hangs_is_the_last_one(
    kept: LocalTasks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: signal.Signals
) -> None:
    monkeypatch.setattr(copied, "_LONGEST_SECS", 0.3)
    touch(kept, slow=Slow(tmp_path / "never"))
    kept.save(2, later=True)
    [pid] = (child.pid for child in psutil.Process().children() if child.status() != psutil.STATUS_ZOMBIE)
    os.kill(pid, end)
    with pytest.raises(FailedCopyError, match=r"status 9|within 0 s"):
        kept.late_changes()
    assert not copied.trusted
    touch(kept, slow=None)
    kept.save(3, later=True)
    assert kept.take_changes(), "it was saved at once"
    assert CountedCopy.made == 1


def test_what_can_not_be_saved_is_said(kept: LocalTasks, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> bytes:
        raise StormError("a reason")

    [cached] = kept.worker.tasks.values()
    monkeypatch.setattr(cached.bolt, "take", refuse)
    touch(kept)
    kept.save(2, later=True)
    with pytest.raises(FailedCopyError, match="says: a reason"):
        kept.late_changes()


@pytest.mark.usefixtures("hosts_in_this_process")
@pytest.mark.parametrize(
    ("processes", "seed", "kills", "moves"),
    [(1, 4, 0.0, 0.0), (2, 4, 0.0, 1.0), pytest.param(2, 4, 0.04, 0.0, marks=pytest.mark.slow)],
)
def test_a_topology_is_as_exact_with_copies(
    tmp_path: Path, processes: int, seed: int, kills: float, moves: float
) -> None:
    simulation = LiveSimulation(tmp_path, seed, limit=30, kills=kills, retries=0.1, processes=processes)
    simulation.deaths, simulation.cluster.moves = kills / 2, moves
    simulation.run()
    simulation.check_end()
    assert CountedCopy.made > 5, "copies were hardly made"
    assert sum(live.cuts for live in simulation.seen), "no micro-batch was taken from the live process"
    assert copied.trusted, "a copy has failed"
