"""A whole topology without Spark, killed anywhere: every tree ends once, state is exact, nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from simulation import (
    POINTS,
    Simulation,
    build,
    seeds,
)
from stormtest import make_worker

from storm_on_spark.plan.model import EdgeKind, StageKind

pytestmark = pytest.mark.usefixtures("hosts_in_this_process")


def test_the_topology_has_all_that_can_go_wrong() -> None:
    plan = make_worker(build(1)).spec.plan
    assert plan.components["split"].fused
    assert plan.components["fork"].fused
    assert plan.components["fork"].stage == plan.components["count"].stage > 0
    assert {edge.kind for edge in plan.edges} == set(EdgeKind)
    assert {stage.kind for stage in plan.stages} >= {StageKind.SOURCE, StageKind.STATEFUL, StageKind.ACKER}


@pytest.mark.parametrize("seed", seeds(3))
def test_without_faults(tmp_path: Path, seed: int) -> None:
    simulation = Simulation(tmp_path, seed, limit=30)
    simulation.run()
    simulation.check_end()


@pytest.mark.parametrize("seed", seeds(3))
def test_tasks_that_are_tried_again_give_the_same_chunks_and_state(tmp_path: Path, seed: int) -> None:
    simulation = Simulation(tmp_path, seed, limit=25, retries=0.3)
    simulation.run()
    simulation.check_end()


@pytest.mark.parametrize("seed", seeds(9))
def test_driver_hosts_and_workers_are_killed_anywhere(tmp_path: Path, seed: int) -> None:
    simulation = Simulation(tmp_path, seed, limit=25, kills=0.15, retries=0.1, ackers=1 + seed % 3)
    simulation.run()
    simulation.check_end()
    assert set(simulation.kinds) >= set(POINTS), "a fault did not happen"


@pytest.mark.parametrize("seed", seeds(6))
def test_the_same_in_a_store(tmp_path: Path, seed: int) -> None:
    """It can't append, lock or rename; what was trimmed is deleted some time later."""
    simulation = Simulation(tmp_path, seed, limit=25, kills=0.15, retries=0.1, ackers=1 + seed % 3, stored=True)
    simulation.run()
    simulation.check_end()
    assert set(simulation.kinds) >= set(POINTS), "a fault did not happen"


@pytest.mark.parametrize("seed", seeds(6))
def test_a_message_that_was_acked_is_in_the_state_also_if_bolts_are_fickle(tmp_path: Path, seed: int) -> None:
    simulation = Simulation(tmp_path, seed, limit=25, kills=0.3, retries=0.4, flaky=0.3)
    simulation.run()
    simulation.check_end()
