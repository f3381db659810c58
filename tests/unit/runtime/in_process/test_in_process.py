"""A topology on one thread, without Spark."""

from __future__ import annotations

import threading
from collections import Counter

import pytest

from storm_on_spark import BaseBasicBolt, BaseRichBolt, BaseRichSpout, BaseStatefulBolt, Fields, TopologyBuilder
from storm_on_spark.api.config import effective_conf
from storm_on_spark.api.info import TopologyInfo
from storm_on_spark.plan.compile import compile_graph
from storm_on_spark.runtime.in_process import InProcessTopology
from storm_on_spark.testing import ListSpout

WORDS = ["storm", "spark", "kafka", "storm"] * 50
seen: Counter[str] = Counter()
threads: set[int] = set()


@pytest.fixture(autouse=True)
def _nothing_seen() -> None:
    seen.clear()
    threads.clear()


class Count(BaseStatefulBolt):
    def prepare(self, conf, context, collector):
        self.collector = collector

    def init_state(self, state):
        self.state = state

    def execute(self, tup):
        threads.add(threading.get_ident())
        count = (self.state.get(tup["word"]) or 0) + 1
        self.state.put(tup["word"], count)
        self.collector.emit([tup["word"], count], tup)
        self.collector.ack(tup)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("word", "count"))


class Last(BaseBasicBolt):
    def execute(self, tup, collector):
        seen[tup["word"]] = max(seen[tup["word"]], tup["count"])


class Failing(BaseRichBolt):
    def prepare(self, conf, context, collector):
        self.collector = collector
        self.tried = Counter()

    def execute(self, tup):
        self.tried[tup["word"]] += 1
        (self.collector.fail if self.tried[tup["word"]] < 3 else self.collector.ack)(tup)


class Raising(BaseBasicBolt):
    def execute(self, tup, collector):
        raise ValueError(tup["word"])


class Endless(BaseRichSpout):
    def open(self, conf, context, collector):
        self.collector, self.next = collector, 0

    def next_tuple(self):
        self.next += 1
        self.collector.emit([str(self.next)], self.next)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("word"))


class Stop(BaseException):
    pass


class Stopping(BaseBasicBolt):
    def execute(self, tup, collector):
        raise Stop


def topology(spout, *bolts, conf=None) -> InProcessTopology:
    builder = TopologyBuilder()
    builder.set_spout("words", spout, 2)
    before = "words"
    for number, bolt in enumerate(bolts):
        builder.set_bolt(f"bolt-{number}", bolt, 3).fields_grouping(before, "word")
        before = f"bolt-{number}"
    return InProcessTopology(compile_graph(builder.create_topology(), effective_conf(conf or {})), "test")


def counts(info: TopologyInfo) -> tuple[int, int, int, int]:
    return info.emitted, info.acked, info.failed, info.pending


def test_it_counts_as_spark_would_and_all_on_one_thread() -> None:
    info = topology(ListSpout(WORDS, fields=["word"]), Count(), Last()).run()
    assert (info.status, *counts(info)) == ("COMPLETED", 200, 200, 0, 0)
    assert seen == Counter(WORDS)
    assert (info.components["bolt-0"].executed, info.components["bolt-0"].emitted) == (200, 200)
    assert threads == {threading.get_ident()}


def test_what_fails_is_replayed() -> None:
    info = topology(ListSpout(["a", "b"], fields=["word"]), Failing()).run()
    assert (info.status, info.acked, info.failed, info.pending) == ("COMPLETED", 2, 4, 0)


@pytest.mark.parametrize("fail_fast", [True, False])
def test_an_exception_ends_it_or_fails_its_tuple(fail_fast: bool) -> None:
    running = topology(ListSpout(["a"], fields=["word"]), Raising(), conf={"topology.fail.fast": fail_fast})
    info = running.run()
    assert info.status == ("FAILED" if fail_fast else "COMPLETED")
    assert (running.failure is not None) == fail_fast
    assert info.errors[-1].location is not None
    assert info.errors[-1].location[0] == __file__


def test_an_endless_one_ends_when_it_is_told_to_with_nothing_left() -> None:
    asked: list[int] = []

    def go_on() -> bool:
        asked.append(1)
        return len(asked) < 5

    info = topology(Endless(), Last0()).run(go_on)
    assert info.status == "KILLED"
    assert info.pending == 0
    assert info.acked == info.emitted > 0


class Last0(BaseBasicBolt):
    def execute(self, tup, collector):
        pass


def test_what_is_no_exception_passes_through() -> None:
    running = topology(ListSpout(["a"], fields=["word"]), Stopping())
    with pytest.raises(Stop):
        running.run()
    assert running.info().status == "KILLED"
