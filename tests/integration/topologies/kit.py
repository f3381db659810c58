"""Components for the tests of the test kit."""

from __future__ import annotations

from collections import Counter
from typing import Any

from storm_on_spark import BaseBasicBolt, BaseRichBolt, FailedException, Fields, TopologyBuilder
from storm_on_spark.testing import ListSpout, crash


class Split(BaseBasicBolt):
    def execute(self, tup: Any, collector: Any) -> None:
        for word in tup["line"].split():
            collector.emit([word])

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("word"))


class Count(BaseBasicBolt):
    """Counts words; the word `boom` kills its worker as often as `topology` says."""

    def prepare(self, conf: Any, context: Any) -> None:
        self.counts: Counter[str] = Counter()
        self.marker = conf.get("count.marker")

    def execute(self, tup: Any, collector: Any) -> None:
        if tup["word"] == "boom" and self.marker is not None:
            crash(self.marker)
        self.counts[tup["word"]] += 1
        collector.emit([tup["word"], self.counts[tup["word"]]])

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("word", "count"))


class FailTwice(BaseBasicBolt):
    """Fails the first two attempts at every tuple."""

    def prepare(self, conf: Any, context: Any) -> None:
        self.attempts: Counter[str] = Counter()

    def execute(self, tup: Any, collector: Any) -> None:
        self.attempts[tup[0]] += 1
        if self.attempts[tup[0]] <= 2:
            raise FailedException(tup[0])


class Switch(BaseRichBolt):
    """Sends even numbers to one task and odd ones to the other."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector
        self.tasks = context.component_tasks("worker")

    def execute(self, tup: Any) -> None:
        self.collector.emit_direct(self.tasks[tup[0] % 2], [tup[0]], anchors=tup, stream="jobs")
        self.collector.ack(tup)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare_stream("jobs", "number", direct=True)


def word_count(lines: Any = (), streams: Any = None) -> Any:
    builder = TopologyBuilder()
    builder.set_spout("lines", ListSpout(lines, "line", streams=streams))
    builder.set_bolt("split", Split(), 2).shuffle_grouping("lines")
    builder.set_bolt("count", Count(), 2).fields_grouping("split", "word")
    return builder.create_topology()
