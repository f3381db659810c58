"""Spouts whose rows Spark reads itself: on real Spark, with what fails and what kills the driver."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

pytestmark = [pytest.mark.integration, pytest.mark.spark]

ROWS, FILES = 2000, 5

_RUN = """
import collections, json, os, signal, sys, threading, time
from pathlib import Path
from storm_on_spark import *
from storm_on_spark.connectors.file_spout import FileSpout
from storm_on_spark.connectors.retry import RetryBackoff

folder, partitions, die_at = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])

class Count(BaseBasicBolt):
    def prepare(self, conf, context):
        self.seen = collections.Counter()
        self.tried = collections.Counter()
    def execute(self, tup, collector):
        number = int(tup["line"])
        if number % 100 == 9:
            raise FailedException("poison")
        if number % 100 == 7:
            self.tried[number] += 1
            if self.tried[number] < 2:
                # Kept although the tuple fails: only an exception of another kind takes the state back.
                raise FailedException("not yet")
        self.seen[number] += 1
        collector.emit([number, self.seen[number]])
    def declare_output_fields(self, declarer):
        declarer.declare(Fields("number", "times"))

class Total(BaseBasicBolt):
    def prepare(self, conf, context):
        self.seen, self.dead = {}, []
    def execute(self, tup, collector):
        if tup.source_stream == "dead":
            self.dead.append((int(tup["row"]["value"]), tup["failures"]))
        else:
            self.seen[tup["number"]] = tup["times"]
        if len(self.seen) >= die_at and die_at:
            os.kill(DRIVER, signal.SIGKILL)
        (folder / "total.new").write_text(json.dumps([self.seen, sorted(self.dead)]))
        (folder / "total.new").rename(folder / "total.json")

builder = TopologyBuilder()
retry = RetryBackoff(initial_delay_ms=1, delay_period_ms=1, max_retries=1)
builder.set_spout("lines", FileSpout(folder / "in", max_files_per_batch=1, retry=retry, dead_letter_stream="dead"))
builder.set_bolt("count", Count(), 2).fields_grouping("lines", Fields("line"))
builder.set_bolt("total", Total()).global_grouping("count").global_grouping("lines", "dead")
DRIVER = os.getpid()
with LocalCluster() as cluster:
    conf = {"topology.partitions": partitions, "topology.checkpoint.dir": str(folder / "checkpoint")}
    cluster.submit_topology("files", conf, builder.create_topology())
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        info = cluster.get_topology_info("files")
        found = json.loads((folder / "total.json").read_text()) if (folder / "total.json").exists() else [{}, []]
        if info.error or (len(found[0]) + len(found[1]) == int(sys.argv[4]) and info.pending == 0):
            break
        time.sleep(0.05)
    print(json.dumps({"error": info.error, "pending": info.pending, "status": info.status}))
"""


def _run(folder: Path, partitions: int, die_at: int) -> subprocess.CompletedProcess[str]:
    script = folder / "run.py"
    script.write_text(textwrap.dedent(_RUN))
    command = [sys.executable, str(script), str(folder), str(partitions), str(die_at), str(ROWS)]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=120, env={**os.environ})


@pytest.mark.parametrize("partitions", [1, 2])
def test_rows_that_fail_are_retried_alone_and_nothing_is_lost_when_the_driver_is_killed(
    tmp_path: Path, partitions: int
) -> None:
    source = tmp_path / "in"
    source.mkdir()
    per = ROWS // FILES
    for number in range(FILES):
        lines = (str(row) for row in range(number * per, (number + 1) * per))
        path = source / f"{number}.txt"
        path.write_text("\n".join(lines) + "\n")
        os.utime(path, (time.time() - 100 + number,) * 2)
    assert _run(tmp_path, partitions, die_at=2 * per).returncode == -signal.SIGKILL, "the driver was to be killed"
    ended = _run(tmp_path, partitions, die_at=0)
    told = json.loads(ended.stdout.splitlines()[-1])
    assert told == {"error": None, "pending": 0, "status": "ACTIVE"}
    seen, dead = json.loads((tmp_path / "total.json").read_text())
    poison = [row for row in range(ROWS) if row % 100 == 9]
    assert sorted(row for row, _ in dead) == poison, "given up, each once"
    assert {failures for _, failures in dead} == {2}
    assert {int(row): times for row, times in seen.items()} == {row: 1 for row in range(ROWS) if row not in poison}
