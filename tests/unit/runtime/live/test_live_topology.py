"""A whole topology whose tasks are live, killed anywhere: every tree ends once, state is exact, nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from live_simulation import LiveSimulation
from simulation import POINTS, seeds

pytestmark = pytest.mark.usefixtures("hosts_in_this_process")


@pytest.mark.parametrize("seed", seeds(3))
def test_without_faults_but_poison(tmp_path: Path, seed: int) -> None:
    simulation = LiveSimulation(tmp_path, seed, limit=30)
    simulation.run()
    simulation.check_end()
    live = simulation.cluster.live
    assert live.cuts, "no micro-batch was taken from the live process"
    assert live.early, "no message ended before its micro-batch"
    assert live.given_up == [], "poison ends no live process"


@pytest.mark.parametrize("seed", seeds(6))
def test_driver_hosts_workers_and_the_live_process_are_killed_anywhere(tmp_path: Path, seed: int) -> None:
    simulation = LiveSimulation(tmp_path, seed, limit=25, kills=0.15, retries=0.1, ackers=1 + seed % 3)
    simulation.deaths = 0.1
    simulation.run()
    simulation.check_end()
    assert set(simulation.kinds) >= set(POINTS), "a fault did not happen"
    assert sum(live.cuts for live in simulation.seen), "no micro-batch was taken from the live process"
