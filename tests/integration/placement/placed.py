"""A driver that a test starts: counts unique messages of two spout tasks, whose hosts are on executors.

`python placed.py SETTINGS.json`; prints `running` when it runs and one line of JSON with the result. Each spout task
appends to files of its own what it was told.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from pathlib import Path

from storm_on_spark import BaseBasicBolt, BaseRichSpout, Config, Fields, LocalCluster, TopologyBuilder
from storm_on_spark.api.errors import StormError
from storm_on_spark.spark.session import local_session, stop_session
from storm_on_spark.spark.state import read_bolt_state, read_pending_roots


class Numbers(BaseRichSpout):
    """Emits numbers of its own, each once, some hundred a second."""

    def __init__(self, count: int, rate: float, folder: str) -> None:
        self.count, self.rate, self.folder = count, rate, folder

    def open(self, conf, context, collector) -> None:
        self.collector, self.task = collector, context.this_task_id
        self.first, self.emitted, self.acked = context.this_task_index * self.count, 0, 0
        self.note("opened", pid=os.getpid(), folder=os.getcwd())
        self.acks = Path(self.folder, f"acks-{self.task}").open("a", buffering=1)  # noqa: SIM115
        print(f"spout {self.task} is open")

    def next_tuple(self) -> None:
        if not hasattr(self, "started"):
            self.started, self.before = time.monotonic(), self.emitted
        if self.emitted < min(self.count, self.before + self.rate * (time.monotonic() - self.started)):
            self.collector.emit([self.first + self.emitted], self.first + self.emitted)
            self.emitted += 1

    def __getstate__(self) -> dict[str, object]:
        return {"emitted": self.emitted, "acked": self.acked}

    def __setstate__(self, state) -> None:
        self.__dict__.update(state)

    def __reduce__(self):
        return Numbers, (self.count, self.rate, self.folder), self.__getstate__() if hasattr(self, "acked") else None

    def ack(self, message_id) -> None:
        self.acked += 1
        self.acks.write(f"{message_id}\n")

    def fail(self, message_id) -> None:
        self.note("failed", message=message_id)

    def activate(self) -> None:
        self.note("activated")

    def close(self) -> None:
        self.note("closed", pid=os.getpid(), acked=self.acked)

    def exhausted(self) -> bool:
        return self.emitted == self.count

    def note(self, what: str, **more: object) -> None:
        with Path(self.folder, "notes").open("a") as file:
            file.write(json.dumps({"what": what, "task": self.task, **more}) + "\n")

    def declare_output_fields(self, declarer) -> None:
        declarer.declare(Fields("number"))


class Words(BaseBasicBolt):
    """Two words for a number."""

    stateless = True

    def execute(self, tup, collector) -> None:
        collector.emit([tup[0] % 10])
        collector.emit([10 + tup[0] % 3])

    def declare_output_fields(self, declarer) -> None:
        declarer.declare(Fields("word"))


class Count(BaseBasicBolt):
    """Counts words."""

    def prepare(self, conf, context) -> None:
        self.counts: Counter[int] = Counter()

    def execute(self, tup, collector) -> None:
        self.counts[tup[0]] += 1


def main(path: str) -> None:
    settings = json.loads(Path(path).read_text())
    builder = TopologyBuilder()
    spout = Numbers(settings["count"], settings["rate"], settings["folder"])
    builder.set_spout("numbers", spout, 2)
    builder.set_bolt("words", Words()).shuffle_grouping("numbers")
    builder.set_bolt("count", Count(), 2).fields_grouping("words", Fields("word"))
    conf = {
        Config.TOPOLOGY_CHECKPOINT_DIR: settings["checkpoint"],
        "topology.workers": 2,
        "topology.spouts.placement": "executors",
        **settings["conf"],
    }
    spark = local_session(settings["master"], settings["spark"])
    try:
        with LocalCluster(spark) as cluster:
            try:
                cluster.submit_topology("placed", conf, builder.create_topology())
            except StormError as error:
                print(json.dumps({"refused": str(error)}), flush=True)
                return
            print("running", flush=True)
            cluster.await_completion("placed")
            info = cluster.get_topology_info("placed")
        counts: Counter[str] = Counter()
        for state in read_bolt_state(spark, settings["checkpoint"], "count").values():
            counts.update({str(key): value for key, value in state["counts"].items()})
        pending = len(read_pending_roots(spark, settings["checkpoint"]))
        errors = [error.message for component in info.components.values() for error in component.errors]
        print(json.dumps({"status": info.status, "counts": counts, "pending": pending, "errors": errors}), flush=True)
    finally:
        stop_session(spark)


if __name__ == "__main__":
    main(sys.argv[1])
