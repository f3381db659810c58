"""Pacemakers die, restart and are cut off; no topology moves. The topology of a truly silent driver is moved."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

import psutil

from lab.failover.cluster import Cluster
from lab.failover.scenarios.drivers import host_of, owner_of, return_host
from lab.suite.processes import wait_for
from lab.suite.scenario import ScenarioError
from storm_on_spark.cluster.heartbeats.connection import Connection
from storm_on_spark.cluster.heartbeats.settings import PacemakerSettings
from storm_on_spark.cluster.pacemaker.messages import Message, MessageType, Pulse, frame
from storm_on_spark.testing.simulated.process import DaemonProcess

TIMEOUT: Final = 12
"""`nimbus.task.timeout.secs`: the silence after which a driver is given up. The default is 30."""
_CONF: Final[Mapping[str, Any]] = {
    "nimbus.task.timeout.secs": TIMEOUT,
    "nimbus.task.launch.secs": 60,
    "nimbus.monitor.freq.secs": 1,
}
_LONG: Final = 2 * TIMEOUT
"""Duration in seconds of a fault that must have no effect."""
_MOST_QUESTIONS: Final = 64 << 20
"""Bytes of requests; more than the buffers between a client and a server can hold."""
_LOAD: Final = 500
"""Heartbeats a second of others, while a Pacemaker dies."""


def _begin(cluster: Cluster, pacemakers: int = 3) -> list[str]:
    """Starts Pacemakers, two Nimbuses, and two supervisors with a topology each."""
    cluster.use_pacemakers(pacemakers)
    for name in "ab":
        cluster.nimbus(name, _CONF)
    for name in ("s1", "s2"):
        cluster.supervisor(name)
    cluster.leader()
    wait_for(lambda: len(cluster.names("supervisors")) == 2, "the supervisors are up")
    client = cluster.client()
    ids = [cluster.submit(client, name) for name in ("t1", "t2")]
    for topology_id in ids:
        cluster.watch(topology_id)
        wait_for(partial(cluster.beat, topology_id), f"{topology_id} beats")
    cluster.expect_progress()
    cluster.expect(host_of(cluster, ids[0]) is not host_of(cluster, ids[1]), "both topologies are on one host")
    _wait_known(cluster)
    return ids


def _summary(cluster: Cluster) -> dict[str, Any]:
    """Returns the content of the leader's page of the cluster."""
    leader = cluster.leader()
    found: dict[str, Any] = cluster.client(leader).page("/cluster/summary")
    return found


def _wait_unknown(cluster: Cluster, reason: str) -> str:
    """Waits until the leader's page says that heartbeats are unknown for a reason; returns that."""

    def says() -> str | None:
        page = _summary(cluster)
        since = page["heartbeatsUnknownSince"]
        return page["heartbeatsUnknown"] if since is not None and reason in page["heartbeatsUnknown"] else None

    found = wait_for(says, f"the page says that heartbeats are unknown: {reason}", pause=0.5)
    assert found is not None
    log = "".join(nimbus.said for nimbus in cluster.nimbuses)
    cluster.expect(f"Heartbeats are unknown: {found}" in log, "no Nimbus' log says that heartbeats are unknown")
    return found


def _wait_known(cluster: Cluster) -> None:
    """Waits until the leader receives all heartbeats again."""

    def says() -> bool:
        page = _summary(cluster)
        writers = {name for pacemaker in page["pacemakers"] for name in pacemaker["writers"]}
        return page["heartbeatsUnknownSince"] is None and {name.partition("/")[0] for name in writers} >= {
            "__supervisors",
            *cluster.watched,
        }

    wait_for(says, "heartbeats are known", pause=0.5)


def _lasts(cluster: Cluster) -> None:
    """Keeps a fault for longer than the timeout of a silent driver, while topologies work."""
    end = time.monotonic() + _LONG
    while time.monotonic() < end:
        cluster.expect_progress()
        time.sleep(1.0)
    cluster.expect_untouched()


