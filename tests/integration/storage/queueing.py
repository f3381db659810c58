"""A driver of a topology whose messages come from a queue that forgets what was acked, as a broker does.

`python queueing.py SETTINGS.json`; prints one line of JSON with the numbers that a bolt has seen.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import uuid
from pathlib import Path

from storm_on_spark import BaseBasicBolt, BaseRichSpout, Config, Fields, LocalCluster, TopologyBuilder
from storm_on_spark.spark.session import local_session, stop_session
from storm_on_spark.spark.state import read_bolt_state


class Queue(BaseRichSpout):
    """Takes each file of a folder for itself by renaming it, and removes it when it is acked.

    It ends when the folder is empty and a file beside it says that nothing more comes.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def open(self, conf, context, collector) -> None:
        self.collector, self.mine, self.listed = collector, f".{uuid.uuid4().hex}", []

    def next_tuple(self) -> None:
        if not self.listed:
            self.listed = sorted((name for name in os.listdir(self.folder) if "." not in name), reverse=True)
        while self.listed:
            name = self.listed.pop()
            with contextlib.suppress(FileNotFoundError):  # another one has taken it
                os.rename(f"{self.folder}/{name}", f"{self.folder}/{name}{self.mine}")
                self.collector.emit([int(name)], name)
                return

    def ack(self, message_id) -> None:
        # What another one has taken is not this one's to remove, as it is with a broker's connections.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{self.folder}/{message_id}{self.mine}")

    def exhausted(self) -> bool:
        return os.path.exists(f"{self.folder}.last") and not os.listdir(self.folder)

    def __getstate__(self) -> dict[str, str]:
        return {"folder": self.folder}

    def __setstate__(self, state) -> None:
        self.__dict__.update(state)

    def declare_output_fields(self, declarer) -> None:
        declarer.declare(Fields("number"))


class Seen(BaseBasicBolt):
    """Remembers numbers."""

    def prepare(self, conf, context) -> None:
        self.numbers: set[int] = set()

    def execute(self, tup, collector) -> None:
        self.numbers.add(tup[0])


def main(path: str) -> None:
    settings = json.loads(Path(path).read_text())
    builder = TopologyBuilder()
    builder.set_spout("queue", Queue(settings["queue"]))
    builder.set_bolt("seen", Seen()).shuffle_grouping("queue")
    conf = {
        Config.TOPOLOGY_CHECKPOINT_DIR: settings["checkpoint"],
        "topology.max.spout.pending": 2,
        "topology.message.timeout.secs": 300,
        **settings["conf"],
    }
    hadoop = {key: value for key, value in settings["conf"].items() if key.startswith("spark.")}
    spark = local_session("local[2]", hadoop, settings["checkpoint"])
    try:
        with LocalCluster(spark) as cluster:
            cluster.submit_topology("queueing", conf, builder.create_topology())
            cluster.await_completion("queueing")
        [state] = read_bolt_state(spark, settings["checkpoint"], "seen").values()
        print(json.dumps(sorted(state["numbers"])), flush=True)
    finally:
        stop_session(spark)


if __name__ == "__main__":
    main(sys.argv[1])
