"""A driver's link to a real ZooKeeper."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hand_written import HandWritten, wait_until

from storm_on_spark.cluster.driver.link import ClusterLink
from storm_on_spark.cluster.paths import ASSIGNMENTS, CHECKPOINTS
from storm_on_spark.cluster.records import CheckpointInfo
from storm_on_spark.cluster.zookeeper import ZooKeeperServer

ID = "counting-1-1700000000"
INFO = CheckpointInfo(topology_id=ID, location="/checkpoints/counting", identity="query-1", launch=1, host="h")


@pytest.fixture
def cluster(zookeeper: ZooKeeperServer, root: str, tmp_path: Path) -> Iterator[HandWritten]:
    cluster = HandWritten(zookeeper.connect_string, tmp_path, root)
    yield cluster
    cluster.close()


@pytest.fixture
def link(cluster: HandWritten) -> Iterator[ClusterLink]:
    """Owns a topology."""
    found = ClusterLink(cluster.session.settings, cluster.assign(ID, "s1"), 0)
    found.connect(lambda: False)
    found.own(lambda: False)
    yield found
    found.close()


def test_what_is_written_for_another_version_of_the_same_assignment_is_written_in_the_end(
    cluster: HandWritten, link: ClusterLink
) -> None:
    found = cluster.state.get_bytes(ASSIGNMENTS, ID)
    assert found is not None
    path = cluster.session.paths.of(ASSIGNMENTS, ID)
    # The link doesn't watch yet: it learns of this from the refusal.
    cluster.session.client.set(path, found[0])
    cluster.session.client.set(path, b"")
    link.watch(lambda epoch: None)
    link.say_state(INFO)
    wait_until(lambda: link.problem, "the link sees that the assignment can't be read", 20)
    assert cluster.state.get(CheckpointInfo, CHECKPOINTS, ID) is None
    cluster.session.client.set(path, found[0])
    wait_until(lambda: cluster.state.get(CheckpointInfo, CHECKPOINTS, ID), "the state is known", 20)
    assert link.released is None
    assert link.lost is None


def test_an_assignment_that_changes_ends_the_driver_in_order(cluster: HandWritten, link: ClusterLink) -> None:
    link.watch(lambda epoch: None)
    link.say_state(INFO)
    wait_until(lambda: cluster.state.get(CheckpointInfo, CHECKPOINTS, ID), "the state is known", 20)
    cluster.assign(ID, "s2")
    wait_until(lambda: link.released == "its assignment has changed", "the driver is told", 20)
    assert link.lost is None