@contextlib.contextmanager
def _load(cluster: Cluster) -> Iterator[list[int]]:
    """Makes other clients write heartbeats to every Pacemaker; yields the number of answers of each."""
    done = threading.Event()
    counts = [0] * len(cluster.hearts)

    def write(number: int, server: str) -> None:
        with Connection(server, PacemakerSettings((server,))) as connection:
            while not done.wait(0.1):
                paths = [f"/workerbeats/others-{each}-1-1/x-6700" for each in range(_LOAD // 10)]
                with contextlib.suppress(Exception):
                    counts[number] += len(
                        connection.ask([(MessageType.SEND_PULSE, Pulse(path, b"x" * 2000)) for path in paths])
                    )

    threads = [threading.Thread(target=write, args=(number, heart.name)) for number, heart in enumerate(cluster.hearts)]
    for thread in threads:
        thread.start()
    try:
        yield counts
    finally:
        done.set()
        for thread in threads:
            thread.join()


def one(cluster: Cluster, times: int) -> None:
    """One of three is killed under load, each in turn: its writers go to another, and it is used again."""
    _begin(cluster)
    with _load(cluster) as counts:
        for number in range(3):
            cluster.hearts[number].kill()
            before = list(counts)
            _lasts(cluster)
            _wait_known(cluster)
            written = [after - was for after, was in zip(counts, before, strict=True)]
            proof = f"heartbeats of others that each answered meanwhile: {written}"
            cluster.injected("SIGKILL of one of three Pacemakers under load", proof)
            cluster.expect(not written[number] and min(written[:number] + written[number + 1 :]), proof)
            cluster.restart_pacemaker(number)
            wait_for(
                lambda: all(each["awaySince"] is None for each in _summary(cluster)["pacemakers"]),
                "the one that was killed answers again",
                pause=0.5,
            )
    cluster.expect_untouched()


def all_of_them(cluster: Cluster, times: int) -> None:
    """All are killed, and start empty much later; a host dies meanwhile, and its topology is moved."""
    ids = _begin(cluster)
    spare = cluster.supervisor("s3")
    wait_for(lambda: spare.name in cluster.names("supervisors"), "the third supervisor is up")
    for heart in cluster.hearts:
        heart.kill()
    reason = _wait_unknown(cluster, "no Pacemaker answers")
    _lasts(cluster)
    cluster.injected("SIGKILL of all Pacemakers", f"the page says: {reason}")
    victim = host_of(cluster, ids[0])
    cluster.watched.pop(ids[0])
    [last] = cluster.writers("t1")[-1:]
    cluster.kill_host(victim)
    pid = cluster.wait_until_writing("t1", but=last)
    cluster.injected("SIGKILL of a host while no Pacemaker answers", f"driver {pid} took over from {last}")
    return_host(cluster, victim)
    for number in range(3):
        cluster.restart_pacemaker(number)
    _wait_known(cluster)
    _lasts(cluster)
    cluster.injected("start of all Pacemakers, empty", "heartbeats are known again")


def restarted(cluster: Cluster, times: int) -> None:
    """All are killed and restarted at once, empty, repeatedly."""
    _begin(cluster)
    for _ in range(min(times, 3)):
        pids = [heart.pid for heart in cluster.hearts]
        for heart in cluster.hearts:
            heart.kill()
        for number in range(3):
            cluster.restart_pacemaker(number)
        _wait_known(cluster)
        _lasts(cluster)
        cluster.injected("SIGKILL and start of all Pacemakers", f"{pids} became {[h.pid for h in cluster.hearts]}")


def cut_off_nimbuses(cluster: Cluster, times: int) -> None:
    """Nimbuses lose one Pacemaker, then all; supervisors reach all of them."""
    _begin(cluster)
    for name in "ab":
        cluster.lines[name][0].cut()
    wait_for(lambda: _summary(cluster)["pacemakers"][0]["awaySince"], "the leader misses a Pacemaker", pause=0.5)
    _lasts(cluster)
    cluster.injected("one Pacemaker cut off from Nimbuses", "the page says that it is away")
    for name in "ab":
        for line in cluster.lines[name]:
            line.cut()
    reason = _wait_unknown(cluster, "no Pacemaker answers")
    _lasts(cluster)
    cluster.injected("all Pacemakers cut off from Nimbuses", f"the page says: {reason}")
    for name in "ab":
        for line in cluster.lines[name]:
            line.mend()
    _wait_known(cluster)
    cluster.expect_untouched()


def cut_off_supervisors(cluster: Cluster, times: int) -> None:
    """Supervisors and drivers reach no Pacemaker; Nimbuses reach all of them."""
    _begin(cluster)
    for name in ("s1", "s2"):
        for line in cluster.lines[name]:
            line.cut()
    reason = _wait_unknown(cluster, "nobody's heartbeats arrive")
    _lasts(cluster)
    cluster.injected("all Pacemakers cut off from supervisors", f"the page says: {reason}")
    for name in ("s1", "s2"):
        for line in cluster.lines[name]:
            line.mend()
    _wait_known(cluster)
    cluster.expect_untouched()


def one_side(cluster: Cluster, times: int) -> None:
    """One host reaches no Pacemaker, but ZooKeeper: its topology is moved to a host whose heartbeats arrive."""
    ids = _begin(cluster)
    victim = host_of(cluster, ids[0])
    cluster.watched.pop(ids[0])
    last = owner_of(cluster, ids[0])
    for line in cluster.lines[victim.folder.name]:
        line.cut()
    pid = cluster.wait_until_writing("t1", but=last)
    cluster.expect(host_of(cluster, ids[0]) is not victim, "it was moved to where nobody can beat")
    cluster.injected("all Pacemakers cut off from one host", f"driver {pid} took over from {last}")
    assignment = cluster.stat(f"{cluster.root}/assignments/{ids[0]}")
    _lasts(cluster)
    now = cluster.stat(f"{cluster.root}/assignments/{ids[0]}")
    cluster.expect(now == assignment, "it was moved once more")


def half_open(cluster: Cluster, times: int) -> None:
    """A Pacemaker is stopped: its connections stay open, new ones are accepted, and nothing is ever answered."""
    _begin(cluster)
    for number in range(3):
        heart = cluster.hearts[number]
        heart.pause()
        wait_for(lambda: _summary(cluster)["pacemakers"][number]["awaySince"], "the page says so", pause=0.5)  # noqa: B023
        _lasts(cluster)
        cluster.injected("SIGSTOP of one of three Pacemakers", _summary(cluster)["pacemakers"][number]["problem"])
        heart.resume()
        _wait_known(cluster)
    cluster.expect_untouched()


def never_reads(cluster: Cluster, times: int) -> None:
    """Clients send requests and never read an answer: the server drops them, and all others continue."""
    _begin(cluster, 1)
    address = cluster.hearts[0].name
    host, _, port = address.rpartition(":")
    with Connection(address, PacemakerSettings((address,))) as connection:
        path = "/workerbeats/large-1-1/x-6700"
        connection.ask([(MessageType.SEND_PULSE, Pulse(path, b"x" * 1_000_000))])
    question = frame(Message(MessageType.GET_PULSE, path, 0)) * 50
    clients = [socket.create_connection((host, int(port))) for _ in range(20)]
    try:
        sent = 0
        for client in clients:
            client.setblocking(False)
            mine = 0
            with contextlib.suppress(BlockingIOError):
                while taken := client.send(question):
                    mine += taken
                    if mine > _MOST_QUESTIONS:
                        raise ScenarioError("it takes questions without end")
            sent += mine // (len(question) // 50)
        _lasts(cluster)
        resident = psutil.Process(cluster.hearts[0].pid).memory_info().rss
        cluster.expect(resident < 400 << 20, f"the server takes {resident >> 20} MiB")
        cluster.injected("20 clients that never read", f"{sent} questions for a megabyte each; {resident >> 20} MiB")
        said = "it doesn't read its answers"
        wait_for(lambda: cluster.hearts[0].said.count(said) >= len(clients), "the server drops them")
    finally:
        for client in clients:
            client.close()
    _wait_known(cluster)
    cluster.expect_untouched()


def clock(cluster: Cluster, times: int) -> None:
    """Clocks jump: of a host while Pacemakers die, so that old heartbeats look newer, and of Pacemakers."""
    ids = _begin(cluster)
    host = host_of(cluster, ids[0])
    for hours in (5, -7):
        before = (cluster.beat(ids[0]) or {})["time"]
        (host.folder / "clock").write_text(str(3600 * hours), "utf-8")

        def jumped(before: float = before) -> bool:
            return abs(float((cluster.beat(ids[0]) or {"time": before})["time"]) - before) > 3000

        if hours > 0:
            wait_for(jumped, "a heartbeat with the wrong time", pause=0.5)
        for number in range(2):
            cluster.hearts[number].kill()
        time.sleep(6.0)
        for number in range(2):
            cluster.restart_pacemaker(number)
        _lasts(cluster)
        _wait_known(cluster)
        cluster.injected(f"a host's clock jumps by {hours:+d} hours", "its topology beats, and was left where it is")
    for hours in (5, -7):
        for heart in cluster.hearts:
            (heart.folder / "clock").write_text(str(3600 * hours), "utf-8")
        days = [_dated(heart) for heart in cluster.hearts]
        _lasts(cluster)
        _wait_known(cluster)
        cluster.injected(f"all Pacemakers' clocks jump by {hours:+d} hours", f"their log is dated {', '.join(days)}")


def _dated(heart: DaemonProcess) -> str:
    """Returns the time by a Pacemaker's clock, from the line that it logs about an invalid message."""
    host, _, port = heart.name.rpartition(":")
    before = len(heart.said)
    with socket.create_connection((host, int(port))) as client:
        client.sendall(b"\xff\xff\xff\xff")
        wait_for(lambda: "closed address" in heart.said[before:], "it logs the message")
    line = next(line for line in heart.said[before:].splitlines() if "closed address" in line)
    return line.partition(",")[0]
