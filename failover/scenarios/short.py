"""The form that `make test` runs."""

from __future__ import annotations

import time

from failover.cluster import Cluster, wait_for
from failover.scenarios.leaders import expect_untouched, stopped


def story(cluster: Cluster, times: int) -> None:
    """A leader sleeps in the middle of a submission and wakes up, the next one is killed, then a ZooKeeper server."""
    stopped(cluster, times)
    ids = sorted(cluster.acknowledged)
    leader, epoch = cluster.leader(), cluster.epoch()
    at = leader.kill()
    successor = cluster.leader(epoch=epoch)
    cluster.measured("leader", time.time() - at)
    cluster.injected("SIGKILL of the leader", f"exit code {leader.exit_code}, {successor.name} leads")
    server = cluster.ensemble.leader
    assert server is not None
    server.kill()
    wait_for(lambda: cluster.ensemble.leader is not None, "the other servers elect another")
    topology_id = cluster.submit(cluster.client(), "meanwhile")
    cluster.injected("SIGKILL of the leading ZooKeeper server", f"{topology_id} was taken in")
    server.start()
    expect_untouched(cluster, ids)
