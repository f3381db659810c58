"""A driver whose executors share no directory with it: spouts, a bolt with state, and where each of them was.

`python apart.py SETTINGS.json`; prints how many messages are acked while it runs, and one line of JSON at the end. A
mount namespace stands for a machine. Components refuse to work where they see the driver's files.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from pathlib import Path

from storm_on_spark import BaseBasicBolt, BaseRichSpout, Config, Fields, LocalCluster, TopologyBuilder
from storm_on_spark.spark.session import local_session, stop_session
from storm_on_spark.spark.state import read_bolt_state, read_pending_roots


def machine(folder: str, conf) -> str:
    """Returns the name of this machine; no machine but the driver's sees the driver's files."""
    here = os.readlink("/proc/self/ns/mnt")
    if here != conf["test.driver"] and Path(folder).exists():
        raise RuntimeError(f"{here} sees {folder}")
    return here


class Numbers(BaseRichSpout):
    """Emits numbers of its own, each once, and where it did so; ends when all are acked."""

    def __init__(self, count: int, folder: str) -> None:
        self.count, self.folder = count, folder
        self.emitted, self.acked = 0, set()

    def open(self, conf, context, collector) -> None:
        self.collector, self.first = collector, context.this_task_index * self.count
        self.machine = machine(self.folder, conf)

    def next_tuple(self) -> None:
        if self.emitted < self.count:
            self.collector.emit([self.first + self.emitted, self.machine], self.first + self.emitted)
            self.emitted += 1

    def __getstate__(self) -> dict[str, object]:
        return {"emitted": self.emitted, "acked": self.acked}

    def __setstate__(self, state) -> None:
        self.__dict__.update(state)

    def __reduce__(self):
        return Numbers, (self.count, self.folder), self.__getstate__()

    def ack(self, message_id) -> None:
        self.acked.add(message_id)

    def exhausted(self) -> bool:
        return len(self.acked) == self.count

    def declare_output_fields(self, declarer) -> None:
        declarer.declare(Fields("number", "machine"))


class Count(BaseBasicBolt):
    """Counts numbers, and remembers the machines of spouts and its own."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def prepare(self, conf, context) -> None:
        self.conf = conf
        self.counts: Counter[int] = Counter()
        self.spouts: set[str] = set()
        self.bolts: set[str] = set()

    def execute(self, tup, collector) -> None:
        self.counts[tup[0] % 10] += 1
        self.spouts.add(tup[1])
        self.bolts.add(machine(self.folder, self.conf))


def wait_for_machines(spark, count: int) -> None:
    """Runs tasks until `count` machines execute some.

    Spark lists an executor before the executor takes tasks, and may run elsewhere what prefers that machine.
    """

    def here(_) -> str:
        time.sleep(0.2)
        return os.readlink("/proc/self/ns/mnt")

    context = spark.sparkContext
    while len(set(context.parallelize(range(4 * count), 4 * count).map(here).collect())) < count:
        pass


def main(path: str) -> None:
    settings = json.loads(Path(path).read_text())
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(settings["count"], settings["folder"]), 2)
    builder.set_bolt("count", Count(settings["folder"]), 2).fields_grouping("numbers", Fields("number"))
    here = os.readlink("/proc/self/ns/mnt")
    conf = {
        Config.TOPOLOGY_CHECKPOINT_DIR: settings["checkpoint"],
        "topology.workers": 2,
        "topology.max.spout.pending": settings["pending"],
        "topology.message.timeout.secs": 600,
        "test.driver": here,
        **settings["conf"],
    }
    spark = local_session(settings["master"], settings["spark"], settings["checkpoint"])
    try:
        wait_for_machines(spark, settings["machines"])
        with LocalCluster(spark) as cluster:
            cluster.submit_topology("apart", conf, builder.create_topology())
            while not cluster.await_completion("apart", 0.5):
                print(cluster.get_topology_info("apart").acked, flush=True)
            info = cluster.get_topology_info("apart")
        states = list(read_bolt_state(spark, settings["checkpoint"], "count").values())
        counts = sum((state["counts"] for state in states), Counter())
        found = {
            "status": info.status,
            "acked": info.acked,
            "failed": info.failed,
            "counts": [counts[digit] for digit in range(10)],
            "spouts": sorted(set().union(*(state["spouts"] for state in states))),
            "bolts": sorted(set().union(*(state["bolts"] for state in states))),
            "driver": here,
            "pending": len(read_pending_roots(spark, settings["checkpoint"])),
        }
        print(json.dumps(found), flush=True)
    finally:
        stop_session(spark)


if __name__ == "__main__":
    main(sys.argv[1])
