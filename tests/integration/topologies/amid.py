"""A topology amid a Spark pipeline: a streaming DataFrame comes in, one goes out; its driver stops once in between."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from storm_on_spark import BaseBasicBolt, FailedException, Fields, LocalCluster, Topology, TopologyBuilder
from storm_on_spark.connectors.pipeline import DataFrameSpout, StreamBolt
from storm_on_spark.connectors.sources import RetryBackoff

SCHEMA = "user STRING, kind STRING, n BIGINT, price DECIMAL(10,2), tags ARRAY<STRING>, at TIMESTAMP"
TYPES = {
    "user": "string",
    "n": "long",
    "price": "decimal(10,2)",
    "tags": "array<string>",
    "at": "timestamp",
    "tries": "int",
}
RETRY = RetryBackoff(initial_delay_ms=1, delay_period_ms=1)


class Tried(BaseBasicBolt):
    """Passes on what comes, with how often it came; of ten, 7 fails once."""

    def prepare(self, conf, context):
        self.tried = set()

    def execute(self, tup, collector):
        number = tup["n"]
        if number % 10 == 7 and number not in self.tried:
            self.tried.add(number)
            raise FailedException("not yet")
        collector.emit([*tup, 1 + (number in self.tried)])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields(TYPES))


class Halting(StreamBolt):
    """Waits, in the driver, to be killed once the third file is there; not again where that is noted."""

    def __init__(self, folder, noted):
        super().__init__(folder)
        self.noted = Path(noted)
        self.written = 0

    def write_table(self, table, context):
        super().write_table(table, context)
        self.written += 1
        if self.written == 3 and not self.noted.exists():
            self.noted.touch()
            time.sleep(600)


def amid(spout: DataFrameSpout, bolt: StreamBolt) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("clicks", spout)
    builder.set_bolt("tried", Tried(), 2).fields_grouping("clicks", Fields("n"))
    builder.set_bolt("out", bolt, 2).shuffle_grouping("tried")
    return builder.create_topology()


def clicks_in(folder: str):
    """Returns a function that makes the DataFrame, of one file a micro-batch."""

    def clicks(spark):
        events = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(folder)
        return events.where("kind = 'click'").drop("kind")

    return clicks


def halting(folder: str) -> Topology:
    base = Path(folder)
    fields = [name for name in TYPES if name != "tries"]
    spout = DataFrameSpout(clicks_in(str(base / "in")), fields, RETRY)
    return amid(spout, Halting(base / "out", base / "noted"))


def conf_of(folder: str) -> dict[str, object]:
    return {"topology.partitions": 1, "topology.checkpoint.dir": str(Path(folder) / "checkpoint")}


def main(folder: str) -> None:
    with LocalCluster() as cluster:
        cluster.submit_topology("amid", conf_of(folder), halting(folder))
        cluster.await_completion("amid", 200)


if __name__ == "__main__":
    # Imported by name: what is defined in `__main__` is another module in every process.
    from topologies import amid as module

    module.main(*sys.argv[1:])
