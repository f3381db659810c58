"""Functions as bolts: which are proved stateless, and whether they run."""

from __future__ import annotations

import logging
import pickle
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest

from storm_on_spark.api import TopologyBuilder
from storm_on_spark.plan.compile import compile_graph
from storm_on_spark.plan.passes.statelessness import judge
from storm_on_spark.runtime.in_process import InProcessTopology
from storm_on_spark.runtime.run.spec import pickled
from storm_on_spark.testing import ListSpout, SpoutTester

COUNTS: Counter[str] = Counter()
SUFFIX = "!"
seen: Counter[str] = Counter()


def shout(word: str) -> str:
    return word.upper() + SUFFIX


def tally(word: str) -> str:
    COUNTS[word] += 1
    return word


def bolt(function: Any) -> Any:
    builder = TopologyBuilder()
    builder.set_bolt("x", function, fields="word")
    return builder.create_topology()["x"].component


def _closing_over(function: Any) -> Any:
    return lambda tup, out: out.emit([function(tup[0])])


@pytest.mark.parametrize(
    "function",
    [
        lambda tup, out: out.emit([tup[0] + SUFFIX]),
        lambda tup, out: [out.emit([word]) for word in tup[0].split()],
        lambda tup, out: out.emit([shout(tup[0])]),
        _closing_over(shout),
    ],
)
def test_proved(function: Any) -> None:
    assert judge(bolt(function)).stateless


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda tup, out: COUNTS.update(tup), "the global COUNTS"),
        (lambda tup, out: out.emit([tally(tup[0])]), "the global COUNTS"),
        (_closing_over(tally), "the global COUNTS"),
        (lambda tup, out: setattr(tup, "x", 1), "setattr"),
        (lambda tup, out: out.__dict__, "__dict__"),
    ],
)
def test_not_proved(function: Any, reason: str) -> None:
    verdict = judge(bolt(function))
    assert not verdict.stateless
    assert reason in verdict.reason


def test_a_topology_of_functions_runs(caplog: pytest.LogCaptureFixture) -> None:
    seen.clear()
    suffix = "?"
    builder = TopologyBuilder()
    builder.set_spout("words", ListSpout([["storm"], ["spark"]] * 20, fields=["word"]))
    builder.set_bolt("shout", lambda tup, out: out.emit([tup["word"] + suffix]), 2, fields="word").shuffle_grouping(
        "words"
    )
    builder.set_bolt("see", lambda tup: note(tup["word"])).shuffle_grouping("shout")
    with caplog.at_level(logging.WARNING):
        info = InProcessTopology(compile_graph(builder.create_topology(), {}), "functions").run()
    assert (info.acked, info.failed) == (40, 0)
    assert seen == {"storm?": 20, "spark?": 20}
    assert "pickled" not in caplog.text, "a function is no state that gets lost"


def note(word: str) -> None:
    seen[word] += 1


def test_a_function_as_a_spout_emits_what_it_returns() -> None:
    seen.clear()
    builder = TopologyBuilder()
    builder.set_spout("words", lambda: "storm")
    builder.set_bolt("see", lambda tup: note(tup["lambda"])).shuffle_grouping("words")
    topology = InProcessTopology(compile_graph(builder.create_topology(), {}), "functions")
    info = topology.run(go_on=lambda: not seen)
    assert info.emitted >= seen["storm"] > 0
    assert set(seen) == {"storm"}


def test_a_spouts_none_is_no_tuple() -> None:
    builder = TopologyBuilder()
    values = ((1, 2), None, (3, 4))
    builder.set_spout("pairs", lambda: values[1], fields=["a", "b"])
    spout = builder.create_topology()["pairs"].component
    tester = SpoutTester(spout)
    tester.next_tuple()
    assert tester.collector.values() == []
    builder.set_spout("others", lambda: values[0], fields=["a", "b"])
    tester = SpoutTester(builder.create_topology()["others"].component)
    tester.next_tuple()
    assert tester.collector.values() == [(1, 2)]


def test_a_function_travels_to_a_process_that_does_not_know_its_module() -> None:
    suffix = "?"
    builder = TopologyBuilder()
    builder.set_bolt("x", lambda tup, out: out.emit([tup[0] + suffix]), fields="word")
    code = pickled(builder.create_topology())["x"]
    program = (
        "import pickle, sys\n"
        "from storm_on_spark.testing import BoltTester, make_tuple\n"
        "tester = BoltTester(pickle.load(sys.stdin.buffer))\n"
        "tester.execute(make_tuple(['storm'], fields=['word']))\n"
        "print(tester.collector.values())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], input=code, capture_output=True, check=True, timeout=120, cwd="/"
    )
    assert done.stdout.decode() == "[('storm?',)]\n"
    assert pickle.loads(code).function is not None
