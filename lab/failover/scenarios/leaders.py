"""Leaders die, are paused, lose their session and are cut off."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import httpx

from lab.failover import history
from lab.failover.cluster import Cluster
from lab.failover.figures import SESSION_SECS
from lab.failover.oracles import examine
from lab.failover.reads import Reads
from lab.suite.processes import wait_for
from storm_on_spark.api.errors import StormError
from storm_on_spark.testing.simulated.process import DaemonProcess

CHOOSY = "storm_on_spark.testing.simulated.choosy:ChoosyDistributor"
PATIENT = {"storm.zookeeper.retry.interval": 3000}
"""For a Nimbus that is paused in the middle of a write: it retries with its next session."""


def running(
    cluster: Cluster, nimbuses: str = "abc", topologies: int = 2, slots: int = 2, *, proxied: bool = False
) -> None:
    """Starts Nimbuses, the first of which leads, a supervisor, and topologies that no fault may disturb.

    Args:
        cluster: in which.
        nimbuses: their names; none if they run already.
        topologies: how many.
        slots: of the supervisor.
        proxied: whether the Nimbuses can be cut off.
    """
    for name in nimbuses:
        cluster.nimbus(name, PATIENT if name == "a" else {}, proxied=proxied)
        if name == nimbuses[0]:
            cluster.leader()
    cluster.supervisor("s1", {"supervisor.slots.ports": list(range(6700, 6700 + slots))})
    cluster.leader()
    everybody = [nimbus.name for nimbus in cluster.nimbuses]
    wait_for(lambda: set(everybody) <= set(cluster.names("nimbuses")), "all Nimbuses take part")
    client = cluster.client()
    for number in range(topologies):
        cluster.watch(cluster.submit(client, f"steady-{number}"))
    cluster.expect_progress()


def killed(cluster: Cluster, times: int) -> None:
    """SIGKILL of the leader, repeatedly; in between a topology is submitted; all Nimbuses are polled all the time."""
    running(cluster)
    with Reads(lambda: [nimbus.name for nimbus in cluster.nimbuses if nimbus.answers]) as reads:
        for number in range(times):
            kill_leader(cluster, "leader")
            _submit_and_measure(cluster, f"passing-{number}")
    cluster.expect_untouched()
    for read in reads.unanswered:
        cluster.expect(False, f"a read of {read.address} was not answered within {read.secs:.2f} s")
    cluster.times["read"] = [read.secs for read in reads.done]


def kill_leader(cluster: Cluster, figure: str) -> None:
    """SIGKILL of the leader; measures the time until there is another."""
    leader, epoch = cluster.leader(), cluster.epoch()
    at = leader.kill()
    successor = cluster.leader(epoch=epoch)
    cluster.measured(figure, time.time() - at)
    cluster.expect_progress()
    cluster.injected("SIGKILL of the leader", f"exit code {leader.exit_code}, {successor.name} leads")
    cluster.again(leader)


def _submit_and_measure(cluster: Cluster, name: str) -> None:
    client = cluster.client()
    folder = cluster.packed(name)
    began = time.time()
    topology_id = cluster.submit(client, name, folder=folder)
    wait_for(lambda: len(cluster.names("code", topology_id)) >= 2, "two copies")
    # By the server's clock: when the second was registered, not when it was noticed.
    stats = [cluster.stat(f"{cluster.root}/code/{topology_id}/{who}") for who in cluster.names("code", topology_id)]
    cluster.measured("replica", sorted(stat.created for stat in stats if stat is not None)[1] - began)
    cluster.kill_topology(client, topology_id)


def stopped(cluster: Cluster, times: int) -> None:
    """The leader is paused for longer than its session, and resumes."""
    running(cluster, topologies=1, slots=3)
    stop_leader(cluster)
    cluster.expect_untouched()


def stop_leader(cluster: Cluster) -> None:
    """SIGSTOP of the leader in the middle of a submission, beyond its session; then it resumes, with its old fence."""
    sleeper, epoch = cluster.leader(), cluster.epoch()
    others = [nimbus for nimbus in cluster.nimbuses if nimbus is not sleeper]
    sleeper.arm("uploaded", "stop")
    asked = cluster.client(sleeper, *others)
    failures: list[BaseException] = []

    def submit() -> None:
        try:
            cluster.submit(asked, "sleepy")
        except StormError as error:
            failures.append(error)

    client = threading.Thread(target=submit, daemon=True)
    client.start()
    wait_for(lambda: _state(sleeper) == "T", "the leader has stopped")
    sleeper.stopped = True
    successor = cluster.leader(but=sleeper, epoch=epoch)
    cluster.submit(cluster.client(*others), "awake")
    cluster.expect_progress()
    cluster.expect(not failures and client.is_alive(), "the client was told something of its submission")
    woken = time.time()
    sleeper.resume()

    def refused() -> bool:
        findings = examine(history.read(server.data_dir for server in cluster.ensemble.servers), cluster.root)
        return any(refusal.time >= woken for refusal in findings.refusals)

    def stood_down() -> bool:
        return sleeper.name in cluster.names("nimbuses")

    # It may learn of its lost session before its write is sent; then there is no write to refuse.
    wait_for(lambda: refused() or stood_down(), "the one that slept is refused by ZooKeeper, or stands down", pause=0.1)
    what = "ZooKeeper refused what the other wrote under its old fence" if refused() else "the other stood down"
    proof = f"{successor.name} leads; {what} when it woke up"
    cluster.injected(f"SIGSTOP of the leader for longer than its session ({SESSION_SECS:.0f} s), then SIGCONT", proof)
    client.join()
    cluster.expect(not failures, f"the client could not submit to the new leader: {failures}")
    wait_for(lambda: sleeper.name in cluster.names("nimbuses"), "it takes part again")
    cluster.expect(cluster.leader() is successor, "leadership moved again")
    for name in ("awake", "sleepy"):
        cluster.wait_until_writing(name)
        cluster.expect(len(cluster.writers(name)) == 1, f"{name} was run by {cluster.writers(name)}")
    for topology_id in set(cluster.acknowledged) - set(cluster.watched):
        cluster.kill_topology(cluster.client(), topology_id)


def _state(daemon: DaemonProcess) -> str:
    return Path(f"/proc/{daemon.pid}/stat").read_text().rpartition(")")[2].split()[0]


def gate(cluster: Cluster, times: int) -> None:
    """The design's scenario: a Nimbus that lacks code never leads."""

    def let_fetch(nimbus: DaemonProcess, *names: str) -> None:
        allowed = nimbus.folder / "local" / "may-fetch"
        allowed.mkdir(parents=True, exist_ok=True)
        for name in names:
            (allowed / name).touch()

    choosy = {"storm.codedistributor.class": CHOOSY, "nimbus.code.sync.freq.secs": 1}
    a = cluster.nimbus("a")
    cluster.leader()
    b, c = (cluster.nimbus(name, choosy) for name in "bc")
    for name in ("s1", "s2"):
        cluster.supervisor(name)
    for nimbus, names in ((b, ("t3", "t4")), (c, ("t1", "t2"))):
        let_fetch(nimbus, *names)
    client = cluster.client()
    ids = [cluster.submit(client, f"t{number}") for number in range(1, 5)]
    for topology_id in ids:
        cluster.watch(topology_id)
    spread = [sorted([a.name, other.name]) for other in (c, c, b, b)]
    found = [cluster.names("code", topology_id) for topology_id in ids]
    cluster.expect(found == spread, f"copies are {found}, not {spread}")
    cluster.expect_progress()
    epoch = cluster.epoch()
    a.kill()
    for nimbus in (b, c):
        wait_for(lambda nimbus=nimbus: "lacks the code of" in nimbus.said, "its turn came")  # type: ignore[misc]
    cluster.expect(cluster.epoch() == epoch, "one that lacks code leads")
    rows = cluster.client(b).nimbuses()
    cluster.expect(all(len(row["missingCode"]) == 2 for row in rows), f"what they lack can't be seen: {rows}")
    proof = f"exit code {a.exit_code}; both others gave their turn up: each lacks two of four topologies"
    cluster.injected("SIGKILL of the only Nimbus that has all code", proof)
    for nimbus in (b, c):
        let_fetch(nimbus, "t1", "t2", "t3", "t4")
    leader = cluster.leader(epoch=epoch)
    here = sorted(path.name for path in (leader.folder / "local/nimbus/code").iterdir() if path.name[0] != ".")
    cluster.expect(here == sorted(ids), f"the leader has the code of {here}")
    cluster.expect_untouched()


