"""A whole topology whose tasks are live, killed anywhere: every tree ends once, state is exact, nothing is lost."""

from __future__ import annotations

import contextlib
import dataclasses
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from live_simulation import LiveSimulation, LiveSpark
from simulation import POINTS, Numbers, seeds
from stormtest import make_worker

from storm_on_spark.api import TopologyBuilder
from storm_on_spark.api.component import BaseTickTupleAwareRichBolt
from storm_on_spark.runtime.live.execution.small_round import SmallRounds
from storm_on_spark.testing.simulated import DriverKilled

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
def test_everything_is_killed_anywhere_with_the_checkpoint_in_a_store(tmp_path: Path, seed: int) -> None:
    simulation = LiveSimulation(tmp_path, seed, limit=25, kills=0.15, retries=0.1, ackers=1 + seed % 3, stored=True)
    simulation.deaths, simulation.cluster.begins_early = 0.1, seed % 2 == 0
    simulation.run()
    simulation.check_end()
    assert set(simulation.kinds) >= set(POINTS), "a fault did not happen"
    assert sum(live.cuts for live in simulation.seen), "no micro-batch was taken from the live process"
    assert sum(live.early for live in simulation.seen), "no message ended before its micro-batch"
    assert simulation.cluster.fates["woke up"], "none was frozen that executed a round"


@pytest.mark.parametrize("seed", seeds(4))
def test_a_new_topology_begins_before_spark_and_everything_is_killed_anywhere(tmp_path: Path, seed: int) -> None:
    simulation = LiveSimulation(tmp_path, seed, limit=25, kills=0.15, retries=0.1, ackers=1 + seed % 3)
    simulation.deaths, simulation.cluster.begins_early = 0.1, True
    simulation.run()
    simulation.check_end()
    assert set(simulation.kinds) >= set(POINTS), "a fault did not happen"
    assert simulation.cluster.early_rounds, "nothing was executed before Spark's first micro-batch"


class Holds(BaseTickTupleAwareRichBolt):
    """Acks all tuples at the next tick."""

    def prepare(self, conf, context, collector):
        self.collector, self.held, self.executed = collector, [], 0

    def process(self, tup):
        self.held.append(tup)
        self.executed += 1

    def on_tick_tuple(self, tup):
        for held in self.held:
            self.collector.ack(held)
        self.held = []


class StoppedSpark(LiveSpark):
    """Ends the query as soon as the topology is complete, as a driver does."""

    def _killed(self, killed_at: str | None, here: str) -> None:
        super()._killed("planned" if self.coordinator.completed.is_set() else killed_at, here)


@pytest.mark.parametrize("end", ["lives", "live process dies", "driver dies"])
def test_the_state_at_the_end_has_what_a_tick_acked_live_behind_the_last_checkpoint(tmp_path: Path, end: str) -> None:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(6))
    holds = builder.set_bolt("holds", Holds()).shuffle_grouping("numbers")
    holds.add_configuration("topology.tick.tuple.freq.secs", 1)
    conf = {"topology.profile": "realtime", "topology.state.checkpoint.interval.ms": 100, "topology.acker.executors": 1}
    spec = dataclasses.replace(make_worker(builder, conf, 1).spec, folder=str(tmp_path))
    cluster = StoppedSpark(spec, tmp_path, Random(1))
    cluster.begins_early = True
    cluster.start()

    def work() -> None:
        [host] = cluster.hosts
        for loop in list(host.loops.values()):
            host.work(loop, 10)

    def pending() -> int:
        [host] = cluster.hosts
        return sum(len(loop.task.pending) for loop in host.loops.values())

    while not pending():
        work()
        cluster.live.round()
    cluster.step()
    assert pending(), "the tick came before the last checkpoint"
    cluster.clock.advance(1)
    cluster.live.round()
    work()
    assert not pending(), "the tick has not acked them"
    if end == "live process dies":
        cluster.live.die()
    elif end == "driver dies":
        [host] = cluster.hosts
        host.die()
        cluster.start()
    cluster.live.ended = True  # no further rounds
    for _ in range(20):
        work()
        with contextlib.suppress(DriverKilled):
            cluster.step()
        if cluster.coordinator.completed.is_set():
            break
    assert cluster.coordinator.completed.is_set()
    [state] = cluster.states("holds")
    assert (state["executed"], state["held"]) == (6, [])
    [acker] = spec.plan.acker_tasks
    assert cluster.state[acker] == {}
