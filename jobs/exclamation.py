"""Storm's ExclamationTopology, the smallest there is: words get an exclamation mark, and then another one.

What to look for: a rich bolt that anchors and acks by itself, a chain of shuffle groupings (the compiler runs all
of it in the read of the source, without any exchange), and a `print` in a bolt, which just prints.

    storm-spark run jobs/exclamation.py -c exclamation.words=5
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from storm_on_spark import (
    BaseBasicBolt,
    BaseRichBolt,
    BaseRichSpout,
    BasicOutputCollector,
    Fields,
    OutputCollector,
    OutputFieldsDeclarer,
    SpoutOutputCollector,
    Topology,
    TopologyBuilder,
    TopologyContext,
    Tuple,
)

WORDS = "exclamation.words"
"""Configuration key: how many words are emitted."""

conf = {WORDS: 10}

NAMES = ("nathan", "mike", "jackson", "golda", "bertels")


class WordSpout(BaseRichSpout):
    """Emits random names, the same ones in every run.

    Args:
        count: how many.
        seed: of the random numbers.
    """

    def __init__(self, count: int, seed: int = 1) -> None:
        self.left = count
        self.random = random.Random(seed)

    def open(self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector) -> None:
        self._collector = collector
        self.failed: list[tuple[int, str]] = []

    def next_tuple(self) -> None:
        if self.failed:
            message = self.failed.pop()
        elif self.left:
            message = (self.left, self.random.choice(NAMES))
            self.left -= 1
        else:
            return
        self._collector.emit([message[1]], message_id=message)

    def fail(self, message_id: tuple[int, str]) -> None:
        self.failed.append(message_id)

    def exhausted(self) -> bool:
        return not self.left and not self.failed

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("word"))


class ExclamationBolt(BaseRichBolt):
    """Adds an exclamation mark."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        self._collector = collector

    def execute(self, tup: Tuple) -> None:
        self._collector.emit([tup["word"] + "!"], anchors=tup)
        self._collector.ack(tup)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("word"))


class Show(BaseBasicBolt):
    """Prints its input."""

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        print(*tup)


def build(conf: Mapping[str, Any]) -> Topology:
    """Returns the topology."""
    builder = TopologyBuilder()
    builder.set_spout("word", WordSpout(conf.get(WORDS, 10)))
    builder.set_bolt("exclaim1", ExclamationBolt(), 3).shuffle_grouping("word")
    builder.set_bolt("exclaim2", ExclamationBolt(), 2).shuffle_grouping("exclaim1")
    builder.set_bolt("show", Show()).shuffle_grouping("exclaim2")
    return builder.create_topology()


if __name__ == "__main__":
    from storm_on_spark.spark.main import run_main

    run_main(build, conf)
