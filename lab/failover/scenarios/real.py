"""Real drivers: the load of `make faults` runs on Spark while parts of the cluster die, and its oracles judge."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from lab.failover.cluster import NOTHING, Cluster
from lab.failover.job import HURRY
from lab.failover.scenarios import drivers, ensemble, leaders, submissions
from lab.load import ledger
from lab.load.oracles import Evidence, check
from lab.load.topology import Load
from lab.suite import ROOT
from lab.suite.processes import wait_for
from storm_on_spark.cluster.code.packing.bundle import pack

LOAD: Final = Load(messages=60_000, seconds=1500.0)
"""More than a scenario takes; after its faults, the rest comes at full speed."""
_PENDING: Final = 2000
_START_SECS: Final = 480.0
"""More than a start takes, on a machine that does other work, too."""
_POLL_SECS: Final = 0.1
_NAME: Final = "load"
_COLD: Final = 3
"""How often a host dies without spare drivers."""


class Running:
    """The load in a cluster; no fault of the control plane may disturb it.

    Args:
        cluster: in which it is to run.
        spares: `supervisor.spare.drivers`.
    """

    def __init__(self, cluster: Cluster, spares: int) -> None:
        self._cluster = cluster
        self._ledger = cluster.folder / "ledger"
        self._ledger.mkdir()
        for name in "abc":
            cluster.nimbus(name, leaders.PATIENT if name == "a" else NOTHING, proxied=True)
            if name == "a":
                cluster.leader()
        for name in ("s1", "s2"):
            cluster.supervisor(name, {"supervisor.spare.drivers": spares})
        cluster.leader()
        out = cluster.folder / "packed" / _NAME
        conf = {
            "failover.ledger": str(self._ledger),
            "failover.messages": LOAD.messages,
            "failover.seconds": LOAD.seconds,
            "topology.workers": 2,
            "topology.max.spout.pending": _PENDING,
            "topology.checkpoint.dir": str(cluster.checkpoint(_NAME)),
        }
        # In another folder it is not part of this package, which would otherwise have to be shipped as a whole.
        source = cluster.folder / "sources" / "load.py"
        source.parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / "lab" / "failover" / "job.py", source)
        pack(str(source), out, conf=conf)
        self.topology_id = cluster.submit(cluster.client(), _NAME, conf, out)
        cluster.watch(self.topology_id, self.progresses)
        self.progresses()

    def progresses(self, after: int | None = None) -> float:
        """Waits until messages are acked that were emitted after a moment (now); returns how many seconds after it."""
        since = time.monotonic_ns() if after is None else after
        sentence = "the topology acks messages that were emitted after a fault"
        found = wait_for(lambda: ledger.resumed(self._ledger, since), sentence, _START_SECS, _POLL_SECS)
        assert found is not None
        return found

    def complete(self) -> None:
        """Processes the rest of the load, waits for its end and applies the oracles."""
        cluster = self._cluster
        (self._ledger / HURRY).touch()
        wait_for(self._is_completed, "the topology is complete", 2 * _START_SECS, _POLL_SECS)
        wait_for(lambda: not cluster.names("owners"), "its driver is gone")
        state = cluster.folder / "state.json"
        command = [sys.executable, "-m", "lab.load.state", str(cluster.checkpoint(_NAME)), str(state)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(cluster.folder / "logs")}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        cluster.expect(done.returncode == 0, f"the state can't be read: {done.stderr[-500:]}")
        figures, wrong = check(LOAD, Evidence.read(cluster.folder), host_dies=True, strict_fails=False)
        cluster.problems += wrong
        cluster.rows.append({"load": figures.__dict__})

    def _is_completed(self) -> bool:
        beat = self._cluster.beat(self.topology_id) or {}
        return bool(beat.get("info", {}).get("status") == "COMPLETED")


def in_turn(cluster: Cluster, times: int) -> None:
    """All faults of a machine room, one after the other, against one topology that counts.

    First the faults that it must not notice: one driver runs it through all of them. Then its driver dies, and its
    hosts.
    """
    running = Running(cluster, 0)
    topology_id = running.topology_id
    rng = random.Random(cluster.root)
    faults: list[Callable[[], object]] = [
        partial(leaders.stop_leader, cluster),
        partial(leaders.kill_leader, cluster, "spark-leader"),
        partial(leaders.cut_off_leader, cluster),
        partial(leaders.expire_leader, cluster),
        *(partial(submissions.kill_leader_at, cluster, step) for step in submissions.STEPS),
        partial(submissions.fail_storage_of_leader, cluster),
        partial(submissions.fail_storage_of_follower, cluster),
        partial(ensemble.replace_server, cluster),
        *(partial(ensemble.lose_quorum, cluster, pair) for pair in ((0, 1), (1, 2), (2, 0))),
        partial(drivers.kill_supervisor, cluster, topology_id),
        partial(drivers.stop_driver, cluster, topology_id),
    ]
    for fault in faults:
        time.sleep(rng.uniform(0.0, 1.0))
        fault()
        cluster.expect_untouched()
    _kill_driver(cluster, running)
    for _ in range(min(times, _COLD)):
        time.sleep(rng.uniform(0.0, 1.0))
        _kill_host(cluster, running, "spark-host-cold")
    running.complete()


def hosts(cluster: Cluster, times: int) -> None:
    """A host dies repeatedly; spare drivers are ready on the other."""
    running = Running(cluster, 1)
    for _ in range(times):
        for name in ("s1", "s2"):
            ready = partial(_spare_is_ready, cluster.folder / name)
            wait_for(ready, f"a spare driver of {name}", _START_SECS, _POLL_SECS)
        running.progresses()
        _kill_host(cluster, running, "spark-host")
    running.complete()


def _spare_is_ready(folder: Path) -> bool:
    beats = (folder / "local" / "supervisor" / "spares").glob("*/beat.json")
    return any('"ready"' in path.read_text("utf-8") for path in beats if not (path.parent / "taken").exists())


def _kill_driver(cluster: Cluster, running: Running) -> None:
    pid, at = drivers.owner_of(cluster, running.topology_id), time.monotonic_ns()
    os.kill(pid, signal.SIGKILL)
    cluster.measured("spark-driver", running.progresses(at))
    again = drivers.owner_of(cluster, running.topology_id)
    cluster.injected("SIGKILL of the driver", f"driver {pid}, then {again}")


def _kill_host(cluster: Cluster, running: Running, figure: str) -> None:
    host, pid = drivers.host_of(cluster, running.topology_id), drivers.owner_of(cluster, running.topology_id)
    at = time.monotonic_ns()
    cluster.kill_host(host)
    cluster.measured(figure, running.progresses(at))
    now = drivers.host_of(cluster, running.topology_id)
    cluster.expect(now is not host, "it runs where everything was killed")
    again = drivers.owner_of(cluster, running.topology_id)
    proof = f"{host.folder.name} is gone; driver {pid}, then {again} on {now.folder.name}"
    cluster.injected("SIGKILL of a supervisor and its drivers", proof)
    drivers.return_host(cluster, host)
