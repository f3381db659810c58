"""A topology whose spout and bolt note how long the token is that they were given, and the level of a logger.

Configuration: `credentials.notes`, a folder.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Mapping
from typing import Any

from storm_on_spark import BaseRichBolt, BaseRichSpout, Fields, ICredentialsListener, Topology, TopologyBuilder


class Noting(ICredentialsListener):
    """Keeps what it is given as people do who did not read that they should keep the mapping."""

    def set_credentials(self, credentials):
        self.token, self.copied, self.credentials = credentials.get("token", ""), dict(credentials), credentials

    def begin(self, conf, kind):
        self.folder, self.kind = conf["credentials.notes"], kind
        self.at_start, self.noted = len(self.token), None

    def note(self):
        """Appends a line when one of them is another; one write with O_APPEND, so lines of processes don't mix."""
        now = {"token": len(self.token), "level": logging.getLogger("taking").level}
        if self.noted != now:
            self.noted = now
            record = {"start": self.at_start, **now, "pid": os.getpid()}
            descriptor = os.open(f"{self.folder}/{self.kind}", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(descriptor, json.dumps(record).encode() + b"\n")
            finally:
                os.close(descriptor)


class Numbers(BaseRichSpout, Noting):
    def open(self, conf, context, collector):
        self.begin(conf, "spout")
        self.collector, self.next = collector, 0

    def next_tuple(self):
        self.note()
        time.sleep(0.01)
        self.collector.emit([self.next], message_id=self.next)
        self.next += 1

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("n"))


class Take(BaseRichBolt, Noting):
    def prepare(self, conf, context, collector):
        self.begin(conf, "bolt")
        self.collector = collector

    def execute(self, tup):
        self.note()
        self.collector.ack(tup)


def build(conf: Mapping[str, Any]) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers()).set_max_spout_pending(50)
    builder.set_bolt("take", Take()).global_grouping("numbers")
    return builder.create_topology()
