"""A round of a few tuples does what a large one does, tuple by tuple."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from simulation import build, seeds
from stormtest import make_worker

from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.runtime.bolts.bolt_task import BoltTask
from storm_on_spark.runtime.bolts.worker import Worker
from storm_on_spark.runtime.codec import chunk
from storm_on_spark.runtime.codec.chunk import Kind
from storm_on_spark.runtime.live.execution.small_round import SmallRounds
from storm_on_spark.runtime.live.execution.tasks import LiveTasks
from storm_on_spark.runtime.live.messages import Adopt
from storm_on_spark.runtime.reports.report import TaskMetrics
from storm_on_spark.runtime.spouts.messages import Acked, Executed, Settle, Told, Written
from storm_on_spark.runtime.spouts.opening import open_spout_task
from storm_on_spark.runtime.spouts.spout_task import SpoutTask

_ROUNDS = 30


def as_lists(roots: Any) -> list[Any]:
    """Roots, each as an int or a tuple of ints, in the form that a lineage has them in."""
    return [tuple(map(int, root)) if isinstance(root, tuple) else int(root) for root in roots]


class Watched:
    """Notes what bolts execute."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[Any] = []
        execute = BoltTask.execute

        def noted(task: BoltTask, inputs: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
            for delivery, rows, size in inputs:
                values = rows.to_pylist() if isinstance(rows, pa.RecordBatch) else [tuple(row) for row in rows]
                lineage = delivery.lineage
                trees = None if lineage is None else (as_lists(lineage.roots), as_lists(lineage.edges))
                self.seen.append((task.task, delivery.component, delivery.stream, delivery.task, values, size, trees))
            return execute(task, inputs, *args, **kwargs)

        monkeypatch.setattr(BoltTask, "execute", noted)

    def taken(self) -> list[Any]:
        seen, self.seen = self.seen, []
        return seen


class Choice:
    """Which rounds are small: those that can be, or none."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.small = False
        #: How many rounds were small, and how many were not, where they could be.
        self.chosen: Counter[bool] = Counter()
        suits = SmallRounds.suits

        def chosen(rounds: SmallRounds, chunks: Any) -> bool:
            if not self.small:
                return False
            found = suits(rounds, chunks)
            self.chosen[found] += 1
            return found

        monkeypatch.setattr(SmallRounds, "suits", chosen)


class Twin:
    """Live tasks whose rounds are small where they can be, or never."""

    def __init__(self, worker: Worker, choice: Choice, *, small: bool) -> None:
        self.tasks = LiveTasks(worker, Adopt("", b"", b"a state", Offset({}, 0), {}, ()))
        self.small, self.choice, self.token = small, choice, b"a state"

    def execute(self, clock: int) -> tuple[dict[int, int], list[Executed], Told]:
        self.choice.small = self.small
        told = self.tasks.execute(clock)
        return *ended(told), told

    def cut(self, start: Offset, end: Offset) -> tuple[list[Any], dict[Any, bytes | None]]:
        """What is for the sink, and all that changed but the random names of versions; the cut is committed then."""
        cut = self.tasks.cut(self.token, start, end)
        assert cut is not None
        self.token = cut.token
        return rows(cut.rows), {key: value for key, value in cut.changes.items() if key[1] != "version"}


def ended(told: Told) -> tuple[dict[int, int], list[Executed]]:
    """What became of each root, and up to where logs are executed."""
    roots: dict[int, int] = {}
    for message in told:
        if isinstance(message, Settle):
            roots |= dict(zip(message.ended.roots().tolist(), message.ended.each_code().tolist(), strict=True))
        elif isinstance(message, Acked):
            roots |= dict.fromkeys(message.roots, 0)
    return roots, [message for message in told if isinstance(message, Executed)]


def untimed(report: TaskMetrics) -> TaskMetrics:
    """The counters of a task without what depends on time."""
    amounts = {key: amount for key, amount in report.amounts.items() if not key[0].endswith(("_ns", "_bin"))}
    return report._replace(seconds=0, amounts=amounts)


def rows(bodies: Sequence[bytes]) -> list[Any]:
    """What is for the sink, in any order."""
    found: list[Any] = []
    for body in bodies:
        header = chunk.read_header(body)
        if header.kind == Kind.OUTCOME:
            found.append(("ended", *(part.tolist() for part in chunk.read_outcome(header, body))))
        elif header.kind == Kind.REPORT:
            reports = chunk.read_report(body)
            found += [untimed(report) for report in reports if isinstance(report, TaskMetrics)]
            found += [(report.message, report.times) for report in reports if not isinstance(report, TaskMetrics)]
        else:
            lineage, payload, receipt = chunk.read_lineage(header, body)
            trees = None if lineage is None else (as_lists(lineage.roots), as_lists(lineage.edges))
            found.append((header._replace(extra=0, flags=0), bytes(payload), receipt, trees))
    return sorted(found, key=repr)


@pytest.mark.parametrize("seed", seeds(3))
def test_a_small_round_does_what_a_large_one_does_tuple_by_tuple(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    random, clock, watched, choice = Random(seed), 0, Watched(monkeypatch), Choice(monkeypatch)
    monkeypatch.setattr("storm_on_spark.runtime.live.execution.tasks._numbers", lambda: count(1 << 20))
    monkeypatch.setattr("storm_on_spark.runtime.live.execution.tasks._CAREFUL_MS", 0)  # a saved round is not small
    monkeypatch.setattr("time.time", lambda: 1.0)  # tuples that a bolt keeps know when they came
    conf = {"topology.profile": "realtime", "topology.acker.executors": 1 + seed % 3}
    spec = dataclasses.replace(make_worker(build(400), conf, 1).spec, folder=str(tmp_path))
    (tmp_path / "spouts").mkdir()
    worker = Worker(spec)
    spouts = [open_spout(worker, task, lambda: clock) for task in spec.plan.components["numbers"].tasks]
    small, large = Twin(worker, choice, small=True), Twin(Worker(spec), choice, small=False)
    committed, raised = Offset({}, 0), 0
    for number in range(1, _ROUNDS):
        clock += random.choice([1, 40, 700, 6000])
        for spout in spouts:
            for _ in range(random.choice([0, 1, 1, 2, 5] if number % 10 else [30])):
                spout.next_tuple()
            if spout.dirty:
                spout.cut()
                cut = spout.log.last
                assert cut is not None
                for twin in (small, large):
                    twin.tasks.take(Written(spout.task, cut.position, cut.mark, spout.cut_entries))
        *by_small, told = small.execute(clock)
        executed = watched.taken()
        *by_large, _ = large.execute(clock)
        assert by_small == by_large
        assert executed == watched.taken()
        tell(spouts, told)
        if number % 4 == 0:
            committed, failures = compare_cuts(small, large, committed)
            raised += failures
    assert choice.chosen[True] > _ROUNDS // 3, "hardly a round was small"
    assert choice.chosen[False], "no round was large"
    assert raised, "no bolt raised"
    assert np.any([spout.stats.failed for spout in spouts]), "no message failed"
    for spout in spouts:
        spout.close()


def compare_cuts(small: Twin, large: Twin, start: Offset) -> tuple[Offset, int]:
    """Compares what a micro-batch would have done; returns where it ends, and how many kinds of errors are in it."""
    end = small.tasks.barrier(start)
    assert end is not None
    assert large.tasks.barrier(start) == end
    found = small.cut(start, end)
    assert found == large.cut(start, end)
    return end, sum(isinstance(row, tuple) and isinstance(row[0], str) and row[0] != "ended" for row in found[0])


def open_spout(worker: Worker, task: int, clock: Any) -> SpoutTask:
    folder = Path(worker.spec.folder) / "spouts" / str(task)
    spout = open_spout_task(worker.spec, worker.wiring, worker.context(task), folder, clock)
    spout.activate()
    return spout


def tell(spouts: list[SpoutTask], told: Told) -> None:
    for message in told:
        for spout in spouts:
            if message.task == spout.task and isinstance(message, Settle):
                spout.settle(message.batch, message.ended.roots(), message.ended.each_code())
            elif message.task == spout.task and isinstance(message, Acked):
                spout.acked(message.roots)
