"""Nimbuses of two releases in one cluster."""

from __future__ import annotations

import httpx

from lab.failover.cluster import Cluster
from lab.failover.scenarios.leaders import running
from lab.suite.processes import wait_for
from storm_on_spark.api.errors import StormError
from storm_on_spark.testing.simulated.process import DaemonProcess


def mixed(cluster: Cluster, times: int) -> None:
    """Leadership goes to a later release and back, twice: topologies that this release can't read keep running."""
    old = cluster.nimbus("a")
    cluster.leader()
    newer = cluster.nimbus("b", newer=True)
    wait_for(lambda: newer.name in cluster.names("nimbuses"), "the later release takes part")
    running(cluster, nimbuses="", slots=4)
    ids = list(cluster.watched)
    for nimbus in (old, newer):
        wait_for(lambda nimbus=nimbus: _has_all(cluster, nimbus, ids), "it has all code")  # type: ignore[misc]

    epoch = cluster.epoch()
    old.kill()
    _leads(cluster, newer, epoch)
    # Written by the later release, so this one can't read the topology's record.
    client = cluster.client(newer)
    client.deactivate("steady-0")
    client.activate("steady-0")
    old = cluster.again(old)
    cluster.expect((cluster.node("storms", ids[0]) or {}).get("format") == 2, "the record is not of the next format")
    cluster.expect_progress()
    epoch = cluster.epoch()
    newer.kill()
    _leads(cluster, old, epoch)
    # It works, so it had the chance to end topologies that it does not know.
    passing = cluster.submit(cluster.client(old), "passing", {"topology.min.replication.count": 1})
    cluster.wait_until_writing("passing")
    _tells(cluster, old, ids[0])
    proof = f"{old.name} leads, takes {passing} in, names what it can't read and leaves {ids[0]} alone"
    cluster.injected("SIGKILL of the leader, of a later release; one of this release leads", proof)
    cluster.expect_progress()
    cluster.kill_topology(cluster.client(old), passing)

    newer = cluster.again(newer)
    wait_for(lambda: _has_all(cluster, newer, ids), "the later release has all code")
    epoch = cluster.epoch()
    old.kill()
    _leads(cluster, newer, epoch)
    later = cluster.submit(cluster.client(newer), "later", {"topology.min.replication.count": 1})
    wait_for(lambda: cluster.node("assignments", later), "it is assigned")
    old = cluster.again(old)
    epoch = cluster.epoch()
    newer.kill()
    wait_for(lambda: f"can't lead: it lacks the code of {later}" in old.said, "its turn came")
    cluster.expect_progress()
    cluster.expect(cluster.epoch() == epoch, "one leads that can't tell what the code of all topologies is")
    newer = cluster.again(newer)
    _leads(cluster, newer, epoch)
    proof = f"{old.name} did not lead, as only a later release can tell what the code of {later} is; {newer.name} does"
    cluster.injected("SIGKILL of the leader, of a later release; only one of this release is left", proof)
    cluster.expect_untouched()


def _leads(cluster: Cluster, nimbus: DaemonProcess, epoch: int) -> None:
    leader = cluster.leader(epoch=epoch)
    cluster.expect(leader is nimbus, f"{leader.folder.name} leads, not {nimbus.folder.name}")


def _has_all(cluster: Cluster, nimbus: DaemonProcess, ids: list[str]) -> bool:
    return all(nimbus.name in cluster.names("code", topology_id) for topology_id in ids)


def _tells(cluster: Cluster, nimbus: DaemonProcess, topology_id: str) -> None:
    """Records a problem if a Nimbus does not report a record that it can't read."""
    problems = cluster.client(nimbus).cluster()["problems"]
    cluster.expect(any(topology_id in problem for problem in problems), f"{topology_id} is not named: {problems}")
    found = httpx.get(f"http://{nimbus.name}/api/v1/topology/{topology_id}", timeout=10, trust_env=False)
    cluster.expect(found.status_code == 409, f"a page of what can't be read: {found.status_code} {found.text[:200]}")
    try:
        cluster.submit(cluster.client(nimbus, retries=2), "steady-0")
    except StormError as error:
        cluster.expect("steady-0" in str(error), f"the name is refused for another reason: {error}")
    else:
        cluster.expect(False, "a second topology has the name of one that can't be read")
