"""Windows by the tuples' own time, out of order; kept by two tasks, whose workers are killed amid a window."""

from __future__ import annotations

from pathlib import Path

from topologies.notes import NOTES

from storm_on_spark import BaseWindowedBolt, Duration, Fields, Topology, TopologyBuilder
from storm_on_spark.testing import ListSpout, crash

LENGTH, SLIDE, LAG, KEYS = 400, 200, 150, 4
COUNT = 600
BASE = 1_700_000_000_000
END = BASE + 10_000_000
CRASHES = (2000, 6000)
"""Ends of windows."""


def events() -> list[tuple[int, int, int]]:
    """Number, key and time; disordered by less than the lag."""
    return [(number, number * 7 % KEYS, BASE + number * 20 - number * 37 % LAG) for number in range(COUNT)]


class Sums(BaseWindowedBolt):
    """Emits the bounds of each window, and its numbers by key."""

    def prepare(self, conf, context, collector):
        self.collector, self.notes = collector, Path(conf[NOTES])

    def execute(self, window):
        for key in range(KEYS):
            numbers = sorted(tup["number"] for tup in window if tup["key"] == key)
            if numbers:
                self.collector.emit([key, window.start - BASE, window.end - BASE, numbers])
        if window.end - BASE in CRASHES:
            crash(self.notes / f"crash-{window.end - BASE}")

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("key", "start", "end", "numbers"))


def windows() -> Topology:
    """Ends with tuples far ahead, for each task: they move on the watermark, and are not tracked, as they stay."""
    builder = TopologyBuilder()
    items = [*events(), *((COUNT + key, key, END) for key in range(KEYS))]
    builder.set_spout("events", ListSpout(items, ["number", "key", "time"], message_ids=_tracked))
    window = Sums().with_window(Duration(LENGTH), Duration(SLIDE)).with_timestamp_field("time")
    window = window.with_lag(Duration(LAG)).with_watermark_interval(Duration(50))
    builder.set_bolt("sums", window, 2).fields_grouping("events", "key")
    return builder.create_topology()


def _tracked(position: int) -> int | None:
    return position if position < COUNT else None


def expected() -> list[tuple[int, int, int, list[int]]]:
    """What all windows hold, found by looking at all events for each."""
    found = []
    for key in range(KEYS):
        for end in range(BASE, END, SLIDE):
            numbers = sorted(number for number, of, time in events() if of == key and end - LENGTH < time <= end)
            if numbers:
                found.append((key, end - LENGTH - BASE, end - BASE, numbers))
            elif end > BASE + COUNT * 20 + LENGTH:
                break
    return found
