"""Supervisors, their hosts and drivers die or are paused. The drivers have no Spark: they write to their checkpoint."""

from __future__ import annotations

import os
import shutil
import signal
import time

from lab.failover.cluster import Cluster
from lab.failover.writes import writes
from lab.suite.processes import wait_for
from storm_on_spark.testing.simulated.process import DaemonProcess


def _begin(cluster: Cluster, supervisors: int, topologies: int) -> list[str]:
    for name in "ab":
        cluster.nimbus(name)
    for number in range(1, supervisors + 1):
        cluster.supervisor(f"s{number}")
    cluster.leader()
    wait_for(lambda: len(cluster.names("supervisors")) == supervisors, "the supervisors are up")
    client = cluster.client()
    ids = [cluster.submit(client, f"t{number}") for number in range(1, topologies + 1)]
    for topology_id in ids:
        cluster.watch(topology_id)
    cluster.expect_progress()
    return ids


def host_of(cluster: Cluster, topology_id: str) -> DaemonProcess:
    """Returns the supervisor that a topology is assigned to."""
    supervisor = (cluster.node("assignments", topology_id) or {}).get("supervisor_id")
    return next(daemon for daemon in cluster.supervisors if daemon.exit_code is None and daemon.name == supervisor)


def owner_of(cluster: Cluster, topology_id: str) -> int:
    """Returns the process id of the driver that owns a topology."""
    owner = wait_for(lambda: cluster.node("owners", topology_id), "it has an owner")
    assert owner is not None
    return int(owner["pid"])


def supervisor(cluster: Cluster, times: int) -> None:
    """Supervisors die alone."""
    ids = _begin(cluster, 2, 2)
    for _ in range(min(times, 3)):
        kill_supervisor(cluster, ids[0])
    cluster.expect_untouched()


def kill_supervisor(cluster: Cluster, topology_id: str) -> None:
    """SIGKILL of a topology's supervisor alone: its drivers run on, and it finds them again."""
    victim, driver = host_of(cluster, topology_id), owner_of(cluster, topology_id)
    victim.kill()
    wait_for(lambda: victim.name not in cluster.names("supervisors"), "its node has expired")
    cluster.expect_progress()
    _back(cluster, victim)
    proof = f"exit code {victim.exit_code}; driver {driver} went on for longer than the supervisor's session"
    cluster.injected("SIGKILL of a supervisor", proof)


def _back(cluster: Cluster, dead: DaemonProcess) -> None:
    """Starts a supervisor again, and waits until it takes part."""
    again = cluster.again(dead)
    cluster.expect(again.name == dead.name, "it came back as another")


def host(cluster: Cluster, times: int) -> None:
    """SIGKILL of a supervisor and all its drivers at once; other topologies are left alone."""
    ids = _begin(cluster, 2, 2)
    cluster.supervisor("s3")
    wait_for(lambda: len(cluster.names("supervisors")) == 3, "three supervisors")
    for _ in range(times):
        host = host_of(cluster, ids[0])
        others = [each for each in ids if host_of(cluster, each) is not host]
        before = {each: cluster.stat(f"{cluster.root}/assignments/{each}") for each in others}
        [last] = cluster.writers("t1")[-1:]
        at = cluster.kill_host(host)
        pid = cluster.wait_until_writing("t1", but=last)
        began = next(when for who, when in writes(cluster.checkpoint("t1")) if who == pid) / 1e9
        # Both of the machine's clocks, read at once.
        cluster.measured("host", began - (at + time.monotonic() - time.time()))
        proof = f"{host.folder.name} is gone; driver {pid} of t1 took over from {last}"
        cluster.injected("SIGKILL of a host's processes", proof)
        for each in others:
            now = cluster.stat(f"{cluster.root}/assignments/{each}")
            cluster.expect(now == before[each], f"{each}, on another host, was assigned again")
        cluster.expect_progress()
        return_host(cluster, host)


def return_host(cluster: Cluster, dead: DaemonProcess) -> None:
    """Starts the supervisor of a host that died."""
    # A dead spare may have reported that it is ready.
    shutil.rmtree(dead.folder / "local" / "supervisor" / "spares", ignore_errors=True)
    _back(cluster, dead)


def driver(cluster: Cluster, times: int) -> None:
    """SIGKILL of a driver; and SIGSTOP of one beyond its session, then SIGCONT."""
    ids = _begin(cluster, 2, 2)
    for _ in range(2):
        pid = cluster.wait_until_writing("t1")
        os.kill(pid, signal.SIGKILL)
        again = cluster.wait_until_writing("t1", but=pid)
        cluster.injected("SIGKILL of a driver", f"driver {again} writes after driver {pid}")
    stop_driver(cluster, ids[1])
    for topology_id in ids:
        stat = cluster.stat(f"{cluster.root}/assignments/{topology_id}")
        cluster.expect(stat is not None and stat.version == 0, f"{topology_id} was assigned again")


def mute(cluster: Cluster, times: int) -> None:
    """A supervisor whose drivers never start: its topologies go to another one. Running ones stay."""
    launch = {"nimbus.task.launch.secs": 5, "nimbus.task.timeout.secs": 5, "nimbus.monitor.freq.secs": 1}
    for name in "ab":
        cluster.nimbus(name, launch)
    healthy = cluster.supervisor("s1", {"supervisor.slots.ports": [6700]})
    cluster.leader()
    wait_for(lambda: healthy.name in cluster.names("supervisors"), "the supervisor is up")
    cluster.watch(cluster.submit(cluster.client(), "steady-0"))
    cluster.expect_progress()
    dumb = cluster.supervisor("s2", driver="lab.failover.mute")
    wait_for(lambda: dumb.name in cluster.names("supervisors"), "the other supervisor is up")
    topology_id = cluster.submit(cluster.client(), "moved")
    wait_for(lambda: cluster.node("assignments", topology_id), "it is assigned")
    cluster.expect(host_of(cluster, topology_id) is dumb, "it is not assigned where nothing starts")
    began = time.time()
    time.sleep(2 * launch["nimbus.task.launch.secs"])
    cluster.expect(host_of(cluster, topology_id) is dumb, "it was moved to nowhere")
    other = cluster.supervisor("s3")
    pid = cluster.wait_until_writing("moved")
    cluster.expect(host_of(cluster, topology_id) is other, "it runs where nothing starts")
    proof = f"driver {pid} runs it on another supervisor, {time.time() - began:.1f} s after it was assigned"
    cluster.injected("a supervisor whose drivers never start", proof)
    cluster.expect_untouched()


def stop_driver(cluster: Cluster, topology_id: str) -> None:
    """SIGSTOP of a topology's driver beyond its session, then SIGCONT: it continues."""
    pid, path = owner_of(cluster, topology_id), f"{cluster.root}/owners/{topology_id}"
    before = cluster.stat(path)
    os.kill(pid, signal.SIGSTOP)
    wait_for(lambda: cluster.stat(path) is None, "its ownership has expired")
    os.kill(pid, signal.SIGCONT)
    after = wait_for(lambda: cluster.stat(path), "its ownership again")
    cluster.expect_progress()
    assert before is not None
    assert after is not None
    owner = owner_of(cluster, topology_id)
    cluster.expect(owner == pid, f"driver {owner} owns {topology_id}, not {pid}")
    proof = f"owned under session {before.ephemeralOwner:x}, then under {after.ephemeralOwner:x}"
    cluster.injected("SIGSTOP of a driver beyond its session, then SIGCONT", proof)
