"""A topology of streamparse, unchanged, through Spark."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

from storm_on_spark.launch.loader import load
from storm_on_spark.spark.state import read_bolt_state

WORDS = Path(__file__).parents[2] / "unit" / "streamparse" / "words_topology.py"


def test_counts_are_exact_though_a_bolt_fails_and_batches_wait(
    spark_session, complete, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    target = load(str(WORDS))

    info = complete(target.topology({}), {"topology.profile": "latency", "topology.batch.max.tuples": 20})

    sentences = target.module.SENTENCES  # type: ignore[attr-defined]
    words = Counter(word for sentence in sentences for word in sentence.split())
    assert (info.acked, info.failed, info.pending) == (len(sentences), 1, 0)
    assert "this sentence fails" in str(info.components["split"].errors)
    counts = [state["counts"] for state in read_bolt_state(spark_session, tmp_path / "checkpoint", "count").values()]
    assert sum(counts, Counter()) == words
    (groups,) = read_bolt_state(spark_session, tmp_path / "checkpoint", "groups").values()
    assert groups["total"] == sum(words.values())
