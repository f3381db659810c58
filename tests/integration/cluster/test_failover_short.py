"""The short form of `make failover`: a leader that sleeps and wakes up, one that is killed, a ZooKeeper server."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.slow
def test_a_cluster_survives_a_leader_that_sleeps_one_that_is_killed_and_a_zookeeper_server() -> None:
    done = subprocess.run(
        # Other tests may have left the machine busy: how quickly a leader comes is measured by `make failover`.
        [sys.executable, "-m", "lab.failover", "--short", "--json", "--patience", "5"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    [story] = json.loads(done.stdout)["scenarios"]
    assert [what.partition(" of ")[0] for what, _ in story["injections"]] == ["SIGSTOP", "SIGKILL", "SIGKILL"]
    assert story["leaderships"] >= 3
    assert "woke up" in story["injections"][0][1]
    assert story["topologies"] == 4
    assert len(story["times"]["leader"]) == 1
