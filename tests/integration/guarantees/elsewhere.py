"""A driver whose topology is live on several machines: a spout, two bolts with state, and where each of them was.

`python elsewhere.py SETTINGS.json`; prints a line of JSON each half second while it runs, and one at the end.
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

KEYS = 30
EVERY = 0.004


def machine() -> str:
    """Returns the address that Spark gave this machine; none on the driver's."""
    return os.environ.get("SPARK_LOCAL_IP", "driver")


class Numbers(BaseRichSpout):
    """Counts up every few milliseconds until there is a file; what fails is emitted again."""

    def __init__(self, end: str) -> None:
        self.end = end
        self.next, self.waiting, self.acked, self.again = 0, set(), 0, []

    def open(self, conf, context, collector) -> None:
        self.collector, self.due = collector, 0.0

    def next_tuple(self) -> None:
        now = time.monotonic()
        if self.again:
            self.emit(self.again.pop())
        elif now >= self.due and not Path(self.end).exists():
            self.emit(self.next)
            self.next, self.due = self.next + 1, now + EVERY

    def emit(self, number: int) -> None:
        self.waiting.add(number)
        self.collector.emit([number], message_id=number)

    def ack(self, message_id) -> None:
        self.waiting.discard(message_id)
        self.acked += 1

    def fail(self, message_id) -> None:
        self.again.append(message_id)

    def exhausted(self) -> bool:
        return not self.waiting and Path(self.end).exists()

    def __getstate__(self) -> dict[str, object]:
        return {key: vars(self)[key] for key in ("end", "next", "waiting", "acked", "again")}

    def declare_output_fields(self, declarer) -> None:
        declarer.declare(Fields("number"))


class Remainder(BaseBasicBolt):
    """Emits what is left of each number, and counts what it has had."""

    def prepare(self, conf, context) -> None:
        self.had = 0

    def execute(self, tup, collector) -> None:
        self.had += 1
        collector.emit([tup[0] % KEYS, tup[0]])

    def declare_output_fields(self, declarer) -> None:
        declarer.declare(Fields("digit", "number"))


class Count(BaseBasicBolt):
    """Counts and sums by digit, and remembers the machines that did."""

    def prepare(self, conf, context) -> None:
        self.counts: Counter[int] = Counter()
        self.sums: Counter[int] = Counter()
        self.machines: set[str] = set()

    def execute(self, tup, collector) -> None:
        self.counts[tup[0]] += 1
        self.sums[tup[0]] += tup[1]
        self.machines.add(machine())


def main(path: str) -> None:
    settings = json.loads(Path(path).read_text())
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(settings["end"]))
    builder.set_bolt("digit", Remainder(), 3).shuffle_grouping("numbers")
    builder.set_bolt("count", Count(), 3).fields_grouping("digit", Fields("digit"))
    conf = {
        Config.TOPOLOGY_CHECKPOINT_DIR: settings["checkpoint"],
        "topology.profile": "realtime",
        "topology.workers": 3,
        "topology.message.timeout.secs": 600,
        **settings["conf"],
    }
    spark = local_session(settings["master"], settings["spark"], settings["checkpoint"])
    try:
        with LocalCluster(spark) as cluster:
            cluster.submit_topology("elsewhere", conf, builder.create_topology())
            while not cluster.await_completion("elsewhere", 0.5):
                info = cluster.get_topology_info("elsewhere")
                said = {"acked": info.acked, "how": info.mode, "at": time.time()}
                print(json.dumps(said), flush=True)
            info = cluster.get_topology_info("elsewhere")
        states = list(read_bolt_state(spark, settings["checkpoint"], "count").values())
        found = {
            "status": info.status,
            "acked": info.acked,
            "failed": info.failed,
            "counts": [sum(state["counts"][digit] for state in states) for digit in range(KEYS)],
            "sums": [sum(state["sums"][digit] for state in states) for digit in range(KEYS)],
            "machines": sorted(set().union(*(state["machines"] for state in states))),
            "pending": len(read_pending_roots(spark, settings["checkpoint"])),
            "errors": [error.message for error in info.errors],
        }
        print(json.dumps(found), flush=True)
    finally:
        stop_session(spark)


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except KeyboardInterrupt:
        sys.exit(130)
