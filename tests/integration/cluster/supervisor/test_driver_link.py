"""A driver's link to a real ZooKeeper."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hand_written import HandWritten, wait_until

from storm_on_spark.cluster.driver.link import ClusterLink
from storm_on_spark.cluster.paths import ASSIGNMENTS, CHECKPOINTS
from storm_on_spark.cluster.records import Assignment, CheckpointInfo
from storm_on_spark.cluster.security.keyring import Keyring
from storm_on_spark.cluster.security.tokens import Tokens
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
    wait_until(lambda: link.problem, "the link sees that the assignment can't be read")
    assert cluster.state.get(CheckpointInfo, CHECKPOINTS, ID) is None
    cluster.session.client.set(path, found[0])
    wait_until(lambda: cluster.state.get(CheckpointInfo, CHECKPOINTS, ID), "the state is known")
    assert link.released is None
    assert link.lost is None


def test_an_assignment_that_changes_ends_the_driver_in_order(cluster: HandWritten, link: ClusterLink) -> None:
    link.watch(lambda epoch: None)
    link.say_state(INFO)
    wait_until(lambda: cluster.state.get(CheckpointInfo, CHECKPOINTS, ID), "the state is known")
    cluster.assign(ID, "s2")
    wait_until(lambda: link.released == "its assignment has changed", "the driver is told")
    assert link.lost is None


def test_an_older_assignment_that_somebody_writes_again_does_not_end_the_driver(cluster: HandWritten) -> None:
    keyring, path = Keyring(Tokens(("0123456789abcdef",))), cluster.session.paths.of(ASSIGNMENTS, ID)

    def signed() -> tuple[Assignment, bytes]:
        assignment = cluster.assign(ID, "s1")
        data = keyring.encode(assignment, path, keyring.stamp(1))
        cluster.session.client.set(path, data)
        return assignment, data

    (_, old), (mine, new) = signed(), signed()
    link = ClusterLink(cluster.session.settings, mine, 0, keyring)
    link.connect(lambda: False)
    try:
        link.own(lambda: False)
        link.watch(lambda epoch: None)
        cluster.session.client.set(path, old)
        wait_until(lambda: "older than one that was there before" in link.problem, "the driver sees that")
        assert link.released is None
        cluster.session.client.set(path, new)
        wait_until(lambda: not link.problem, "the driver reads its assignment again")
        assert (link.released, link.lost) == (None, None)
        signed()
        wait_until(lambda: link.released == "its assignment has changed", "a newer one counts")
    finally:
        link.close()
