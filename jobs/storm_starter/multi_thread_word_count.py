"""storm-starter's MultiThreadWordCountTopology: a bolt counts in its own threads.

What to look for: threads may compute, while tuples are emitted and acked by the task's own thread. A bolt hands all
its work to threads at the end of the micro-batch or round, before its state is saved; they end there, too.

    storm-spark run jobs/storm_starter/multi_thread_word_count.py
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from anchored_word_count import SplitSentence
from rows import DEFAULTS, PrinterBolt, RowSpout, sentence

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

conf = dict(DEFAULTS)

THREADS = 4


def normal(word: str) -> str:
    """Stands for work that waits, as for another service."""
    return word.casefold()


class WordCount(BaseRichBolt):
    """Emits how often a word was seen so far, once a thread has made it normal."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        self._collector = collector
        self._waiting: list[Tuple] = []
        self.counts: Counter[str] = Counter()

    def execute(self, tup: Tuple) -> None:
        """Keeps a word until the end of the micro-batch."""
        self._waiting.append(tup)

    def finish_micro_batch(self) -> None:
        """Counts the kept words, so that no data is left only in this process."""
        if not self._waiting:
            return
        with ThreadPoolExecutor(THREADS) as pool:
            words = list(pool.map(normal, [tup["word"] for tup in self._waiting]))
        for tup, word in zip(self._waiting, words, strict=True):
            self.counts[word] += 1
            self._collector.emit([word, self.counts[word]], anchors=tup)
            self._collector.ack(tup)
        self._waiting = []

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("word", "count"))


def build(conf: Mapping[str, Any]) -> Topology:
    """Returns the topology."""
    builder = TopologyBuilder()
    builder.set_spout("spout", RowSpout(["sentence"], sentence), 2)
    builder.set_bolt("split", SplitSentence(), 2).shuffle_grouping("spout")
    builder.set_bolt("count", WordCount(), 2).fields_grouping("split", Fields("word"))
    builder.set_bolt("printer", PrinterBolt()).shuffle_grouping("count")
    return builder.create_topology()


if __name__ == "__main__":
    from storm_on_spark.spark.main import run_main

    run_main(build, conf)
