"""Numbers in order, in windows that hold tuples; each evaluation is noted in a file. Commands take this file as it is.

Configuration: `windows.notes`, a folder. What a window holds and its number tell whether any tuple was lost, came twice
or was forgotten when a process died. A note may come twice, as any effect on the outside may.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import NamedTuple

from storm_on_spark import BaseRichSpout, BaseWindowedBolt, Count, Fields, Topology, TopologyBuilder

LENGTH, SLIDE = 700, 350

conf = {"topology.message.timeout.secs": 600, "topology.max.spout.pending": 2000}


class Numbers(BaseRichSpout):
    def open(self, conf, context, collector):
        self.collector, self.next = collector, 0

    def next_tuple(self):
        self.collector.emit([self.next], message_id=self.next)
        self.next += 1
        time.sleep(0.001)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("number"))


class Windows(BaseWindowedBolt):
    def prepare(self, conf, context, collector):
        self.path, self.evaluated = f"{conf['windows.notes']}/windows", 0

    def execute(self, window):
        self.evaluated += 1
        numbers = [tup["number"] for tup in window]
        bounds = [numbers[0], numbers[-1], len(numbers), len(window.new), len(window.expired)]
        note = [os.getpid(), self.evaluated, *bounds]
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, json.dumps(note).encode() + b"\n")
        finally:
            os.close(descriptor)


def build(conf) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers())
    builder.set_bolt("windows", Windows().with_window(Count(LENGTH), Count(SLIDE))).global_grouping("numbers")
    return builder.create_topology()


class Note(NamedTuple):
    """A window that was evaluated."""

    pid: int
    """Of the process that did it."""
    number: int
    """Of this window, from 1."""
    first: int
    """The first number that it held, and the last one."""
    last: int
    size: int
    new: int
    """How many of them were not in the window before, and how many of that one's are not in this one."""
    expired: int


def notes_in(folder: Path) -> list[Note]:
    """Returns what was noted."""
    path = folder / "windows"
    return [Note(*json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []


def check_exact(notes: list[Note]) -> None:
    """Asserts that there is each window, with what it has to hold."""
    last = max(note.number for note in notes)
    assert {note[1:] for note in notes} == {_expected(number)[1:] for number in range(1, last + 1)}


def _expected(number: int) -> Note:
    end, first = number * SLIDE, max(0, number * SLIDE - LENGTH)
    return Note(0, number, first, end - 1, end - first, SLIDE, first - max(0, first - SLIDE))
