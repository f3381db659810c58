"""A bolt that raises often: the first error sets tasks back to the last barrier, others cost their own round."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, ClassVar

import pytest
from stormtest import make_worker

from storm_on_spark.api import BaseBasicBolt, BaseRichSpout, TopologyBuilder
from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.runtime.bolts.worker import Worker
from storm_on_spark.runtime.live.execution import local_tasks
from storm_on_spark.runtime.live.execution.tasks import LiveTasks
from storm_on_spark.runtime.live.messages import Adopt
from storm_on_spark.runtime.spouts.messages import Written
from storm_on_spark.runtime.spouts.opening import open_spout_task
from storm_on_spark.runtime.spouts.spout_task import SpoutTask

_ROUNDS = 60
_POISON = range(30, _ROUNDS, 3)


class Numbers(BaseRichSpout):
    """Emits one number a call."""

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector
        self.next = 0

    def next_tuple(self) -> None:
        self.collector.emit((self.next,), self.next)
        self.next += 1

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(("number",))


class Sum(BaseBasicBolt):
    """Adds numbers up, and raises at some."""

    executed: ClassVar[list[int]] = []

    def __init__(self, ballast: int) -> None:
        self.ballast = b"x" * ballast
        self.total = 0

    def execute(self, tup: Any, collector: Any) -> None:
        type(self).executed.append(tup[0])
        if tup[0] in _POISON:
            raise ValueError(tup[0])
        self.total += tup[0]

    def declare_output_fields(self, declarer: Any) -> None:
        """Emits nothing."""


@pytest.mark.parametrize("large", [False, True])
def test_each_error_after_the_first_costs_its_own_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, large: bool
) -> None:
    monkeypatch.setattr(local_tasks, "_SMALL", 5000)
    monkeypatch.setattr(Sum, "executed", [])
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers())
    builder.set_bolt("sum", Sum(10_000 if large else 10)).shuffle_grouping("numbers")
    spec = dataclasses.replace(make_worker(builder, {"topology.profile": "realtime"}, 1).spec, folder=str(tmp_path))
    (tmp_path / "spouts").mkdir()
    worker = Worker(spec)
    tasks = LiveTasks(worker, Adopt("", b"", b"a state", Offset({}, 0), {}, ()))
    spout = open_spout(worker)
    for number in range(_ROUNDS):
        spout.next_tuple()
        spout.cut()
        assert spout.log.last is not None
        tasks.take(Written(spout.task, spout.log.last.position, spout.log.last.mark, spout.cut_entries))
        tasks.execute(10 * number)
    spout.close()
    [task] = worker.spec.plan.components["sum"].tasks
    assert worker.tasks[task].bolt.instance.total == sum(set(range(_ROUNDS)) - set(_POISON))
    # Of a large state each error costs everything since the last barrier, which never came.
    again = sum(range(30, _ROUNDS, 3)) if large else 30
    assert len(Sum.executed) - _ROUNDS - len(_POISON) == pytest.approx(again, abs=len(_POISON))


def open_spout(worker: Worker) -> SpoutTask:
    [task] = worker.spec.plan.components["numbers"].tasks
    folder = Path(worker.spec.folder or "") / "spouts" / str(task)
    spout = open_spout_task(worker.spec, worker.wiring, worker.context(task), folder, lambda: 0)
    spout.activate()
    return spout
