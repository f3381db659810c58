"""The form that `make test` runs."""

from __future__ import annotations

from lab.failover.cluster import Cluster
from lab.failover.scenarios.leaders import kill_leader, running, stop_leader
from lab.suite.processes import wait_for


def story(cluster: Cluster, times: int) -> None:
    """A leader is paused in the middle of a submission and resumes, the next one is killed, then a ZooKeeper server."""
    running(cluster, topologies=1, slots=3)
    stop_leader(cluster)
    kill_leader(cluster, "leader")
    server = cluster.ensemble.leader
    assert server is not None
    server.kill()
    wait_for(lambda: cluster.ensemble.leader is not None, "the other servers elect another")
    topology_id = cluster.submit(cluster.client(), "meanwhile")
    cluster.injected("SIGKILL of the leading ZooKeeper server", f"{topology_id} was taken in")
    server.start()
    cluster.expect_untouched()
