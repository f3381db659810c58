"""A whole topology whose tasks are live in several processes: state is as exact as in one, whatever dies."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from live_simulation import FATES, LiveSimulation, LiveSpark
from simulation import POINTS, seeds

from storm_on_spark.api import BaseStatefulBolt, TopologyBuilder

pytestmark = pytest.mark.usefixtures("hosts_in_this_process")


@pytest.mark.parametrize("processes", [pytest.param(2, marks=pytest.mark.slow), 3])
def test_tasks_are_executed_by_all_processes(tmp_path: Path, processes: int) -> None:
    simulation = LiveSimulation(tmp_path, processes, limit=30, processes=processes)
    simulation.run()
    simulation.check_end()
    live = simulation.cluster.live
    assert live.cuts, "no micro-batch was taken from the live processes"
    assert live.early, "no message ended before its micro-batch"
    assert live.asked["Execute"] > live.rounds, "others had little to execute"
    assert live.answered["Raised"], "no bolt of another process raised"
    assert live.asked["GoBack"], "no process went back"
    assert live.given_up == [], "poison ends no live process"


class Deadly(LiveSpark):
    member_deaths = True


class DeadlySimulation(LiveSimulation):
    spark = Deadly


@pytest.mark.parametrize("seed", seeds(6))
def test_any_process_is_killed_anywhere(tmp_path: Path, seed: int) -> None:
    simulation = DeadlySimulation(
        tmp_path, seed, limit=25, kills=0.15, retries=0.1, ackers=1 + seed % 3, processes=2 + seed % 2
    )
    simulation.deaths = 0.05
    simulation.run()
    simulation.check_end()
    assert set(simulation.kinds) >= set(POINTS), "a fault did not happen"
    assert sum(live.cuts for live in simulation.seen), "no micro-batch was taken from the live processes"
    assert sum(live.lost for live in simulation.seen), "no further process died"


class Twice(BaseStatefulBolt):
    """Counts what it sees in attributes and in key-value state, and notes where they differ."""

    def prepare(self, conf, context, collector):
        self.collector, self.seen, self.differing = collector, Counter(), []

    def init_state(self, state):
        self.counts = state

    def execute(self, tup):
        key = tuple(tup)
        self.seen[key] += 1
        self.counts.put(key, self.counts.get(key, 0) + 1)
        if self.counts.get(key) != self.seen[key]:
            self.differing.append((key, self.counts.get(key), self.seen[key]))
        self.collector.ack(tup)


class MovingSimulation(LiveSimulation):
    """Tasks move at barriers, also such with key-value state."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.cluster.moves = 0.8

    def built(self) -> TopologyBuilder:
        builder = super().built()
        builder.set_bolt("twice", Twice(), 3).fields_grouping("numbers", ["number"])
        return builder

    def check_end(self) -> None:
        super().check_end()
        assert [state["differing"] for state in self.cluster.states("twice")] == [[], [], []]
        counts = self.merged("count", "counts")
        expected = {(task, number): count for (task, number, part), count in counts.items() if part == 0}
        assert self.merged("twice", "seen") == expected


class DeadlyMovingSimulation(MovingSimulation, DeadlySimulation):
    """Tasks move, and any process is killed, above all then."""


@pytest.mark.parametrize("seed", seeds(2))
def test_tasks_move_at_barriers(tmp_path: Path, seed: int) -> None:
    simulation = MovingSimulation(tmp_path, seed, limit=30, processes=2 + seed % 2)
    simulation.run()
    simulation.check_end()
    live = simulation.cluster.live
    assert live.cuts, "no micro-batch was taken from the live processes"
    assert live.answered["Given"], "no task has left a further process"
    assert live.asked["Receive"], "no task came to a further process"
    assert live.given_up == [], "neither poison nor a move ends a live process"


@pytest.mark.parametrize("seed", seeds(6))
def test_tasks_move_and_any_process_is_killed_anywhere(tmp_path: Path, seed: int) -> None:
    simulation = DeadlyMovingSimulation(
        tmp_path, seed, limit=60, kills=0.05, retries=0.05, ackers=1 + seed % 3, processes=2 + seed % 2
    )
    simulation.deaths = 0.02
    simulation.run()
    simulation.check_end()
    assert set(simulation.kinds) >= set(POINTS), "a fault did not happen"
    assert sum(live.cuts for live in simulation.seen), "no micro-batch was taken from the live processes"
    assert set(simulation.cluster.fates) >= set(FATES[1:]), "a process did not die right after a move"
