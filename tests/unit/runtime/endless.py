"""A spout that never ends."""

from __future__ import annotations

from storm_on_spark.api import BaseRichSpout, Fields


class Endless(BaseRichSpout):
    """Emits as often as it is called, `width` bytes a tuple; counts what is done to it."""

    def __init__(self, width: int = 1, limit: int = 1 << 30):
        self.width, self.limit = width, limit

    def open(self, conf, context, collector):
        self.collector, self.next, self.calls = collector, 0, []

    def next_tuple(self):
        if self.next < self.limit:
            self.collector.emit(["x" * self.width], message_id=self.next)
            self.next += 1
            if self.next == 13:
                self.collector.report_error(ValueError("thirteen"))

    def activate(self):
        self.calls.append("activate")

    def deactivate(self):
        self.calls.append("deactivate")

    def close(self):
        self.calls.append("close")

    def exhausted(self):
        return self.next >= self.limit

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("text"))
