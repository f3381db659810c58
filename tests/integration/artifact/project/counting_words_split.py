"""A bolt in a module beside the topology's."""

from __future__ import annotations

from storm_on_spark import BaseBasicBolt, BasicOutputCollector, Fields, OutputFieldsDeclarer, Tuple


class Split(BaseBasicBolt):
    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        for word in tup["sentence"].split():
            collector.emit([word])

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("word"))
