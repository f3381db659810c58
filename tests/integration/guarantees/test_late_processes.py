"""A Python process that Spark waits for and that comes too late, as on a busy machine, does not end the topology."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from storm_on_spark.spark.running.failures import reason_of

LATE_SECS = 12
"""Spark waits for ten."""
LATE = f"""
import os, sys, time
for process in os.environ["LATE"].split():
    if any(process in argument for argument in sys.orig_argv):
        try:
            os.mkdir(os.path.join(os.environ["LATE_ONCE"], process))
        except FileExistsError:
            pass
        else:
            time.sleep({LATE_SECS})
"""
TOPOLOGY = """
from storm_on_spark import BaseBasicBolt, Fields, TopologyBuilder
from storm_on_spark.spark.state import read_bolt_state
from storm_on_spark.testing import ListSpout

class Sum(BaseBasicBolt):
    def prepare(self, conf, context):
        self.sum = 0

    def execute(self, tup, collector):
        self.sum += tup["number"]

def build(conf):
    builder = TopologyBuilder()
    builder.set_spout("numbers", ListSpout([[number] for number in range(1000)], Fields("number")))
    builder.set_bolt("sum", Sum()).global_grouping("numbers")
    return builder.create_topology()

def report(spark, checkpoint, info):
    return [{"sum": state["sum"]} for state in read_bolt_state(spark, checkpoint, "sum").values()]
"""


@pytest.mark.slow
def test_the_start_is_tried_again_for_each_of_both_processes(tmp_path: Path) -> None:
    processes = {"python_streaming_source_runner", "transform_with_state_driver_worker"}
    for folder in ("site", "late"):
        (tmp_path / folder).mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(LATE)
    (tmp_path / "summing.py").write_text(TOPOLOGY)
    path = os.pathsep.join([str(tmp_path / "site"), *filter(None, [os.environ.get("PYTHONPATH")])])
    late = {"LATE": " ".join(processes), "LATE_ONCE": str(tmp_path / "late"), "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-m", "storm_on_spark.cli", "run", str(tmp_path / "summing.py"), "--json"],
        cwd=Path(__file__).parents[3],
        env={**os.environ, **late},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert {path.name for path in (tmp_path / "late").iterdir()} == processes
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["acked"], found["failed"], found["result"]) == (1000, 0, [{"sum": sum(range(1000))}])
    assert done.stderr.count("was not ready within 10 s, so the start is tried again") == 2
    assert "end other programs" in done.stderr


def test_the_reason_says_what_to_do() -> None:
    trace = (
        "org.apache.spark.SparkException: Python worker failed to connect back.\n"
        "Caused by: java.net.SocketTimeoutException: Timed out while waiting for the Python worker to connect back\n"
    )
    assert reason_of(trace).startswith("a Python process that Spark needs was not ready within 10 s; this machine")
