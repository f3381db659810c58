"""Numbers up to a limit that grows from run to run, and one sink."""

from __future__ import annotations

import time

from storm_on_spark import BaseRichSpout, Fields, TopologyBuilder


class UpTo(BaseRichSpout):
    def __init__(self, every):
        self.every = every

    def open(self, conf, context, collector):
        self.collector = collector
        self.limit = Limit(conf["test.limit"])
        self.next, self.due = 0, 0.0

    def next_tuple(self):
        if not self.exhausted() and time.monotonic() >= self.due:
            self.collector.emit([self.next], self.next)
            self.next, self.due = self.next + 1, time.monotonic() + self.every

    def exhausted(self):
        return self.next >= self.limit.value

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("n"))


class Limit:
    """Of this run: it is no part of the spout's state."""

    def __init__(self, value):
        self.value = value

    def __reduce__(self):
        raise TypeError("of one run")


def numbers_to(sink, every=0.0):
    builder = TopologyBuilder()
    builder.set_spout("numbers", UpTo(every))
    builder.set_bolt("sink", sink).shuffle_grouping("numbers")
    return builder.create_topology()
