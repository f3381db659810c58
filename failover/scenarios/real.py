"""Real drivers: the load of `make faults` runs on Spark while parts of the cluster die, and its oracles judge."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from failover.cluster import ROOT, Cluster, wait_for
from failover.figures import SESSION_SECS
from failover.scenarios.drivers import host_of
from faults import ledger
from faults.oracles import Evidence, check
from faults.topology import Load
from storm_on_spark.cluster.code.bundle import pack
from storm_on_spark.cluster.supervisor.process import DRIVER

LOAD: Final = Load(messages=24_000, seconds=120.0)
_START_SECS: Final = 120.0
_SECS_BETWEEN: Final = 50.0
"""How long the load emits for each fault, while spare drivers are started."""
_NAME: Final = "load"


class Running:
    """The load in a cluster.

    Args:
        cluster: in which it is to run.
        load: how much it processes.
        spares: `supervisor.spare.drivers`.
    """

    def __init__(self, cluster: Cluster, load: Load, spares: int) -> None:
        self._cluster = cluster
        self._load = load
        self.spares = {"supervisor.spare.drivers": spares} if spares else {}
        self._ledger = cluster.folder / "ledger"
        self._ledger.mkdir()
        for name in "ab":
            cluster.nimbus(name)
        for name in ("s1", "s2"):
            self.supervisor(name)
        cluster.leader()
        out = cluster.folder / "packed" / _NAME
        conf = {
            "failover.ledger": str(self._ledger),
            "failover.messages": load.messages,
            "failover.seconds": load.seconds,
            "topology.workers": 2,
            "topology.max.spout.pending": max(500, int(load.rate)),
        }
        pack(str(ROOT / "failover" / "job.py"), out, conf=conf)
        self.topology_id = cluster.submit(cluster.client(), _NAME, conf, out)
        self.progresses("at the start")

    def supervisor(self, name: str) -> None:
        """Starts a supervisor with real drivers."""
        self._cluster.supervisor(name, self.spares, DRIVER)

    def progresses(self, when: str, after: int | None = None) -> float:
        """Waits until messages are acked that were emitted after a moment (now); returns how many seconds after it."""
        since = time.monotonic_ns() if after is None else after
        found = wait_for(lambda: ledger.resumed(self._ledger, since), f"messages are acked {when}", _START_SECS)
        assert found is not None
        return found

    def driver(self) -> int:
        """Returns the process that owns the topology."""
        owner = wait_for(lambda: self._cluster.node("owners", self.topology_id), "it has an owner")
        assert owner is not None
        return int(owner["pid"])

    def completed(self) -> bool:
        """Whether the topology has come to its end."""
        beat = self._cluster.node("workerbeats", self.topology_id) or {}
        return bool(beat.get("info", {}).get("status") == "COMPLETED")

    def complete(self) -> None:
        """Waits for the end of the load and applies the oracles."""
        cluster = self._cluster
        wait_for(self.completed, "the topology is complete", 2 * self._load.seconds + _START_SECS)
        wait_for(lambda: not cluster.names("owners"), "its driver is gone")
        state = cluster.folder / "state.json"
        command = [sys.executable, "-m", "failover.state", str(cluster.checkpoint(_NAME)), str(state)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(cluster.folder / "logs")}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        cluster.expect(done.returncode == 0, f"the state can't be read: {done.stderr[-500:]}")
        figures, wrong = check(self._load, Evidence.read(cluster.folder), host_dies=True, strict_fails=False)
        cluster.problems += wrong
        cluster.rows.append({"load": figures.__dict__})


def faults(cluster: Cluster, times: int) -> None:
    """Everything that a machine room has to offer, one after the other, to a topology that counts."""
    running = Running(cluster, LOAD, 0)
    rng = random.Random(cluster.root)
    for fault in (_leader, _driver, _one_server, _quorum, _supervisor, _host):
        time.sleep(rng.uniform(0.5, 2.0))
        fault(cluster, running)
        running.progresses("after it")
    running.complete()


def hosts(cluster: Cluster, times: int) -> None:
    """A host dies again and again; spare drivers stand by on the other."""
    secs = _SECS_BETWEEN * times
    running = Running(cluster, Load(messages=round(100 * secs), seconds=secs), 1)
    for number in range(times):
        for name in ("s1", "s2"):
            wait_for(lambda: _spare_is_ready(cluster.folder / name), f"a spare driver of {name}", _START_SECS)  # noqa: B023
        if running.completed():
            break
        running.progresses(f"before fault {number}")
        _host(cluster, running)
    running.complete()


def _spare_is_ready(folder: Path) -> bool:
    beats = (folder / "local" / "supervisor" / "spares").glob("*/beat.json")
    return any('"ready"' in path.read_text("utf-8") for path in beats if not (path.parent / "taken").exists())


def _leader(cluster: Cluster, running: Running) -> None:
    leader, epoch, pid = cluster.leader(), cluster.epoch(), running.driver()
    leader.kill()
    cluster.leader(epoch=epoch)
    cluster.nimbuses.remove(leader)
    cluster.nimbus(leader.folder.name)
    running.progresses("while nobody led")
    cluster.expect(running.driver() == pid, "the topology has another driver after a failover of Nimbus")
    cluster.injected("SIGKILL of the leader", f"exit code {leader.exit_code}; driver {pid} is the same")


def _driver(cluster: Cluster, running: Running) -> None:
    pid, at = running.driver(), time.monotonic_ns()
    os.kill(pid, signal.SIGKILL)
    cluster.measured("spark-driver", running.progresses("after the death of its driver", at))
    cluster.injected("SIGKILL of the driver", f"driver {pid}, then {running.driver()}")


def _one_server(cluster: Cluster, running: Running) -> None:
    server, pid = cluster.ensemble.leader, running.driver()
    assert server is not None
    server.kill()
    running.progresses("while a ZooKeeper server is gone")
    server.start()
    cluster.expect(running.driver() == pid, "the topology has another driver")
    cluster.injected("SIGKILL of one ZooKeeper server", f"driver {pid} is the same")


def _quorum(cluster: Cluster, running: Running) -> None:
    pid, began = running.driver(), time.monotonic()
    for server in cluster.ensemble.servers[1:]:
        server.kill()
    over = began + 2 * SESSION_SECS
    while time.monotonic() < over:
        running.progresses("without a quorum")
    for server in cluster.ensemble.servers[1:]:
        server.start(wait=False)
    cluster.ensemble.wait_ready(60)
    cluster.leader()
    cluster.expect(running.driver() == pid, "the topology has another driver after the loss of the quorum")
    cluster.injected(
        "SIGKILL of two ZooKeeper servers", f"messages were acked without a quorum; driver {pid} is the same"
    )


def _supervisor(cluster: Cluster, running: Running) -> None:
    name, pid = host_of(cluster, running.topology_id), running.driver()
    daemon = next(each for each in reversed(cluster.supervisors) if each.folder.name == name)
    daemon.kill()
    wait_for(lambda: daemon.name not in cluster.names("supervisors"), "its node has expired")
    running.progresses("without its supervisor")
    cluster.supervisors.remove(daemon)
    running.supervisor(name)
    wait_for(lambda: daemon.name in cluster.names("supervisors"), "it is back")
    cluster.expect(running.driver() == pid, "the topology has another driver after the death of its supervisor alone")
    cluster.injected("SIGKILL of the supervisor", f"driver {pid} is the same")


def _host(cluster: Cluster, running: Running) -> None:
    name, pid, at = host_of(cluster, running.topology_id), running.driver(), time.monotonic_ns()
    cluster.kill_host(name)
    figure = "spark-host" if running.spares else "spark-host-cold"
    cluster.measured(figure, running.progresses("on another host", at))
    cluster.expect(host_of(cluster, running.topology_id) != name, "it runs where everything was killed")
    cluster.injected(
        "SIGKILL of a supervisor and its drivers", f"{name} is gone; driver {pid}, then {running.driver()}"
    )
    cluster.supervisors = [each for each in cluster.supervisors if each.folder.name != name]
    # A dead spare may have said that it is ready.
    shutil.rmtree(cluster.folder / name / "local" / "supervisor" / "spares", ignore_errors=True)
    running.supervisor(name)
