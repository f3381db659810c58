"""A topology that appends numbers to one Delta table, keeps counts by key in another, and stops once in between."""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path

from topologies.parts import Numbers

from storm_on_spark import BaseBasicBolt, Fields, LocalCluster, Topology, TopologyBuilder
from storm_on_spark.connectors.delta import DeltaBolt

COUNT = 400
KEYS = 7


class CountByKey(BaseBasicBolt):
    def prepare(self, conf, context):
        self.counts = Counter()

    def execute(self, tup, collector):
        key = tup["n"] % KEYS
        self.counts[key] += 1
        collector.emit([key, self.counts[key]])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("key", "count"))


class Halting(DeltaBolt):
    """Waits, in the driver, to be killed once the third transaction is committed; not again where that is noted."""

    def __init__(self, noted, *arguments, **options):
        super().__init__(*arguments, **options)
        self.noted = Path(noted)
        self.written = 0

    def write_table(self, table, context):
        super().write_table(table, context)
        self.written += 1
        if self.written == 3 and not self.noted.exists():
            self.noted.touch()
            time.sleep(600)


def delta_counts(folder: str) -> Topology:
    base = Path(folder)
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(COUNT, burst=20))
    # Sinks are written in the order of their names: "appended" is committed, "upserted" is not, when the driver dies.
    appended = Halting(base / "noted", base / "appended", {"n": "long"}, dead_letters=base / "refused")
    builder.set_bolt("appended", appended, 2).shuffle_grouping("numbers")
    builder.set_bolt("count", CountByKey()).global_grouping("numbers")
    upserted = DeltaBolt(base / "upserted", {"key": "int", "count": "long"}, keys=["key"])
    builder.set_bolt("upserted", upserted, 2).fields_grouping("count", Fields("key"))
    return builder.create_topology()


def conf_of(folder: str) -> dict[str, object]:
    return {"topology.batch.max.tuples": 100, "topology.checkpoint.dir": str(Path(folder) / "checkpoint")}


def main(folder: str) -> None:
    with LocalCluster() as cluster:
        cluster.submit_topology("delta-counts", conf_of(folder), delta_counts(folder))
        cluster.await_completion("delta-counts", 200)


if __name__ == "__main__":
    # Imported by name: what is defined in `__main__` is another module in every process.
    from topologies import delta_counts as module

    module.main(*sys.argv[1:])
