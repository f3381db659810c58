"""A topology of two modules and a required package; its counters say where their code came from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import counting_words_split
import package_of_words

import storm_on_spark
from storm_on_spark import (
    BaseBasicBolt,
    BaseRichSpout,
    BasicOutputCollector,
    Fields,
    OutputFieldsDeclarer,
    SpoutOutputCollector,
    Topology,
    TopologyBuilder,
    TopologyContext,
    Tuple,
)

SENTENCES = 300

conf = {"topology.partitions": 1}


class Sentences(BaseRichSpout):
    def open(self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector) -> None:
        self._collector = collector
        self.next = 0

    def next_tuple(self) -> None:
        if self.next < SENTENCES:
            self._collector.emit([f"{package_of_words.WORD} {self.next % 7}"], message_id=self.next)
            self.next += 1

    def exhausted(self) -> bool:
        return self.next == SENTENCES

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("sentence"))


class Count(BaseBasicBolt):
    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self.counts: dict[str, int] = {}
        self.files: list[str] = []
        self.token = conf.get("words.api.token")

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        for module in (storm_on_spark, counting_words_split, package_of_words):
            if str(module.__file__) not in self.files:
                self.files.append(str(module.__file__))
        self.counts[tup["word"]] = self.counts.get(tup["word"], 0) + 1


def build(conf: Mapping[str, Any]) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("sentences", Sentences())
    builder.set_bolt("split", counting_words_split.Split(), 2).shuffle_grouping("sentences")
    builder.set_bolt("count", Count(), 2).fields_grouping("split", Fields("word"))
    return builder.create_topology()


def report(spark: Any, checkpoint: str, info: Any) -> list[dict[str, Any]]:
    from storm_on_spark.spark.state import read_bolt_state

    states = read_bolt_state(spark, checkpoint, "count").values()
    settings = {key: value for key, value in spark.sparkContext.getConf().getAll() if key.startswith("spark.")}
    return [
        {"counts": state["counts"], "files": state["files"], "token": state["token"], "settings": settings}
        for state in states
    ]