def lost_code(cluster: Cluster, times: int) -> None:
    """The only copy of a topology's code is gone: nobody leads until the topology is given up by hand."""
    a = cluster.nimbus("a")
    cluster.leader()
    cluster.supervisor("s1")
    topology_id = cluster.submit(cluster.client(), "alone", {"topology.min.replication.count": 1})
    cluster.wait_until_writing("alone")
    choosy = {"storm.codedistributor.class": CHOOSY, "nimbus.code.sync.freq.secs": 1}
    b = cluster.nimbus("b", choosy)
    wait_for(lambda: b.name in cluster.names("nimbuses"), "it is up")
    epoch = cluster.epoch()
    a.kill()
    cluster.nimbuses.remove(a)
    wait_for(lambda: "lacks the code of" in b.said, "its turn came")
    wait_for(lambda: a.name not in cluster.names("code", topology_id), "nobody has the code")
    rows = cluster.client(b).nimbuses()
    cluster.expect([row["missingCode"] for row in rows] == [[topology_id]], f"what it lacks can't be seen: {rows}")
    cluster.wait_until_writing("alone")
    cluster.expect(cluster.epoch() == epoch, "one that lacks code leads")
    client_id = cluster.zk.client_id
    assert client_id is not None
    cluster.trusted.add(client_id[0])
    cluster.zk.delete(f"{cluster.root}/storms/{topology_id}")
    began = time.time()
    cluster.leader(epoch=epoch)
    took = time.time() - began
    del cluster.acknowledged[topology_id]
    for folder in ("assignments", "code", "owners"):
        wait_for(lambda folder=folder: not cluster.names(folder), f"nothing of it is left in {folder}")  # type: ignore[misc]
    proof = f"nobody led, and everybody said why; given up by hand, {b.name} led after {took:.1f} s"
    cluster.injected("loss of the only copy of a topology's code", proof)


