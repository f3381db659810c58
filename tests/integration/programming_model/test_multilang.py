"""Components in other languages through Spark."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from pathlib import Path

import pytest

from storm_on_spark import Fields, TopologyBuilder
from storm_on_spark.multilang import ShellBolt
from storm_on_spark.testing import ListSpout, run_topology

COMPONENTS = Path(__file__).parents[2] / "unit" / "multilang" / "components"
SENTENCES = ["the cow jumped over the moon", "an apple a day", "late is the cow"] * 12


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_children_keep_their_memory_whichever_worker_executes_their_task(nothing_left_behind, spark_session):
    builder = TopologyBuilder()
    builder.set_spout("sentences", ListSpout([[sentence] for sentence in SENTENCES], Fields("sentence")))
    split = ShellBolt(["node", "split.js"], ["word"], directory=str(COMPONENTS))
    builder.set_bolt("split", split, 2).shuffle_grouping("sentences")
    count = ShellBolt([sys.executable, "pystorm_bolt.py"], ["word", "count"], directory=str(COMPONENTS))
    builder.set_bolt("count", count, 2).fields_grouping("split", Fields("word"))

    conf = {"topology.batch.max.tuples": 12}
    captured = run_topology(builder.create_topology(), conf=conf, spark=spark_session, capture=["count"])

    assert (captured.info.acked, captured.info.failed) == (len(SENTENCES), 0), captured.errors
    expected = Counter(word for sentence in SENTENCES for word in sentence.split())
    # A word whose tuples came to two processes would have two small counts instead of one large.
    assert Counter(word for word, _ in captured.values("count")) == expected
    highest: Counter[str] = Counter()
    for word, number in captured.values("count"):
        highest[word] = max(highest[word], number)
    assert highest == expected


FAULTS = {
    "die": "it ended, exit code 7; its last lines on stderr:\nabout to die",
    "hang": "it was silent for",
    "garbage": "it sent what is not JSON: b'hello'",
}


def test_children_that_fail_are_started_again_and_their_tuples_are_replayed(
    nothing_left_behind, spark_session, tmp_path: Path
) -> None:
    words = ["ant", "bee", "bad", "cat", "dog"]
    builder = TopologyBuilder()
    builder.set_spout("words", ListSpout([[word] for word in words], Fields("word"), max_fails=None))
    for how in FAULTS:
        command = [sys.executable, "bad_once.py", how, str(tmp_path)]
        conf = {"topology.subprocess.timeout.secs": 3 if how == "hang" else 60}
        bolt = builder.set_bolt(how, ShellBolt(command, ["word"], directory=str(COMPONENTS)))
        bolt.shuffle_grouping("words").add_configurations(conf)

    captured = run_topology(builder.create_topology(), spark=spark_session, capture=list(FAULTS))

    assert captured.info.acked == len(words), captured.errors
    assert captured.info.failed >= 1
    for how, said in FAULTS.items():
        assert {word for (word,) in captured.values(how)} == set(words), how
        assert any(said in error.message for error in captured.info.components[how].errors), how
