"""Code in storage that all Nimbuses share: a Delta table, HDFS. The storage fails, and leaders die meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from typing import Any

from lab.failover.cluster import Cluster
from lab.failover.figures import SESSION_SECS
from lab.failover.scenarios.submissions import broken, expect_refusal, kill_leader_at
from lab.suite.processes import wait_for
from lab.suite.scenario import Skipped
from storm_on_spark.cluster.code.distributor import make_distributor
from storm_on_spark.testing.servers.hdfs import HdfsMissingError, HdfsServer

_LEFT = "left-behind-99-1700000000"
_LEAST_AGE_SECS = 2
ONE_COPY = {"topology.min.replication.count": 1}
"""The storage makes copies, or doesn't."""
RUNBOOK = {"topology.min.replication.count": 2, "topology.max.replication.wait.time.sec": -1}
"""As the runbook recommends for three Nimbuses."""


def delta(cluster: Cluster, times: int) -> None:
    """A Delta table; for a while there is a file in place of its folder."""
    table = cluster.folder / "table"
    conf = {"storm.codedistributor.class": "delta", "storm.codedistributor.location": str(table)}
    _play(cluster, conf, "the Delta table with the code is gone", lambda: broken(table), RUNBOOK)


def hdfs(cluster: Cluster, times: int) -> None:
    """HDFS; for a while it hangs."""
    server = HdfsServer(cluster.folder / "hdfs")
    try:
        server.start()
    except HdfsMissingError as error:
        raise Skipped(str(error)) from error
    cluster.cleanup.callback(server.close)
    conf = {
        "storm.codedistributor.class": "hdfs",
        "storm.codedistributor.location": f"{server.uri}/storm/code",
        "spark.hadoop.dfs.replication": "2",
        "spark.hadoop.ipc.client.rpc-timeout.ms": "1000",
        "spark.hadoop.dfs.client.retry.max.attempts": "1",
    }

    @contextmanager
    def hanging() -> Iterator[None]:
        server.pause()
        try:
            yield
        finally:
            server.resume()

    _play(cluster, conf, "HDFS hangs", hanging)


def _play(
    cluster: Cluster,
    shared: Mapping[str, Any],
    fault: str,
    failing: Callable[[], AbstractContextManager[None]],
    copies: Mapping[str, Any] = ONE_COPY,
) -> None:
    conf = {**shared, "nimbus.inbox.jar.expiration.secs": _LEAST_AGE_SECS}
    for name in "ab":
        cluster.nimbus(name, conf)
    cluster.supervisor("s1", conf)
    cluster.leader()
    cluster.watch(cluster.submit(cluster.client(), "steady-0", copies))
    cluster.expect_progress()
    with ExitStack() as stack:
        storage = stack.enter_context(closing(make_distributor(shared)))
        storage.upload(cluster.packed("left"), _LEFT)
        cluster.expect(_LEFT in storage.stored(), "what nobody knows of is not in the storage")
        time.sleep(_LEAST_AGE_SECS)
        _lose_storage(cluster, fault, failing)
        wait_for(lambda: _LEFT not in storage.stored(), "a new leader has removed what nobody knows of", pause=0.1)
        cluster.injected("code that nobody knows of", "the next leader removed it")
        for step in ("uploaded", "replicating"):
            kill_leader_at(cluster, step, ONE_COPY)
        wait_for(lambda: set(storage.stored()) == set(cluster.watched), "no other code is in the storage", pause=0.1)
    cluster.expect_untouched()


def _lose_storage(cluster: Cluster, fault: str, failing: Callable[[], AbstractContextManager[None]]) -> None:
    """The storage fails; then the leader dies, too. Nobody leads until the storage is back."""
    with failing():
        expect_refusal(cluster, fault)
        leader, epoch = cluster.leader(), cluster.epoch()
        leader.kill()
        began = time.time()
        while time.time() < began + 2 * SESSION_SECS:
            cluster.expect_progress()
        cluster.expect(cluster.epoch() == epoch, "one leads that can't know whether it has the code")
        rows = cluster.client(*(nimbus for nimbus in cluster.nimbuses if nimbus is not leader)).topologies()
        cluster.expect({row["id"] for row in rows} == set(cluster.watched), f"the topologies that are shown are {rows}")
    back = time.time()
    successor = cluster.leader(epoch=epoch)
    took = time.time() - back
    proof = f"nobody led without the storage; {successor.name} led {took:.1f} s after it was back"
    cluster.injected(f"{fault}, and the leader is killed", proof)
    cluster.again(leader)
