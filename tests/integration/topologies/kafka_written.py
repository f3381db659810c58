"""A topology that writes numbers to Kafka until each is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from storm_on_spark import BaseRichSpout, Fields, OutputFieldsDeclarer, Topology, TopologyBuilder
from storm_on_spark.connectors.kafka import PlainKafkaBolt


class Persistent(BaseRichSpout):
    """Emits each number, and those that failed again, however often."""

    def __init__(self, total: int) -> None:
        self.waiting = list(reversed(range(total)))

    def open(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        self.collector = collector

    def next_tuple(self) -> None:
        if self.waiting:
            number = self.waiting.pop()
            self.collector.emit([f"w{number}", str(number)], message_id=number)

    def fail(self, message_id: Any) -> None:
        self.waiting.append(message_id)

    def exhausted(self) -> bool:
        return not self.waiting

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("word", "count"))


def make(total: int, bolt: PlainKafkaBolt) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("words", Persistent(total))
    builder.set_bolt("kafka", bolt, 2).shuffle_grouping("words")
    return builder.create_topology()
