"""Leadership without an election, for tests of what is written under it."""

from __future__ import annotations

from storm_on_spark.cluster.paths import LEADER_INFO, LEADER_LOCK
from storm_on_spark.cluster.records import LeaderInfo, encode
from storm_on_spark.cluster.state import Fence
from storm_on_spark.cluster.zookeeper import ZooKeeperSession


def lead(session: ZooKeeperSession, address: str = "localhost:6627") -> Fence:
    """Takes leadership by hand, whoever has it."""
    session.ensure_folders()
    path, stat = session.client.create(
        session.paths.of(LEADER_LOCK, "n-"), address.encode(), ephemeral=True, sequence=True, include_data=True
    )
    info = LeaderInfo(address=address, epoch=stat.czxid, since=0.0)
    version = session.client.set(session.paths.of(LEADER_INFO), encode(info)).version
    return Fence(stat.czxid, path, version)
