"""storm-starter's SkewedRollingTopWords: the most frequent words of the last seconds, when few words dominate.

What to look for: partial key grouping sends each word to the less busy of two tasks, so no task gets all occurrences of
a frequent word. The counts of both are then added up by word.

    storm-spark run jobs/storm_starter/skewed_rolling_top_words.py
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rows import DEFAULTS, RowSpout, word

from storm_on_spark import (
    BaseRichBolt,
    Fields,
    OutputCollector,
    OutputFieldsDeclarer,
    Topology,
    TopologyBuilder,
    TopologyContext,
    Tuple,
)

# Its rolling counts and rankings are those of RollingTopWords, which is a separate job.
sys.path.append(str(Path(__file__).parents[1]))

from exclamation import Show
from rolling_top_words import EMIT_SECS, TOP, WINDOW_SECS, Rank, RollingCount, TotalRank

conf = {**DEFAULTS, WINDOW_SECS: 9, EMIT_SECS: 3, TOP: 3}


class RollingCountAggBolt(BaseRichBolt):
    """Adds up the counts that several tasks have of a word."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        self._collector = collector
        #: The last count of each task, by word.
        self.counts: dict[str, dict[int, int]] = {}

    def execute(self, tup: Tuple) -> None:
        word, count = tup["word"], tup["count"]
        parts = self.counts.setdefault(word, {})
        parts[tup.source_task] = count
        total = sum(parts.values())
        if not total:
            del self.counts[word]
        self._collector.emit([word, total], anchors=tup)
        self._collector.ack(tup)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("word", "count"))


def build(conf: Mapping[str, Any]) -> Topology:
    """Returns the topology."""
    window, emit, top = conf.get(WINDOW_SECS, 9), conf.get(EMIT_SECS, 3), conf.get(TOP, 3)
    builder = TopologyBuilder()
    builder.set_spout("wordGenerator", RowSpout(["word"], word), 2)
    counter = builder.set_bolt("counter", RollingCount(window, emit), 4)
    counter.partial_key_grouping("wordGenerator", Fields("word"))
    builder.set_bolt("aggregator", RollingCountAggBolt(), 4).fields_grouping("counter", Fields("word"))
    builder.set_bolt("intermediateRanker", Rank(top, emit), 4).fields_grouping("aggregator", Fields("word"))
    builder.set_bolt("finalRanker", TotalRank(top, emit)).global_grouping("intermediateRanker")
    builder.set_bolt("show", Show()).shuffle_grouping("finalRanker")
    return builder.create_topology()


if __name__ == "__main__":
    from storm_on_spark.spark.main import run_main

    run_main(build, conf)
