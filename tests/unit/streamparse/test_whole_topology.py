"""A topology of streamparse in one process, without Spark: replays, exact counts, batches across micro-batches."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import pytest

from storm_on_spark.launch.loader import load
from storm_on_spark.runtime.in_process import InProcessTopology
from storm_on_spark.spark.compiled import compile_topology


def test_counts_are_exact_though_tuples_fail_and_batches_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    target = load(str(Path(__file__).with_name("words_topology.py")))
    conf = {"test.notes": str(tmp_path), "topology.batch.max.tuples": 20}
    info = InProcessTopology(compile_topology(target.topology(conf), conf).graph, "words").run()
    sentences = target.module.SENTENCES  # type: ignore[attr-defined]
    words = Counter(word for sentence in sentences for word in sentence.split())
    counted: Counter[str] = Counter()
    for path in tmp_path.glob("counts-*.json"):
        counted.update(json.loads(path.read_text()))
    assert counted == words
    assert json.loads((tmp_path / "groups.json").read_text()) == sum(words.values())
    assert (info.status, info.acked, info.failed) == ("COMPLETED", len(sentences), 1)
    assert "this sentence fails" in str(info.components["split"].errors)
