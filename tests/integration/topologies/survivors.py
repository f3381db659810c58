"""A topology that must survive whatever dies, and the script that runs it in its own process.

Two spouts are joined with two anchors, what comes out is fanned out and counted. All state is exact if every number
has come through once; the spouts count acks in their own state, so that is exact too. They wait for acks, so a run
takes some time on any machine.
"""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

from topologies.notes import note
from topologies.parts import Join

from storm_on_spark import BaseBasicBolt, BaseRichSpout, Fields, LocalCluster, Topology, TopologyBuilder
from storm_on_spark.testing import crash

KEYS = 13


class Bookkeeper(BaseRichSpout):
    """A plain counting spout that keeps book of its acks in an attribute."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.next = 0
        self.acks = bytearray(count)
        self.fails = 0

    def open(self, conf, context, collector):
        self.conf, self.collector, self.me = conf, collector, context.this_component_id
        # Not part of the state, since a lock can't be pickled: new in every process.
        self.new = threading.Lock()

    def next_tuple(self):
        if self.new.acquire(blocking=False):
            note(self.conf, "begun", self.me, self.next)
        if self.next < self.count:
            self.collector.emit([self.next], self.next)
            self.next += 1

    def ack(self, message_id):
        self.acks[message_id] += 1
        if message_id % 50 == 0:
            note(self.conf, "progress", self.me, message_id)

    def fail(self, message_id):
        self.fails += 1

    def exhausted(self):
        return self.next >= self.count

    def close(self):
        note(self.conf, "closed", self.me, self.next, bytes(self.acks), self.fails)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("n"))


class Fan(BaseBasicBolt):
    """Emits two tuples for one."""

    stateless = True

    def execute(self, tup, collector):
        collector.emit([tup["n"] % KEYS, tup["n"]])
        collector.emit([-(tup["n"] % KEYS) - 1, 1])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("key", "value"))


class Sums(BaseBasicBolt):
    """Adds up values by key."""

    def prepare(self, conf, context):
        self.sums: Counter[int] = Counter()

    def execute(self, tup, collector):
        self.sums[tup["key"]] += tup["value"]


def expected_sums(count: int) -> Counter[int]:
    sums: Counter[int] = Counter()
    for n in range(count):
        sums[n % KEYS] += n
        sums[-(n % KEYS) - 1] += 1
    return sums


def survivors(count: int) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("left", Bookkeeper(count)).set_max_spout_pending(200)
    builder.set_spout("right", Bookkeeper(count)).set_max_spout_pending(130)
    builder.set_bolt("join", Join(), 2).fields_grouping("left", "n").fields_grouping("right", "n")
    builder.set_bolt("fan", Fan(), 2).shuffle_grouping("join")
    builder.set_bolt("sums", Sums(), 2).fields_grouping("fan", "key")
    return builder.create_topology()


class CrashingRelay(BaseBasicBolt):
    """Without state; its worker is killed at one number."""

    stateless = True

    def __init__(self, at: int) -> None:
        self.at = at

    def prepare(self, conf, context):
        self.folder = Path(conf["test.notes"])
        self.name = context.this_component_id

    def execute(self, tup, collector):
        if tup["n"] == self.at:
            crash(self.folder / f"crash-{self.name}-{self.at}")
        collector.emit([tup["n"], tup["n"]])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("key", "value"))


class CrashingSums(Sums):
    """With state; its worker is killed at some values, once at each."""

    def __init__(self, *at: int) -> None:
        self.at = at

    def prepare(self, conf, context):
        super().prepare(conf, context)
        self.folder = Path(conf["test.notes"])

    def execute(self, tup, collector):
        super().execute(tup, collector)
        if tup["value"] in self.at:
            crash(self.folder / f"crash-sums-{tup['value']}")


def crashing_bolts(count: int) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Bookkeeper(count)).set_max_spout_pending(count // 4)
    builder.set_bolt("relay", CrashingRelay(count // 5), 2).shuffle_grouping("numbers")
    sums = CrashingSums(count // 3, count // 2, count - 1)
    builder.set_bolt("sums", sums, 2).fields_grouping("relay", "key")
    return builder.create_topology()


class CrashingSpout(Bookkeeper):
    """Kills its process, in `next_tuple` or in `open`, as often as it is told."""

    def __init__(self, times: int, where: str = "next_tuple") -> None:
        super().__init__(100)
        self.times = times
        self.where = where

    def open(self, conf, context, collector):
        super().open(conf, context, collector)
        if self.where == "open":
            crash(Path(conf["test.notes"]) / "crash-spout", self.times)

    def next_tuple(self):
        if self.where == "next_tuple" and self.next >= 50:
            crash(Path(self.conf["test.notes"]) / "crash-spout", self.times)
        super().next_tuple()


def crashing_spout(times: int, where: str) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("numbers", CrashingSpout(times, where))
    builder.set_bolt("relay", CrashingRelay(-1)).shuffle_grouping("numbers")
    builder.set_bolt("sums", Sums(), 2).fields_grouping("relay", "key")
    return builder.create_topology()


def main(checkpoint: str, notes: str, count: str, partitions: str) -> None:
    from storm_on_spark.spark.session import local_session, stop_session

    spark = local_session("local[2]")
    conf: dict[str, Any] = {
        "topology.checkpoint.dir": checkpoint,
        "test.notes": notes,
        "topology.partitions": int(partitions),
        # A busy machine may need longer than the default to execute a log again.
        "topology.message.timeout.secs": 1000,
    }
    with LocalCluster(spark) as cluster:
        cluster.submit_topology("survivors", conf, survivors(int(count)))
        ended = cluster.await_completion("survivors", 200)
        info = cluster.get_topology_info("survivors")
        print(json.dumps({"ended": ended, **info.to_dict()}))
    stop_session(spark)


if __name__ == "__main__":
    # Imported by name: what is defined in `__main__` is another module in every process.
    from topologies import survivors as module

    module.main(*sys.argv[1:])
