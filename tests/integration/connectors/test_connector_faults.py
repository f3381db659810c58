"""The short form of `make connector-faults`: a driver is killed between Delta's commit and Spark's, behind Kafka."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.slow
def test_from_kafka_to_delta_each_record_is_there_once_when_the_driver_is_killed_between_two_commits():
    done = subprocess.run(
        [sys.executable, "-m", "lab.connectors", "--short", "--json", "--patience", "3"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    [between] = json.loads(done.stdout)["scenarios"]
    [fault] = between["injections"]
    assert "is in the table, and not committed" in fault["proof"]
    figures = between["figures"]
    assert (figures["lost"], figures["duplicates"], figures["wrong_keys"]) == (0, 0, 0)
