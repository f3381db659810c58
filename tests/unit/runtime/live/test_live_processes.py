"""A whole topology whose tasks are live in several processes: state is as exact as in one, whatever dies."""

from __future__ import annotations

from pathlib import Path

import pytest
from live_simulation import LiveSimulation, LiveSpark
from simulation import POINTS, seeds

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