def upgrade(cluster: Cluster, times: int) -> None:
    """Every daemon is restarted in turn, as for a new release; topologies keep running."""
    running(cluster)
    cluster.supervisor("s2")
    with Reads(lambda: [nimbus.name for nimbus in cluster.nimbuses if nimbus.answers]) as reads:
        for daemon in list(cluster.nimbuses):
            daemon.end()
            cluster.expect(daemon.join(), f"{daemon.folder.name} did not end")
            cluster.leader()
            cluster.again(daemon)
        for daemon in list(cluster.supervisors):
            assert daemon.name
            daemon.end()
            cluster.expect(daemon.join(), f"{daemon.folder.name} did not end")
            cluster.supervisors.remove(daemon)
            again = cluster.supervisor(daemon.folder.name)
            cluster.expect(again.name == daemon.name, "it came back as another")
            wait_for(lambda again=again: again.name in cluster.names("supervisors"), "it is back")  # type: ignore[misc]
    cluster.injected("stop and start of every daemon", f"{len(reads.done)} reads were answered meanwhile")
    cluster.expect(not reads.unanswered, f"{len(reads.unanswered)} reads were not answered")
    cluster.expect_untouched()


def partition(cluster: Cluster, times: int) -> None:
    """The leader is cut off from all ZooKeeper servers."""
    running(cluster, proxied=True)
    cut_off_leader(cluster)
    cluster.expect_untouched()


def cut_off_leader(cluster: Cluster) -> None:
    """Cuts the leader off from all ZooKeeper servers; no connection is closed, as when a cable is pulled."""
    cut, epoch = cluster.leader(), cluster.epoch()
    proxies = cluster.proxies[cut.folder.name]
    at = time.time()
    for proxy in proxies:
        proxy.cut()
    successor = cluster.leader(but=cut, epoch=epoch)
    took = time.time() - at
    seen = _leads(cut)
    cluster.expect(not seen, f"{cut.name}, cut off, still says that it leads")
    cluster.expect(cluster.client(cut).cluster()["stale"], "it does not say that what it knows is old")
    cluster.expect_progress()
    proof = f"{successor.name} leads after {took:.1f} s; the other refuses to lead and answers reads as stale"
    cluster.injected("a Nimbus, the leader, cut off from ZooKeeper", proof)
    for proxy in proxies:
        proxy.mend()
    wait_for(lambda: not cluster.client(cut).cluster()["stale"], "it is up to date again")
    cluster.expect(cluster.leader() is successor, "leadership moved when it came back")
    # Whatever it has fetched meanwhile, it can be the next leader.
    for topology_id in cluster.watched:
        wait_for(lambda: cut.name in cluster.names("code", topology_id), "it has the code")  # noqa: B023


def _leads(nimbus: DaemonProcess) -> bool:
    """Whether a Nimbus takes a request that only a leader takes."""
    url = f"http://{nimbus.name}/api/v1/topology/nothing-1-1/activate"
    return httpx.post(url, timeout=10, trust_env=False).status_code not in (421, 503)


def expired(cluster: Cluster, times: int) -> None:
    """ZooKeeper expires the leader's session, repeatedly."""
    running(cluster, proxied=True)
    for _ in range(min(times, 3)):
        expire_leader(cluster)
    cluster.expect_untouched()


def expire_leader(cluster: Cluster) -> None:
    """Makes ZooKeeper expire the leader's session while the leader runs and does not know of it."""
    leader, epoch = cluster.leader(), cluster.epoch()
    queued = f"{cluster.root}/leader-lock/{cluster.names('leader-lock')[0]}"
    stat = cluster.stat(queued)
    assert stat is not None
    for proxy in cluster.proxies[leader.folder.name]:
        proxy.cut()
    wait_for(lambda: cluster.stat(queued) is None, "its session has expired")
    for proxy in cluster.proxies[leader.folder.name]:
        proxy.mend()
    cluster.leader(epoch=epoch)
    cluster.expect_progress()
    cluster.injected("session expiry of the leader", f"session {stat.ephemeralOwner:x} is gone, its process is not")
    everybody = {nimbus.name for nimbus in cluster.nimbuses}
    wait_for(lambda: everybody <= set(cluster.names("nimbuses")), "it takes part again, with a new session")
    cluster.expect(leader.exit_code is None, "it died of it")
