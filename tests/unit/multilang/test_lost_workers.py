"""Bolts in other languages on a simulated Spark: nothing is lost with a worker, whatever its children hold."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import eventually

from storm_on_spark import BaseRichBolt, Fields, TopologyBuilder
from storm_on_spark.api.topology import Topology
from storm_on_spark.multilang import ShellBolt
from storm_on_spark.runtime.bolts.worker import Worker
from storm_on_spark.runtime.processes.sessions import started_at
from storm_on_spark.testing import ListSpout
from storm_on_spark.testing.simulated import SimulatedSpark

COMPONENTS = Path(__file__).parent / "components"
WORDS = [f"word {number}" for number in range(40)]


@pytest.fixture(autouse=True)
def _collected(nothing_left: None) -> Iterator[None]:
    yield
    # Bolts of the simulated workers, which have the pipes open, are in cycles.
    gc.collect()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "checkpoint").mkdir()
    return tmp_path / "checkpoint"


class Seen(BaseRichBolt):
    def prepare(self, conf, context, collector):
        self.collector, self.words = collector, Counter()

    def execute(self, tup):
        self.words[tup[0]] += 1
        self.collector.ack(tup)


def topology(command: list[str], tick_secs: int | None) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("words", ListSpout([[word] for word in WORDS], Fields("word"), max_fails=None))
    bolt = ShellBolt(command, ["word"], directory=str(COMPONENTS))
    declared = builder.set_bolt("shell", bolt, 2).shuffle_grouping("words")
    declared.add_configuration("topology.tick.tuple.freq.secs", tick_secs)
    builder.set_bolt("seen", Seen()).shuffle_grouping("shell")
    return builder.create_topology()


def held(spark: SimulatedSpark) -> int:
    return sum(len(state["_state"].pending) for state in spark.states("shell"))


def kill_workers(spark: SimulatedSpark) -> None:
    """The kernel ends the children of a worker that is killed."""
    pids = [pid for worker in spark.workers for pid in children(worker)]
    assert pids
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: not any(started_at(pid) for pid in pids))
    spark.workers = [Worker(spark.spec) for _ in spark.workers]


def children(worker: Worker) -> list[int]:
    shells = worker.spec.plan.components["shell"].tasks
    bolts = [worker.tasks[task].bolt.instance for task in shells if task in worker.tasks]
    return [bolt.pid for bolt in bolts if bolt.pid is not None]


def test_what_children_held_when_their_workers_were_killed_is_processed_again(folder: Path) -> None:
    python = [sys.executable, "batching.py"]
    with SimulatedSpark.of(topology(python, 3), folder) as spark:
        while not held(spark):
            spark.step()
            spark.clock.advance(1)
        kill_workers(spark)
        spark.run_to_end()
        # It emits a tuple when it acks it: those that it held had not been emitted.
        assert spark.states("seen")[0]["words"] == dict.fromkeys(WORDS, 1)
        assert any("the child process ended, or runs where" in error.message for error in spark.errors)


def test_attempts_that_did_not_count_lose_and_double_nothing(folder: Path) -> None:
    python = [sys.executable, "batching.py"]
    with SimulatedSpark.of(topology(python, 1), folder, seed=3, retries=0.2) as spark:
        spark.deterministic = False
        spark.run_to_end()
        assert spark.states("seen")[0]["words"] == dict.fromkeys(WORDS, 1)
        assert any("an attempt at a micro-batch that is made again" in error.message for error in spark.errors)


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_an_idle_child_is_heard_without_ticks(folder: Path) -> None:
    with SimulatedSpark.of(topology(["node", "split.js"], None), folder) as spark:
        spark.run_to_end()
        assert sum(spark.states("seen")[0]["words"].values()) == 2 * len(WORDS)
        assert spark.errors == []
