"""The counterparts of storm-starter's word counts: in threads, without acks, skewed, and in Node.js; in process."""

from __future__ import annotations

import gc
import os
import shutil
import time
from ast import literal_eval
from collections import Counter
from importlib import import_module
from typing import Any

import pytest
from lengths import PATIENCE_SECS
from waiting import eventually

from storm_on_spark import compile_topology
from storm_on_spark.api.config import effective_conf
from storm_on_spark.api.streams.grouping import PartialKeyGrouping
from storm_on_spark.plan.compile import compile_graph
from storm_on_spark.runtime.in_process import InProcessTopology
from storm_on_spark.testing import BoltTester, make_tuple

ROWS = 60


def run(name: str, go_on: Any = lambda: True) -> Any:
    """Runs an example to its end; returns what it was."""
    job, rows = import_module(name), import_module("rows")
    conf = {**job.conf, rows.COUNT: ROWS, rows.PAUSE: 0}
    topology = InProcessTopology(compile_graph(job.build(conf), effective_conf(conf)), "example")
    topology.run(go_on)
    assert topology.failure is None
    return topology


def reached(words: list[str]) -> Counter[Any]:
    """All counts that words reach on the way."""
    return Counter((word, at) for word, total in Counter(words).items() for at in range(1, total + 1))


@pytest.mark.parametrize("name", ["multi_thread_word_count", "fast_word_count"])
def test_words_are_counted(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    info = run(name).info()
    sentence = import_module("rows").sentence
    words = [word for number in range(ROWS) for word in sentence(number)[0].split()]
    assert Counter(map(literal_eval, capsys.readouterr().out.splitlines())) == reached(words)
    assert (info.failed, info.acked) == (0, 0 if name == "fast_word_count" else ROWS)


def test_the_counts_of_a_frequent_word_are_added_up_over_tasks() -> None:
    job = import_module("skewed_rolling_top_words")
    bolts = compile_topology(job.build(job.conf), job.conf).graph.topology.bolts
    [(_, grouping)] = bolts["counter"].inputs
    assert isinstance(grouping, PartialKeyGrouping)
    tester = BoltTester(job.RollingCountAggBolt())
    for task, count in [(1, 5), (2, 7), (1, 2), (2, 0), (1, 0), (1, 4)]:
        tester.execute(make_tuple(["storm", count], ["word", "count"], "counter", task=task))
        tester.restart()
    assert [count for _, count in tester.collector.values()] == [5, 12, 9, 2, 0, 4]


def open_files() -> int:
    # Objects that refer to each other keep pipes open until they are collected.
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")
def test_sentences_of_node_are_split_there(capsys: pytest.CaptureFixture[str]) -> None:
    deadline, shown, files = time.monotonic() + PATIENCE_SECS, [], open_files()
    sentences = [
        "the cow jumped over the moon",
        "an apple a day keeps the doctor away",
        "four score and seven years ago",
    ]
    sentences += ["snow white and the seven dwarfs", "i am at two with nature"]
    words = [word for number in range(ROWS) for word in sentences[number * 7 % len(sentences)].split()]

    def go_on() -> bool:
        assert time.monotonic() < deadline
        shown.extend(capsys.readouterr().out.splitlines())
        return len(shown) < len(words)

    info = run("word_count_node", go_on).info()
    shown.extend(capsys.readouterr().out.splitlines())
    assert Counter(map(literal_eval, shown)) == reached(words)
    assert (info.failed, info.acked) == (0, ROWS)
    del info
    eventually(lambda: open_files() <= files + 4, "the pipes of the children are closed")
