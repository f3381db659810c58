"""A topology whose state can be checked from outside: numbers in order, and their sum, noted in a file.

Configuration: `counting.notes`, a folder; `counting.count`, how many numbers (endless by default).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from storm_on_spark import BaseBasicBolt, BaseRichSpout, Fields, Topology, TopologyBuilder


def note(conf: Mapping[str, Any], kind: str, **record: Any) -> None:
    """Appends a line; one write with O_APPEND, so lines of different processes don't mix."""
    descriptor = os.open(f"{conf['counting.notes']}/{kind}", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, json.dumps(record).encode() + b"\n")
    finally:
        os.close(descriptor)


class Numbers(BaseRichSpout):
    def open(self, conf, context, collector):
        self.conf, self.collector = conf, collector
        self.next, self.acked, self.failed = 0, 0, 0
        self.noted = False

    def next_tuple(self):
        if not self.noted:  # attributes are restored by now
            self.noted = True
            note(self.conf, "begun", next=self.next, pid=os.getpid())
        if self.next < int(self.conf.get("counting.count", 10**15)):
            self.collector.emit([self.next], message_id=self.next)
            self.next += 1

    def ack(self, message_id):
        self.acked += 1

    def fail(self, message_id):
        self.failed += 1

    def exhausted(self):
        return self.next >= int(self.conf.get("counting.count", 10**15))

    def close(self):
        note(self.conf, "closed", next=self.next, acked=self.acked, failed=self.failed)

    def __getstate__(self):
        return {key: value for key, value in self.__dict__.items() if key not in ("collector", "conf", "noted")}

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("n"))


class Sum(BaseBasicBolt):
    def prepare(self, conf, context):
        self.conf = dict(conf)
        self.seen = self.total = 0

    def execute(self, tup, collector):
        self.seen += 1
        self.total += tup["n"]
        if self.seen % 100 == 0:
            note(self.conf, "progress", seen=self.seen, total=self.total)


def build(conf: Mapping[str, Any]) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers()).set_max_spout_pending(200)
    builder.set_bolt("sum", Sum()).global_grouping("numbers")
    return builder.create_topology()
