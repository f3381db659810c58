"""Windows and joins over random streams, in micro-batches and in real time, killed anywhere: they give what they must.

Streams are out of order, late and idle; the naive implementation in `windowed.py` knows nothing of how they are run.
"""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lengths import examples
from live_simulation import LiveSpark
from windowed import LAG, SOURCES, Event, Expected, Shape, topology
from windowed_streams import RESULTS, check, program

from storm_on_spark import Count, Duration
from storm_on_spark.api.config import effective_conf
from storm_on_spark.plan.compile import compile_graph, place
from storm_on_spark.runtime.live.execution.small_round import SmallRounds
from storm_on_spark.runtime.run.spec import make_spec
from storm_on_spark.testing.simulated import DriverKilled, SimulatedSpark

POINTS = (*[None] * 12, "planned", "executed", "delivered", "committed")
"""Where the driver is killed in a micro-batch."""


@st.composite
def streams(draw: Any, late: int = 40) -> list[Event]:
    """Events of both sources; most are out of order by less than the lag, and a few come late."""
    given = draw(
        st.lists(
            st.tuples(
                st.sampled_from(SOURCES),
                st.integers(0, 2),
                st.one_of(st.integers(0, LAG // 10 - 1), st.integers(0, LAG // 10 - 1), st.integers(0, late)),
                st.sampled_from([1, 1, 1, 2, 30]),
            ),
            max_size=30,
        )
    )
    time, found = 1000, []
    for number, (source, key, behind, step) in enumerate(given):
        time += 10 * step
        found.append(Event(source, number, key, time - 10 * behind + 5))
    return found


slides = st.integers(1, 12).map(lambda tens: 10 * tens)
counts, durations = st.integers(1, 7).map(Count), st.sampled_from([500, 1000, 2000]).map(Duration)
# The last tuples of a time that slides by a count stay in it, as nothing slides it any more: such a run has no end.
arrivals = st.one_of(st.tuples(counts, counts), st.tuples(counts, durations), st.tuples(durations, durations))
shapes = st.builds(Shape, slides, slides, arrivals, st.sampled_from([None, None, 1500]), st.booleans())
rounds = st.sampled_from(["micro-batches", "small rounds", "large rounds"])


class Played:
    """A topology that is run to its end."""

    def __init__(
        self, events: list[Event], shape: Shape, kind: str, seed: int, folder: Path, make: Any = topology
    ) -> None:
        self.events, self.shape, self.random = events, shape, Random(seed)
        conf = {
            "topology.message.timeout.secs": 100_000,
            "topology.max.spout.pending": None,
            "topology.profile": "latency" if kind == "micro-batches" else "realtime",
            "topology.state.checkpoint.interval.ms": 100,
        }
        partitions = self.random.choice([1, 2, 3]) if kind == "micro-batches" else 1
        plan = place(compile_graph(make(events, shape), effective_conf(conf)), partitions)
        spec = dataclasses.replace(make_spec(plan, "test", "test-1", folder.name, ()), folder=str(folder))
        kind_of_spark = SimulatedSpark if kind == "micro-batches" else LiveSpark
        self.spark = kind_of_spark(spec, folder, self.random, retries=0.1)
        self.spark.calls = self.random.choice([1, 3, 8])
        #: Micro-batches that came from a live process, and deaths.
        self.cuts = self.kills = 0

    def run(self) -> None:
        spark = self.spark
        spark.start()
        for step in range(200):
            spark.clock.advance(self.random.choice([0.1, 0.3, 1]))
            calm = step > 60  # a run has to end
            if isinstance(spark, LiveSpark):
                self.live(spark, calm)
                live, cuts = spark.live, spark.live.cuts
            try:
                spark.step(None if calm else self.random.choice(POINTS))
            except DriverKilled:
                self.kills += 1
                spark.start()
            if isinstance(spark, LiveSpark):
                self.cuts += live.cuts - cuts
            assert not spark.failures
            if spark.coordinator.completed.is_set():
                break
        else:
            raise AssertionError("the topology did not end")
        assert not spark.errors
        assert all(code == 0 for _, _, code in spark.outcomes), "a tuple failed"
        assert len(spark.outcomes) == len({root for _, root, _ in spark.outcomes}) == len(self.events)

    def gathered(self, bolt: str) -> list[Any]:
        return [entry for state in self.spark.states(bolt) for entry in state["gathered"]]

    def live(self, spark: LiveSpark, calm: bool) -> None:
        """Executes rounds before a micro-batch; the live process may die."""
        for _ in range(self.random.randrange(4)):
            host = self.random.choice(spark.hosts)
            for loop in list(host.loops.values()):
                host.work(loop, self.random.choice([0, 1, 3]))
            spark.clock.advance(self.random.choice([0, 0.1, 0.5]))
            spark.live.round()
            if not calm and self.random.random() < 0.05:
                self.kills += 1
                spark.live.die()


def played(events: list[Event], shape: Shape, kind: str, seed: int, make: Any = topology) -> Played:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        if kind == "large rounds":
            patch.setattr(SmallRounds, "suits", lambda *_: False)
        run = Played(events, shape, kind, seed, Path(folder), make)
        try:
            run.run()
            if make is topology:
                Expected(events, shape, run.gathered("gather")).check()
            else:
                check(events, shape, {name: [values for *_, values in run.gathered(name)] for name in RESULTS})
        finally:
            run.spark.close()
    return run


@pytest.mark.slow
@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(streams(), shapes, rounds, st.integers(0, 1 << 16))
def test_windows_and_joins_give_the_same_in_every_profile(
    events: list[Event], shape: Shape, kind: str, seed: int
) -> None:
    played(events, shape, kind, seed)


@pytest.mark.slow
@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(streams(LAG // 10 - 1), shapes, rounds, st.integers(0, 1 << 16))
def test_a_program_of_streams_gives_the_same_in_every_profile(
    events: list[Event], shape: Shape, kind: str, seed: int
) -> None:
    played(events, shape, kind, seed, program)


def test_a_silence_of_all_streams_lets_the_last_windows_end() -> None:
    """Otherwise their tuples would stay pending, and the topology would never end."""
    events = [Event(SOURCES[at % 2], at, at % 3, 1005 + 10 * at) for at in range(12)]
    played(events, Shape(60, 30, (Count(2), Count(2)), 300, True), "large rounds", 1)


def test_runs_are_killed_and_cut() -> None:
    events = [Event(SOURCES[at % 2], at, at % 3, 1005 + 10 * (at ^ 3)) for at in range(30)]
    runs = [
        played(events, Shape(60, 30, (Count(3), Duration(500)), None, seed == 1), kind, seed)
        for seed, kind in enumerate(["micro-batches", "small rounds", "large rounds"])
    ]
    assert all(run.kills for run in runs)
    assert sum(run.cuts for run in runs[1:]), "no micro-batch was taken from the live process"
