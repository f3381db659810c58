"""ZooKeeper servers die: one of three, then a second one, and come back."""

from __future__ import annotations

import itertools
import shutil
import time
from collections.abc import Sequence

from lab.failover.cluster import Cluster
from lab.failover.figures import SESSION_SECS
from lab.failover.reads import Reads
from lab.failover.scenarios.leaders import running
from lab.failover.writes import writes
from lab.suite.processes import wait_for
from storm_on_spark.cluster.errors import UnavailableError


def one(cluster: Cluster, times: int) -> None:
    """The server that leads the others dies; an empty one comes in its place."""
    running(cluster)
    replace_server(cluster)
    cluster.expect_untouched()


def replace_server(cluster: Cluster) -> None:
    """SIGKILL of the server that leads the others; its clients go to another. An empty one comes in its place."""
    with Reads(lambda: [nimbus.name for nimbus in cluster.nimbuses if nimbus.answers]) as reads:
        server = cluster.ensemble.leader
        assert server is not None
        server.kill()
        wait_for(lambda: cluster.ensemble.leader is not None, "the others elect another")
        leader = cluster.leader()
        topology_id = cluster.submit(cluster.client(), "meanwhile")
        cluster.expect_progress()
        shutil.rmtree(server.data_dir / "version-2")
        server.start()
        wait_for(lambda: server.mode == "follower", "the new server follows")
    proof = f"{leader.name} leads; {topology_id} was taken in with two servers; the new one follows"
    cluster.injected("SIGKILL of the leading ZooKeeper server; an empty one takes its place", proof)
    cluster.expect(not reads.unanswered, f"{len(reads.unanswered)} reads were not answered")
    cluster.kill_topology(cluster.client(), topology_id)


def two(cluster: Cluster, times: int) -> None:
    """Two of three die."""
    running(cluster)
    lose_quorum(cluster, (0, 1))
    cluster.expect_untouched()
    _expect_no_pause(cluster)


def lose_quorum(cluster: Cluster, which: Sequence[int]) -> None:
    """SIGKILL of two servers, for longer than a session. Topologies keep running; answers are marked as stale."""
    victims = [cluster.ensemble.servers[number] for number in which]
    there = set(cluster.names("storms"))
    with Reads(lambda: [nimbus.name for nimbus in cluster.nimbuses if nimbus.answers]) as reads:
        began = time.time()
        for server in victims:
            server.kill()
        client = cluster.client(retries=1)
        wait_for(lambda: client.cluster()["stale"], "reads are marked stale")
        while time.time() < began + 2 * SESSION_SECS:
            cluster.expect_progress()
        rows = client.topologies()
        cluster.expect({row["id"] for row in rows} == there, f"the topologies that are shown are {rows}")
        try:
            client.deactivate(next(iter(cluster.acknowledged.values())))
            cluster.expect(False, "a change was accepted without a quorum")
        except UnavailableError as error:
            refusal = str(error)
        stale = sum(read.stale for read in reads.done)
        restarted = time.time()
        for server in victims:
            server.start(wait=False)
        cluster.ensemble.wait_ready(60)
        leader = cluster.leader()
        wait_for(lambda: not client.cluster()["stale"], "reads are up to date again")
        recovered = time.time() - restarted
    proof = f"{stale} reads answered as stale; a change refused: {refusal[:80]}; {leader.name} leads again"
    cluster.injected(
        "SIGKILL of two of three ZooKeeper servers", f"{proof}; up to date {recovered:.1f} s after their start"
    )
    cluster.expect(not reads.unanswered, f"{len(reads.unanswered)} reads were not answered")
    cluster.expect(stale, "no read was stale")
    topology_id = cluster.submit(cluster.client(), "afterwards")
    cluster.kill_topology(cluster.client(), topology_id)


def _expect_no_pause(cluster: Cluster) -> None:
    """Records a problem if one of the topologies stopped at any time."""
    for topology_id in cluster.watched:
        name = cluster.acknowledged[topology_id]
        times_ns = [at for _, at in writes(cluster.checkpoint(name))]
        longest = max((after - before) / 1e9 for before, after in itertools.pairwise(times_ns))
        cluster.expect(longest < SESSION_SECS, f"{name} stood still for {longest:.1f} s")
