"""The topology of the runs: numbers from Kafka, counted by key; every number to a Delta table, the counts to another.

    numbers (KafkaSpout or PlainKafkaSpout) -> count (state; some numbers fail once) -> rows   (DeltaBolt, appends)
                                                                                     -> keys   (DeltaBolt, by key)
                                                                                     -> copies (PlainKafkaBolt)

`python -m lab.connectors.pipeline FOLDER` is the driver: it runs the job of `job.json` there until it is killed.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from storm_on_spark import BaseBasicBolt, FailedException, Fields, LocalCluster, Topology, TopologyBuilder
from storm_on_spark.api.sink import SinkContext
from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
from storm_on_spark.api.task.context import TopologyContext
from storm_on_spark.api.tuple import Tuple
from storm_on_spark.connectors.delta import DeltaBolt
from storm_on_spark.connectors.kafka import (
    FieldNameBasedTupleToKafkaMapper,
    KafkaRecord,
    KafkaSpout,
    KafkaSpoutConfig,
    PlainKafkaBolt,
    PlainKafkaSpout,
    RetryBackoff,
    SimpleRecordTranslator,
)

NAME: Final = "connector-faults"
KEYS: Final = 500
PARTITIONS: Final = 4
FAILS_EVERY: Final = 97
GROUP: Final = "connector-faults"
TOPIC, COPIES = "numbers", "copies"


@dataclass(frozen=True)
class Job:
    """The job of a driver.

    Args:
        servers: of Kafka.
        messages: in the topic.
        plain: whether `PlainKafkaSpout` reads.
        copies: whether every number is also written to Kafka.
        earliest: whether to continue at the first existing record if a record was deleted.
    """

    servers: str
    messages: int
    plain: bool = False
    copies: bool = False
    earliest: bool = False

    @property
    def at_once(self) -> int:
        """Messages of a micro-batch at most: there are about forty, fewer in the short form."""
        return max(400, self.messages // 40)

    def save(self, folder: Path) -> None:
        """Writes it for the next driver."""
        (folder / "job.json").write_text(json.dumps(asdict(self)), "utf-8")

    @staticmethod
    def load(folder: Path) -> Job:
        """Returns what `save` wrote."""
        return Job(**json.loads((folder / "job.json").read_text("utf-8")))


def numbered(record: KafkaRecord) -> list[int]:
    """Returns key and number of a record, and where it was."""
    number = int(record.value)
    return [number % KEYS, number, record.partition, record.offset]


class Count(BaseBasicBolt):
    """Counts and sums by key; some numbers fail when they come first."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Begins with nothing."""
        self.counts: dict[int, list[int]] = {}
        self.tried: set[int] = set()

    def execute(self, tup: Tuple, collector: Any) -> None:
        """Counts one."""
        key, number = tup["key"], tup["number"]
        if number % FAILS_EVERY == 0 and number not in self.tried:
            self.tried.add(number)
            raise FailedException("the first time")
        found = self.counts.setdefault(key, [0, 0])
        found[0] += 1
        found[1] += number
        collector.emit([key, number, tup["partition"], tup["offset"], *found])

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares what tables want."""
        declarer.declare(Fields("key", "number", "partition", "offset", "count", "sum"))


class HeldDeltaBolt(DeltaBolt):
    """While there is a file `hold` beside the table, waits between its transaction and Spark's commit to be killed."""

    def write_table(self, table: pa.Table, context: SinkContext) -> None:
        """Writes, then waits."""
        super().write_table(table, context)
        folder = Path(self.location).parent
        if (folder / "hold").exists():
            (folder / "held").write_text(str(context.micro_batch), "utf-8")
            while (folder / "hold").exists():
                time.sleep(0.02)


def build(folder: Path, job: Job) -> Topology:
    """Returns the topology."""
    settings = (
        KafkaSpoutConfig.builder(job.servers, TOPIC)
        .set_group_id(GROUP)
        .set_record_translator(SimpleRecordTranslator(numbered, Fields("key", "number", "partition", "offset")))
        .set_retry(RetryBackoff(10, 10))
        .set_offset_commit_period_ms(500)
    )
    if job.earliest:
        settings = settings.set_prop("auto.offset.reset", "earliest")
    config = settings.build()
    at_once = job.at_once
    builder = TopologyBuilder()
    if job.plain:
        builder.set_spout("numbers", PlainKafkaSpout(config), 2)
    else:
        builder.set_spout("numbers", KafkaSpout(config, max_offsets_per_batch=at_once))
    builder.set_bolt("count", Count(), 2).fields_grouping("numbers", Fields("key"))
    types = {"key": "long", "number": "long", "partition": "long", "offset": "long"}
    rows = HeldDeltaBolt(folder / "rows", types)
    builder.set_bolt("rows", rows, 2).local_or_shuffle_grouping("count")
    keys = DeltaBolt(folder / "keys", {"key": "long", "count": "long", "sum": "long"}, keys=["key"])
    builder.set_bolt("keys", keys, 2).fields_grouping("count", Fields("key"))
    if job.copies:
        mapper = FieldNameBasedTupleToKafkaMapper("none", "number")
        bolt = PlainKafkaBolt(job.servers).with_topic_selector(COPIES).with_tuple_to_kafka_mapper(_texts(mapper))
        builder.set_bolt("copies", bolt, 2).local_or_shuffle_grouping("count")
    return builder.create_topology()


class _texts:  # noqa: N801 # a function that can be pickled
    def __init__(self, mapper: FieldNameBasedTupleToKafkaMapper) -> None:
        self._mapper = mapper

    def __call__(self, tup: Tuple) -> tuple[None, str]:
        return None, str(self._mapper(tup)[1])


def drive(folder: Path) -> int:
    """Runs the topology until this process is killed, or the topology ends; returns the exit code."""
    job = Job.load(folder)
    conf = {
        "topology.checkpoint.dir": str(folder / "checkpoint"),
        "topology.message.timeout.secs": 120,
        "topology.batch.max.tuples": job.at_once,
    }
    with LocalCluster() as cluster:
        cluster.submit_topology(NAME, conf, build(folder, job))
        cluster.await_completion(NAME, 3600)
        info = cluster.get_topology_info(NAME)
    (folder / "error").write_text(str(info.error or f"the topology is {info.status}"), "utf-8")
    return 1


if __name__ == "__main__":
    # Imported by name: classes of `__main__` belong to a different module in every process.
    from lab.connectors import pipeline

    sys.exit(pipeline.drive(Path(sys.argv[1])))
