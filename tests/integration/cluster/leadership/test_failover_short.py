"""The short form of `make failover`: a leader that sleeps and wakes up, one that is killed, a ZooKeeper server."""

from __future__ import annotations

import pytest
from processes import short_form


@pytest.mark.slow
def test_a_cluster_survives_a_leader_that_sleeps_one_that_is_killed_and_a_zookeeper_server() -> None:
    # Other tests may have left the machine busy: how quickly a leader comes is measured by `make failover`.
    [story] = short_form("lab.failover", "--patience", "5", seconds=250)
    assert [each["what"].partition(" of ")[0] for each in story["injections"]] == ["SIGSTOP", "SIGKILL", "SIGKILL"]
    assert story["leaderships"] >= 3
    assert "woke up" in story["injections"][0]["proof"]
    assert story["topologies"] == 4
    assert len(story["times"]["leader"]) == 1
