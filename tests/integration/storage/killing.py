"""A driver that a test starts, kills and starts again: counts unique messages with state on a store.

`python killing.py SETTINGS.json`; prints `running` when it runs and one line of JSON with the result.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from storm_on_spark import BaseBasicBolt, BaseRichSpout, Config, Fields, LocalCluster, TopologyBuilder
from storm_on_spark.spark.session import local_session, stop_session
from storm_on_spark.spark.state import read_bolt_state, read_pending_roots


class Numbers(BaseRichSpout):
    """Emits numbers, each once, and writes down what was acked."""

    def __init__(self, count: int, acked: str) -> None:
        self.count, self.acked, self.next = count, acked, 0

    def open(self, conf, context, collector) -> None:
        self.collector = collector
        self.file = open(self.acked, "a", buffering=1)  # noqa: SIM115

    def next_tuple(self) -> None:
        if self.next < self.count:
            self.collector.emit([self.next], self.next)
            self.next += 1

    def ack(self, message_id) -> None:
        self.file.write(f"{message_id}\n")

    def exhausted(self) -> bool:
        return self.next == self.count

    def declare_output_fields(self, declarer) -> None:
        declarer.declare(Fields("number"))


class Pair(BaseBasicBolt):
    """Two words for a number."""

    def execute(self, tup, collector) -> None:
        collector.emit([tup[0] % 10])
        collector.emit([10 + tup[0] % 3])

    def declare_output_fields(self, declarer) -> None:
        declarer.declare(Fields("word"))


class Count(BaseBasicBolt):
    """Counts words."""

    def prepare(self, conf, context) -> None:
        self.counts: dict[int, int] = {}

    def execute(self, tup, collector) -> None:
        self.counts[tup[0]] = self.counts.get(tup[0], 0) + 1

    def declare_output_fields(self, declarer) -> None: ...


def main(path: str) -> None:
    settings = json.loads(Path(path).read_text())
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(settings["count"], settings["acked"]))
    builder.set_bolt("pair", Pair()).shuffle_grouping("numbers")
    builder.set_bolt("count", Count(), 2).fields_grouping("pair", Fields("word"))
    conf = {
        Config.TOPOLOGY_CHECKPOINT_DIR: settings["checkpoint"],
        "topology.max.spout.pending": settings["pending"],
        "topology.message.timeout.secs": 120,
        **settings["conf"],
    }
    hadoop = {key: value for key, value in settings["conf"].items() if key.startswith("spark.")}
    spark = local_session(settings["master"], hadoop, settings["checkpoint"])
    try:
        with LocalCluster(spark) as cluster:
            cluster.submit_topology("counting", conf, builder.create_topology())
            print("running", flush=True)
            cluster.await_completion("counting")
        counts: dict[str, int] = {}
        for state in read_bolt_state(spark, settings["checkpoint"], "count").values():
            counts |= {str(key): value for key, value in state["counts"].items()}
        pending = read_pending_roots(spark, settings["checkpoint"])
        print(json.dumps({"counts": counts, "pending": len(pending)}), flush=True)
    finally:
        stop_session(spark)


if __name__ == "__main__":
    main(sys.argv[1])
