"""Trident on Spark: word count is exact, in both profiles."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from storm_on_spark.testing import run_topology
from storm_on_spark.trident import Count, FixedBatchSpout, TridentTopology
from storm_on_spark.trident.state import MemoryMapState

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LINES = [["to be or not to be"], ["that is the question"], ["to die"], ["to sleep no more"], ["and by a sleep"]] * 20
WORDS = Counter(word for [line] in LINES for word in line.split())


@pytest.mark.parametrize("profile", ["latency", "realtime"])
def test_word_count(profile: str, spark_session: SparkSession) -> None:
    topology = TridentTopology()
    lines = topology.new_stream("lines", FixedBatchSpout("line", 20, LINES))
    words = lines.flat_map(lambda tup: tup["line"].split(), "word")
    counts = words.group_by("word").persistent_aggregate(MemoryMapState.Factory(), Count(), "count").parallelism_hint(2)
    counts.new_values_stream().shuffle().filter(lambda tup: True).name("sink")
    conf = {
        "topology.profile": profile,
        "topology.trident.batch.emit.interval.millis": 1,
        "topology.max.spout.pending": 3,
    }
    captured = run_topology(topology.build(), conf=conf, spark=spark_session, timeout=120)
    found = [tup.values[1:] for tup in captured.tuples if tup.component == "b-1" and tup.stream != "$coord-bg0"]
    last: dict[str, int] = {}
    for word, count in found:
        last[word] = max(count, last.get(word, 0))
    assert last == WORDS
    assert not captured.failed()
