"""A whole topology whose tasks are live, killed anywhere: every tree ends once, state is exact, nothing is lost."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from live_simulation import LiveSimulation
from simulation import POINTS, seeds

from storm_on_spark.runtime.live.small_round import SmallRounds

pytestmark = pytest.mark.usefixtures("hosts_in_this_process")


@pytest.mark.parametrize("seed", seeds(3))
def test_without_faults_but_poison(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    sizes, suits, random = Counter[bool](), SmallRounds.suits, Random(seed)

    def counted(rounds: SmallRounds, chunks: Any) -> bool:
        small = suits(rounds, chunks) and random.random() < 0.7  # a large one may have a few tuples, too
        sizes[small] += 1
        return small

    monkeypatch.setattr(SmallRounds, "suits", counted)
    simulation = LiveSimulation(tmp_path, seed, limit=30)
    simulation.run()
    simulation.check_end()
    live = simulation.cluster.live
    assert live.cuts, "no micro-batch was taken from the live process"
    assert live.early, "no message ended before its micro-batch"
    assert live.given_up == [], "poison ends no live process"
    assert sizes[True], "no round was small"
    assert sizes[False], "no round was large"


@pytest.mark.parametrize("seed", seeds(6))
def test_driver_hosts_workers_and_the_live_process_are_killed_anywhere(tmp_path: Path, seed: int) -> None:
    simulation = LiveSimulation(tmp_path, seed, limit=25, kills=0.15, retries=0.1, ackers=1 + seed % 3)
    simulation.deaths = 0.1
    simulation.run()
    simulation.check_end()
    assert set(simulation.kinds) >= set(POINTS), "a fault did not happen"
    assert sum(live.cuts for live in simulation.seen), "no micro-batch was taken from the live process"


@pytest.mark.parametrize("seed", seeds(4))
def test_a_new_topology_begins_before_spark_and_everything_is_killed_anywhere(tmp_path: Path, seed: int) -> None:
    simulation = LiveSimulation(tmp_path, seed, limit=25, kills=0.15, retries=0.1, ackers=1 + seed % 3)
    simulation.deaths, simulation.cluster.begins_early = 0.1, True
    simulation.run()
    simulation.check_end()
    assert set(simulation.kinds) >= set(POINTS), "a fault did not happen"
    assert simulation.cluster.early_rounds, "nothing was executed before Spark's first micro-batch"
