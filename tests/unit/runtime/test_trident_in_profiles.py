"""Trident in micro-batches and in real time, killed anywhere: 30,000 messages are counted once each."""

from __future__ import annotations

import dataclasses
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from live_simulation import LiveSpark

from storm_on_spark import FailedException
from storm_on_spark.api.config import effective_conf
from storm_on_spark.plan.compile import compile_graph, place
from storm_on_spark.runtime.live.execution.small_round import SmallRounds
from storm_on_spark.runtime.run.spec import make_spec
from storm_on_spark.testing.simulated import DriverKilled, SimulatedSpark
from storm_on_spark.trident import Aggregator, Count, FixedBatchSpout, TridentTopology
from storm_on_spark.trident.state import MapState, StateFactory

MESSAGES, BATCH, KEYS = 30_000, 1_000, 97
POINTS = (*[None] * 4, "planned", "executed", "delivered", "committed")
"""Where the driver is killed in a micro-batch."""


class Counts(MapState[int]):
    """Counts in attributes, with the batches that changed them."""

    def __init__(self) -> None:
        self.values: dict[Any, int] = {}
        self.txids: list[int | None] = []

    def begin_commit(self, txid: int | None) -> None:
        self.txids.append(txid)

    def commit(self, txid: int | None) -> None: ...

    def multi_get(self, keys: Any) -> list[int | None]:
        return [self.values.get(tuple(key)) for key in keys]

    def multi_put(self, keys: Any, values: Any) -> None:
        self.values.update(zip(map(tuple, keys), values, strict=True))

    def multi_update(self, keys: Any, updaters: Any) -> list[int]:
        found = [updater.update(old) for updater, old in zip(updaters, self.multi_get(keys), strict=True)]
        self.multi_put(keys, found)
        return found


class CountsFactory(StateFactory):
    def make_state(self, conf: Any, metrics: Any, partition_index: int, num_partitions: int) -> Counts:
        return Counts()


class Passes(Aggregator):
    """Passes tuples on, but fails the first attempts of some batches."""

    def __init__(self, *txids: int) -> None:
        self.txids = txids

    def init(self, batch_id: Any, collector: Any) -> None:
        if batch_id.txid in self.txids and batch_id.attempt < 2:
            raise FailedException("not yet")

    def aggregate(self, accumulator: Any, tup: Any, collector: Any) -> None:
        collector.emit(list(tup))

    def complete(self, accumulator: Any, collector: Any) -> None: ...


def topology(fails: bool) -> TridentTopology:
    made = TridentTopology()
    rows = [[number, number % KEYS] for number in range(MESSAGES)]
    numbers = made.new_stream("numbers", FixedBatchSpout(["number", "key"], BATCH, rows))
    passes = Passes(8, 21) if fails else Passes()
    spread = numbers.shuffle().partition_aggregate(["number", "key"], passes, ["n", "key"]).parallelism_hint(2)
    counts = (
        spread.name("counts")
        .group_by("key")
        .persistent_aggregate(CountsFactory(), Count(), "count")
        .parallelism_hint(2)
    )
    counts.new_values_stream().shuffle().filter(bool)
    return made


@pytest.mark.parametrize(
    ("kind", "fails"),
    [
        pytest.param("micro-batches", True, marks=pytest.mark.slow),
        pytest.param("small rounds", False, marks=pytest.mark.slow),
        pytest.param("small rounds", True, marks=pytest.mark.soak),
        pytest.param("large rounds", True, marks=pytest.mark.slow),
    ],
)
def test_30_000_messages_are_counted_once_each_over_kills(
    kind: str, fails: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(f"{kind} {fails}")
    if kind == "large rounds":
        monkeypatch.setattr(SmallRounds, "suits", lambda *_: False)
    conf = {
        "topology.message.timeout.secs": 100_000,
        "topology.max.spout.pending": 4,
        "topology.trident.batch.emit.interval.millis": 1,
        "topology.profile": "latency" if kind == "micro-batches" else "realtime",
        "topology.state.checkpoint.interval.ms": 100,
    }
    partitions = 2 if kind == "micro-batches" else 1
    plan = place(compile_graph(topology(fails).build(), effective_conf(conf)), partitions)
    spec = dataclasses.replace(make_spec(plan, "test", "test-1", tmp_path.name, ()), folder=str(tmp_path))
    spark = (SimulatedSpark if kind == "micro-batches" else LiveSpark)(spec, tmp_path, random, retries=0.1)
    kills = 0
    try:
        spark.start()
        for _ in range(600):
            spark.clock.advance(0.3)
            if isinstance(spark, LiveSpark):
                for _ in range(random.randrange(4)):
                    for host in spark.hosts:
                        for loop in list(host.loops.values()):
                            host.work(loop, 3)
                    spark.live.round()
                    if kills < 12 and random.random() < 0.1:
                        kills += 1
                        spark.live.die()
            try:
                spark.step(random.choice(POINTS) if kills < 12 else None)
            except DriverKilled:
                kills += 1
                spark.start()
            assert not spark.failures
            if spark.coordinator.completed.is_set():
                break
        else:
            raise AssertionError("the topology did not end")
        kept = [value for state in spark.states("b-2-counts") for value in state.values() if isinstance(value, Counts)]
        failed = sum(code != 0 for _, _, code in spark.outcomes)
    finally:
        spark.close()
    assert kills >= 6, "too little was killed"
    assert (failed > 0) == fails
    assert len(kept) == 2
    counts = Counter({key: count for state in kept for (key,), count in state.values.items()})
    assert counts == Counter(number % KEYS for number in range(MESSAGES))
    assert all(state.txids == list(range(1, MESSAGES // BATCH + 1)) for state in kept), "batches are committed in order"
