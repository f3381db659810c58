"""Counts the words of Kafka's lines; some lines fail."""

from __future__ import annotations

from collections import Counter

from storm_on_spark import BaseRichBolt, Fields, Topology, TopologyBuilder
from storm_on_spark.connectors.kafka import (
    KafkaSpoutConfig,
    PlainKafkaSpout,
    RetryBackoff,
    SimpleRecordTranslator,
)

GROUP = "kafka-words"


class Split(BaseRichBolt):
    """Fails a line that begins with "once" the first time, and one that begins with "never" always."""

    def prepare(self, conf, context, collector):
        self.collector = collector
        self.seen = Counter()

    def execute(self, tup):
        line = tup["line"]
        self.seen[line] += 1
        if line.startswith("never") or (line.startswith("once") and self.seen[line] == 1):
            self.collector.fail(tup)
            return
        for word in line.split():
            self.collector.emit([word], anchors=tup)
        self.collector.ack(tup)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("word"))


class Bury(BaseRichBolt):
    """Acks dead letters."""

    def prepare(self, conf, context, collector):
        self.collector = collector

    def execute(self, tup):
        self.collector.ack(tup)


def lines(record):
    return [record.value]


def make(bootstrap_servers: str, topic: str) -> Topology:
    """Returns the topology, with two tasks that read."""
    config = (
        KafkaSpoutConfig.builder(bootstrap_servers, topic)
        .set_group_id(GROUP)
        .set_record_translator(SimpleRecordTranslator(lines, Fields("line")))
        .set_retry(RetryBackoff(max_retries=2))
        .set_dead_letter_stream("dead")
        .set_offset_commit_period_ms(50)
        .build()
    )
    builder = TopologyBuilder()
    builder.set_spout("lines", PlainKafkaSpout(config), 2)
    builder.set_bolt("split", Split()).shuffle_grouping("lines")
    builder.set_bolt("bury", Bury()).shuffle_grouping("lines", "dead")
    return builder.create_topology()
