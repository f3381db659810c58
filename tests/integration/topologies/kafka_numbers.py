"""A topology that writes numbers to a topic by Spark's sink, and stops once between a write and its commit."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from topologies.parts import Numbers

from storm_on_spark import LocalCluster, Topology, TopologyBuilder
from storm_on_spark.connectors.kafka import KafkaBolt

COUNT = 400


class Halting(KafkaBolt):
    """Notes each micro-batch that it writes; waits, in the driver, to be killed once the third is in Kafka."""

    def __init__(self, servers, notes):
        super().__init__(servers)
        self.notes = Path(notes)

    def write(self, written, context):
        super().write(written, context)
        (self.notes / f"written-{context.micro_batch}-{time.time_ns()}").touch()
        if len(list(self.notes.glob("written-*"))) == 3:
            (self.notes / "halted").touch()
            time.sleep(600)


def as_text(tup):
    return None, str(tup["n"])


def kafka_numbers(servers: str, topic: str, folder: str) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(COUNT, burst=20))
    bolt = Halting(servers, folder).with_topic_selector(topic).with_tuple_to_kafka_mapper(as_text)
    builder.set_bolt("kafka", bolt, 2).shuffle_grouping("numbers")
    return builder.create_topology()


def conf_of(folder: str) -> dict[str, object]:
    return {"topology.batch.max.tuples": 100, "topology.checkpoint.dir": str(Path(folder) / "checkpoint")}


def main(servers: str, topic: str, folder: str) -> None:
    with LocalCluster() as cluster:
        cluster.submit_topology("kafka-numbers", conf_of(folder), kafka_numbers(servers, topic, folder))
        cluster.await_completion("kafka-numbers", 200)


if __name__ == "__main__":
    # Imported by name: what is defined in `__main__` is another module in every process.
    from topologies import kafka_numbers as module

    module.main(*sys.argv[1:])
