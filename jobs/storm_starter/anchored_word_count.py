"""storm-starter's AnchoredWordCount, and its ReliableWordCount: each sentence is acked once all its words are counted.

What to look for: with a message id the spout learns the outcome of a sentence; basic bolts anchor and ack
automatically. In Storm counts are lost with their worker; here they are saved, and a sentence is counted once.

    storm-spark run jobs/storm_starter/anchored_word_count.py
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from rows import DEFAULTS, PrinterBolt, RowSpout, sentence

from storm_on_spark import (
    BaseBasicBolt,
    BasicOutputCollector,
    Fields,
    OutputFieldsDeclarer,
    Topology,
    TopologyBuilder,
    TopologyContext,
    Tuple,
)

conf = dict(DEFAULTS)


class SplitSentence(BaseBasicBolt):
    """Emits the words of a sentence."""

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        for word in tup["sentence"].split():
            collector.emit([word])

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("word"))


class WordCount(BaseBasicBolt):
    """Emits how often a word was seen so far."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self.counts: Counter[str] = Counter()

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        word = tup["word"]
        self.counts[word] += 1
        collector.emit([word, self.counts[word]])

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("word", "count"))


def build(conf: Mapping[str, Any]) -> Topology:
    """Returns the topology."""
    builder = TopologyBuilder()
    builder.set_spout("spout", RowSpout(["sentence"], sentence), 4)
    builder.set_bolt("split", SplitSentence(), 4).shuffle_grouping("spout")
    builder.set_bolt("count", WordCount(), 4).fields_grouping("split", Fields("word"))
    builder.set_bolt("printer", PrinterBolt()).shuffle_grouping("count")
    return builder.create_topology()


if __name__ == "__main__":
    from storm_on_spark.spark.main import run_main

    run_main(build, conf)
