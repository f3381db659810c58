"""A Flux file through Spark: its spout, its bolts and its configuration."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from storm_on_spark.launch.loader import load
from storm_on_spark.spark.state import read_bolt_state

FLUX = """
name: counting
config:
  topology.partitions: 2
components:
  - id: fields
    className: org.apache.storm.tuple.Fields
    constructorArgs: [word]
spouts:
  - id: words
    className: storm_on_spark.testing.ListSpout
    constructorArgs: [[a, b, a, a], {ref: fields}]
bolts:
  - id: count
    className: org.apache.storm.testing.TestWordCounter
    parallelism: 2
  - id: all
    className: org.apache.storm.testing.TestGlobalCount
streams:
  - {from: words, to: count, grouping: {type: FIELDS, args: [word]}}
  - {from: count, to: all, grouping: {type: GLOBAL}}
"""


def test_a_flux_file_runs_on_spark(spark_session, complete, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "counting.yaml").write_text(FLUX)
    target = load(str(tmp_path / "counting.yaml"))

    info = complete(target.topology(target.conf), target.conf)

    assert (info.acked, info.failed, info.pending) == (4, 0, 0)
    counts = [state["_counts"] for state in read_bolt_state(spark_session, tmp_path / "checkpoint", "count").values()]
    assert {word: number for part in counts for word, number in part.items()} == {"a": 3, "b": 1}
    (total,) = read_bolt_state(spark_session, tmp_path / "checkpoint", "all").values()
    assert total["_count"] == 4
