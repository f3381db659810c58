"""Spouts in other languages, as real processes, without Spark."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest
from lengths import PATIENCE_SECS

from storm_on_spark import BaseBasicBolt, Fields, TopologyBuilder
from storm_on_spark.api.errors import UnusableError
from storm_on_spark.multilang import ShellBolt, ShellSpout
from storm_on_spark.plan.compile import compile_graph
from storm_on_spark.runtime.in_process import InProcessTopology
from storm_on_spark.runtime.processes.sessions import started_at
from storm_on_spark.testing import SpoutTester

COMPONENTS = Path(__file__).parent / "components"
WORDS = ["the", "cow", "jumped", "over", "the", "moon"]


def words() -> ShellSpout:
    return ShellSpout([sys.executable, "pystorm_spout.py"], ["word"], directory=str(COMPONENTS))


def test_an_unmodified_pystorm_spout_gets_acks_and_fails() -> None:
    with SpoutTester(words()) as kit:
        for _ in range(10):
            kit.next_tuple()
        assert [tup[0] for tup in kit.collector.values()] == WORDS
        kit.ack(0)
        kit.fail(2)
        kit.next_tuple()
        assert [tup[0] for tup in kit.collector.values()][len(WORDS) :] == ["jumped"]


def test_a_spout_that_dies_is_started_again() -> None:
    with SpoutTester(words()) as kit:
        kit.next_tuple()
        pid = kit.spout.pid
        os.kill(pid, 9)
        deadline = time.monotonic() + PATIENCE_SECS
        while started_at(pid) is not None or len(kit.collector.values()) < 3:
            assert time.monotonic() < deadline
            if started_at(pid) is None:
                kit.next_tuple()
        # The new child begins at the beginning, and is not told of the other's messages.
        assert [tup[0] for tup in kit.collector.values()][:3] == ["the", "the", "cow"]


class Stop(BaseBasicBolt):
    """Collects words in a file."""

    def __init__(self, path: str) -> None:
        self.path = path

    def execute(self, tup, collector):  # type: ignore[no-untyped-def]
        with open(self.path, "a") as file:
            file.write(f"{tup['word']} {tup['count']}\n")


def for_a_minute(kit: SpoutTester) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        kit.next_tuple()


NEVER_ANSWERS = """
import storm
class Words(storm.Spout):
    def nextTuple(self):
        raise RuntimeError("there are no words")
Words().run()
"""


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ([sys.executable, "-c", "import no_such_library"], "ModuleNotFoundError: No module named 'no_such_library'"),
        ([sys.executable, "-c", NEVER_ANSWERS], "RuntimeError: there are no words"),
    ],
)
def test_children_that_do_nothing_end_the_topology(command: list[str], said: str) -> None:
    with SpoutTester(ShellSpout(command, ["word"])) as kit:
        with pytest.raises(UnusableError) as raised:
            for_a_minute(kit)
        assert said in str(raised.value)


def test_a_whole_topology_of_children(tmp_path: Path) -> None:
    found = tmp_path / "found"
    builder = TopologyBuilder()
    builder.set_spout("words", words())
    counter = [sys.executable, "pystorm_bolt.py"]
    counts = ShellBolt(counter, {"default": Fields("word", "count")}, directory=str(COMPONENTS))
    builder.set_bolt("count", counts, 2).fields_grouping("words", Fields("word"))
    builder.set_bolt("stop", Stop(str(found))).shuffle_grouping("count")
    topology = InProcessTopology(compile_graph(builder.create_topology(), {}), "children")
    deadline = time.monotonic() + PATIENCE_SECS

    def go_on() -> bool:
        assert time.monotonic() < deadline
        return not found.exists() or len(found.read_text().splitlines()) < len(WORDS)

    topology.run(go_on)
    assert topology.failure is None
    expected = ["the 1", "cow 1", "jumped 1", "over 1", "the 2", "moon 1"]
    assert sorted(found.read_text().splitlines()) == sorted(expected)
