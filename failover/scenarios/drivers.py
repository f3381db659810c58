"""Supervisors, their hosts and drivers die or sleep. The drivers have no Spark: they write to their checkpoint."""

from __future__ import annotations

import os
import signal
import time

from failover.cluster import Cluster, wait_for
from failover.driver import writes
from failover.scenarios.leaders import expect_untouched


def _begin(cluster: Cluster, supervisors: int, topologies: int) -> list[str]:
    for name in "ab":
        cluster.nimbus(name)
    for number in range(1, supervisors + 1):
        cluster.supervisor(f"s{number}")
    cluster.leader()
    wait_for(lambda: len(cluster.names("supervisors")) == supervisors, "the supervisors are up")
    client = cluster.client()
    ids = [cluster.submit(client, f"t{number}") for number in range(1, topologies + 1)]
    for number in range(1, topologies + 1):
        cluster.wait_until_writing(f"t{number}")
    return ids


def host_of(cluster: Cluster, topology_id: str) -> str:
    """Returns the name of the supervisor that a topology is assigned to."""
    supervisor = (cluster.node("assignments", topology_id) or {}).get("supervisor_id")
    return next(
        daemon.folder.name for daemon in cluster.supervisors if daemon.exit_code is None and daemon.name == supervisor
    )


def supervisor(cluster: Cluster, times: int) -> None:
    """SIGKILL of a supervisor's process alone: its drivers run on, and it finds them again."""
    ids = _begin(cluster, 2, 2)
    for _ in range(min(times, 3)):
        victim = next(each for each in reversed(cluster.supervisors) if each.folder.name == host_of(cluster, ids[0]))
        name = victim.folder.name
        victim.kill()
        wait_for(lambda: victim.name not in cluster.names("supervisors"), "its node has expired")  # noqa: B023
        driver = cluster.wait_until_writing("t1")
        cluster.supervisors.remove(victim)
        again = cluster.supervisor(name)
        cluster.expect(again.name == victim.name, "it came back as another")
        wait_for(lambda: again.name in cluster.names("supervisors"), "it is back")  # noqa: B023
        proof = f"exit code {victim.exit_code}; driver {driver} went on for longer than the supervisor's session"
        cluster.injected("SIGKILL of a supervisor", proof)
    expect_untouched(cluster, ids)


def host(cluster: Cluster, times: int) -> None:
    """SIGKILL of a supervisor and all its drivers at once; other topologies are left alone."""
    ids = _begin(cluster, 2, 2)
    for name in ("s3",):
        cluster.supervisor(name)
    wait_for(lambda: len(cluster.names("supervisors")) == 3, "three supervisors")
    for _ in range(times):
        name = host_of(cluster, ids[0])
        others = [each for each in ids if host_of(cluster, each) != name]
        before = {each: cluster.stat(f"{cluster.root}/assignments/{each}") for each in others}
        [last] = cluster.writers("t1")[-1:]
        at = cluster.kill_host(name)
        pid = cluster.wait_until_writing("t1", but=last)
        began = next(when for who, when in writes(cluster.checkpoint("t1")) if who == pid) / 1e9
        # Both of the machine's clocks, read at once.
        cluster.measured("host", began - (at + time.monotonic() - time.time()))
        cluster.injected("SIGKILL of a host's processes", f"{name} is gone; driver {pid} of t1 took over from {last}")
        for each in others:
            now = cluster.stat(f"{cluster.root}/assignments/{each}")
            cluster.expect(now == before[each], f"{each}, on another host, was assigned again")
        for number in (1, 2):
            cluster.wait_until_writing(f"t{number}")
        cluster.supervisors = [each for each in cluster.supervisors if each.folder.name != name]
        daemon = cluster.supervisor(name)
        wait_for(lambda: daemon.name in cluster.names("supervisors"), "the host is back")  # noqa: B023


def driver(cluster: Cluster, times: int) -> None:
    """SIGKILL of a driver; and SIGSTOP of one beyond its session, then SIGCONT."""
    ids = _begin(cluster, 2, 2)
    for _ in range(2):
        pid = cluster.wait_until_writing("t1")
        os.kill(pid, signal.SIGKILL)
        again = cluster.wait_until_writing("t1", but=pid)
        cluster.injected("SIGKILL of a driver", f"driver {again} writes after driver {pid}")
    pid = cluster.wait_until_writing("t2")
    path = f"{cluster.root}/owners/{ids[1]}"
    before = cluster.stat(path)
    os.kill(pid, signal.SIGSTOP)
    wait_for(lambda: cluster.stat(path) is None, "its ownership has expired")
    os.kill(pid, signal.SIGCONT)
    after = wait_for(lambda: cluster.stat(path), "its ownership again")
    cluster.wait_until_writing("t2")
    assert before is not None
    assert after is not None
    owner = (cluster.node("owners", ids[1]) or {}).get("pid")
    cluster.expect(owner == pid, f"driver {owner} owns t2, not {pid}")
    proof = f"owned under session {before.ephemeralOwner:x}, then under {after.ephemeralOwner:x}"
    cluster.injected("SIGSTOP of a driver beyond its session, then SIGCONT", proof)
    for topology_id in ids:
        stat = cluster.stat(f"{cluster.root}/assignments/{topology_id}")
        cluster.expect(stat is not None and stat.version == 0, f"{topology_id} was assigned again")
