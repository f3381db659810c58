"""A word count whose spout records the time of its first ack, for `storm-spark run`."""

from __future__ import annotations

import collections
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from storm_on_spark import BaseBasicBolt, BaseRichSpout, Fields, Topology, TopologyBuilder

FILE = "first.ack.file"
"""Configuration key: the file that gets the moment, in seconds of the monotonic clock."""

_LINES = ("to be or not to be", "that is the question")


class Lines(BaseRichSpout):
    def open(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        self._collector = collector
        self._file = conf[FILE]
        self._emitted = 0

    def next_tuple(self) -> None:
        if self._emitted < len(_LINES):
            self._collector.emit([_LINES[self._emitted]], self._emitted)
            self._emitted += 1

    def ack(self, message_id: Any) -> None:
        if not Path(self._file).exists():
            Path(self._file).write_text(str(time.monotonic()))

    def exhausted(self) -> bool:
        return self._emitted == len(_LINES)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("line"))


class Split(BaseBasicBolt):
    def execute(self, tup: Any, collector: Any) -> None:
        for word in tup["line"].split():
            collector.emit([word])

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("word"))


class Count(BaseBasicBolt):
    def prepare(self, conf: Mapping[str, Any], context: Any) -> None:
        self.counts: collections.Counter[str] = collections.Counter()

    def execute(self, tup: Any, collector: Any) -> None:
        self.counts[tup["word"]] += 1


def build(conf: Mapping[str, Any]) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("lines", Lines())
    builder.set_bolt("split", Split(), 2).shuffle_grouping("lines")
    builder.set_bolt("count", Count(), 2).fields_grouping("split", Fields("word"))
    return builder.create_topology()
