"""Numbers of a topic, counted: read by Spark or by the spout's task, and ended where the reader changes or at a number.

`python -m topologies.kafka_readers SERVERS TOPIC FOLDER PROFILE END` counts until it is ended. END says how: one of
`AT_A_NUMBER`, or of `DEATHS`.
"""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from storm_on_spark import BaseBasicBolt, FailedException, LocalCluster, Topology, TopologyBuilder
from storm_on_spark.connectors.kafka import KafkaSpout, KafkaSpoutConfig, RetryBackoff
from storm_on_spark.spark.checkpoint.readers import Readers
from storm_on_spark.spark.state import read_bolt_state

DEATHS = {
    "before the note": ("_write", False),
    "after the note": ("_write", True),
    "before Spark's log is changed": ("_replace", False),
    "after Spark's log is changed": ("_replace", True),
}
"""A method of `Readers`, and whether the driver dies once it has returned."""
AT_A_NUMBER = {"killed": signal.SIGKILL, "interrupted": signal.SIGINT, "a bolt raises": None}
"""What comes to the driver once the number in the file `poison` is counted."""


class CountEach(BaseBasicBolt):
    """Counts each number, and fails one of them. At the number in the file `poison` it ends the topology, once."""

    def prepare(self, conf: Any, context: Any) -> None:
        self.counts: Counter[int] = Counter()
        # Of the run, and not of the state: what `prepare` was given is never restored.
        self.conf = conf
        self.folder = Path(conf["test.folder"])

    def execute(self, tup: Any, collector: Any) -> None:
        number = int(tup["value"])
        if number == self.conf["test.held"]:
            raise FailedException("not in this run")
        self.counts[number] += 1
        if number % 50 == 0:
            poison = self.folder / "poison"
            if poison.exists() and number == int(poison.read_text()):
                poison.unlink()
                if (what := AT_A_NUMBER[self.conf["test.end"]]) is None:
                    raise ValueError("the bolt raises")
                os.kill(int((self.folder / "driver").read_text()), what)
        collector.emit([number])

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare("number")


class Last(BaseBasicBolt):
    """Writes how many were counted, also more than once."""

    def prepare(self, conf: Any, context: Any) -> None:
        self.seen: set[int] = set()
        self.out = Path(conf["test.folder"], "seen")

    def execute(self, tup: Any, collector: Any) -> None:
        self.seen.add(tup["number"])
        new = self.out.with_suffix(f".{os.getpid()}")
        new.write_text(str(len(self.seen)))
        new.rename(self.out)


def kafka_readers(servers: str, topic: str) -> Topology:
    builder = TopologyBuilder()
    config = KafkaSpoutConfig.builder(servers, topic).set_group_id(topic).set_offset_commit_period_ms(100)
    config.set_retry(RetryBackoff(10, 10, max_delay_ms=100))
    builder.set_spout("numbers", KafkaSpout(config.build(), max_offsets_per_batch=100))
    builder.set_bolt("count", CountEach(), 2).fields_grouping("numbers", "value")
    builder.set_bolt("last", Last()).global_grouping("count")
    return builder.create_topology()


def counts(spark: Any, folder: Path) -> Counter[int]:
    """Returns how often each number was counted, as the state store has it."""
    states = read_bolt_state(spark, folder / "checkpoint", "count").values()
    return sum((state["counts"] for state in states), Counter())


def conf_of(folder: Path, profile: str, held: int = -1, end: str = "killed") -> dict[str, object]:
    return {
        "topology.profile": profile,
        "topology.partitions": 1,
        "topology.state.checkpoint.interval.ms": 500,
        "topology.checkpoint.dir": str(folder / "checkpoint"),
        "test.folder": str(folder),
        "test.held": held,
        "test.end": end,
        "topology.fail.fast": AT_A_NUMBER.get(end, 0) is None,
    }


def dying(death: str) -> None:
    """Lets this process die at one moment of a change of reader."""
    name, after = DEATHS[death]
    method = getattr(Readers, name)

    def die(self: Readers, *given: Any) -> None:
        if after:
            method(self, *given)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(Readers, name, die)


def main(servers: str, topic: str, folder: str, profile: str, end: str) -> None:
    (Path(folder) / "driver").write_text(str(os.getpid()))
    if end in DEATHS:
        dying(end)
    with LocalCluster() as cluster:
        cluster.submit_topology("test", conf_of(Path(folder), profile, end=end), kafka_readers(servers, topic))
        cluster.await_completion("test", 600)


if __name__ == "__main__":
    # Imported by name: what is defined in `__main__` is another module in every process.
    from topologies import kafka_readers as module

    module.main(*sys.argv[1:])
