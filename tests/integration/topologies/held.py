"""A topology whose bolt fails every line while a file is there, beside one that goes on."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from storm_on_spark import BaseBasicBolt, FailedException, Topology, TopologyBuilder
from storm_on_spark.connectors.files import FileSpout
from storm_on_spark.connectors.sources import RateSpout, RetryBackoff

RETRY = RetryBackoff(initial_delay_ms=50, delay_period_ms=50, max_delay_ms=200)
PENDING = 150


class Gated(BaseBasicBolt):
    """Counts lines, and fails them while the database is said to be down; writes down which it has seen."""

    def prepare(self, conf, context):
        self.done, self.tried = Counter(), set()
        self.folder = Path(conf["test.folder"])

    def execute(self, tup, collector):
        self.tried.add(int(tup["line"]))
        down = (self.folder / "down").exists()
        if not down:
            self.done[int(tup["line"])] += 1
        write(self.folder / "lines", [len(self.tried), self.done])
        if down:
            raise FailedException("the database is down")


class Last(BaseBasicBolt):
    """Writes down the last number."""

    def prepare(self, conf, context):
        self.out = Path(conf["test.folder"]) / "numbers"

    def execute(self, tup, collector):
        write(self.out, tup["value"])


def write(path: Path, what: object) -> None:
    new = path.with_suffix(".new")
    new.write_text(json.dumps(what))
    new.rename(path)


def held(folder: str) -> Topology:
    builder = TopologyBuilder()
    lines = FileSpout(folder, max_files_per_batch=1, retry=RETRY)
    builder.set_spout("lines", lines).set_max_spout_pending(PENDING)
    builder.set_spout("numbers", RateSpout(100, partitions=1))
    builder.set_bolt("gated", Gated()).global_grouping("lines")
    builder.set_bolt("last", Last()).global_grouping("numbers")
    return builder.create_topology()
