"""Topologies for the tests of bolts that hang and of spouts that are too fast."""

from __future__ import annotations

import ctypes
import os
import threading
from pathlib import Path

from topologies.notes import NOTES, note
from topologies.parts import Numbers

from storm_on_spark import BaseBasicBolt, BaseRichSpout, Fields, Topology, TopologyBuilder

HANG_AT = 13


class Hanging(BaseBasicBolt):
    """Counts; hangs at one number as often as it is told."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.seen: list[int] = []

    def prepare(self, conf, context):
        self.marker = Path(conf[NOTES]) / "hung"

    def execute(self, tup, collector):
        self.seen.append(tup["n"])
        if tup["n"] == HANG_AT:
            with self.marker.open("ab") as file:
                times = file.tell()
                file.write(b"x" * (times < self.times))
            if times < self.times:
                self.hang()

    def hang(self):
        threading.Event().wait()


class Holding(Hanging):
    """Doesn't let any thread of its process run while it hangs."""

    def hang(self):
        ctypes.PyDLL(None).sleep(3600)


def hanging(times: int, bolt: type[Hanging] = Hanging) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(40, burst=20))
    builder.set_bolt("hang", bolt(times)).global_grouping("numbers")
    return builder.create_topology()


FLOOD = 1500
FLOOD_BYTES = 8000


class Flood(BaseRichSpout):
    """Emits as fast as it can, without message ids."""

    def __init__(self) -> None:
        self.next = 0

    def open(self, conf, context, collector):
        self.collector = collector

    def next_tuple(self):
        if self.next < FLOOD:
            self.collector.emit([self.next, "x" * FLOOD_BYTES])
            self.next += 1

    def exhausted(self):
        return self.next >= FLOOD

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("n", "payload"))


class Gauge(BaseBasicBolt):
    """Checks that nothing is missing, and measures how much of the spouts is on the disk meanwhile."""

    def __init__(self, logs: Path) -> None:
        self.logs = logs
        self.next = 0
        self.gaps = 0

    def prepare(self, conf, context):
        self.conf = conf

    def execute(self, tup, collector):
        self.gaps += tup["n"] != self.next
        self.next = tup["n"] + 1
        if tup["n"] % 20 == 0:
            note(self.conf, "disk", sum(size_of(folder) for folder in self.logs.iterdir()))


def size_of(folder: Path) -> int:
    with os.scandir(folder) as entries:
        return sum(entry.stat().st_size for entry in entries)


def flooded(checkpoint: Path) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("flood", Flood())
    builder.set_bolt("gauge", Gauge(checkpoint / "storm" / "spouts")).global_grouping("flood")
    return builder.create_topology()
