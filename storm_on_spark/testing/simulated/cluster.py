"""A cluster without Spark: real Nimbuses, supervisors and ZooKeeper, and drivers that do no work."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from storm_on_spark.cluster.client.nimbus_client import NimbusClient
from storm_on_spark.cluster.code.packing.bundle import pack
from storm_on_spark.cluster.daemons.nimbus import Nimbus
from storm_on_spark.cluster.daemons.supervisor import Supervisor
from storm_on_spark.cluster.paths import OWNERS
from storm_on_spark.cluster.records import Ownership
from storm_on_spark.cluster.state import ClusterState
from storm_on_spark.cluster.zookeeper import ZooKeeperSession, ZooKeeperSettings
from storm_on_spark.runtime.processes.closing import Closing
from storm_on_spark.testing.simulated.process import DaemonProcess

DRIVER: Final = "storm_on_spark.testing.simulated.driver"
_POLL_SECS: Final = 0.01


def pack_simulated(folder: Path, name: str, plan: Mapping[str, Any] | None = None, size: int = 0) -> Path:
    """Packs a topology for simulated drivers, which don't load it.

    Args:
        folder: for its source, and for what is packed; several topologies may share it.
        name: of the topology.
        plan: the plan that it claims.
        size: random bytes in its source, written as twice as many digits.

    Returns:
        A new folder.
    """
    source = folder / "sources" / f"{name}.py"
    source.parent.mkdir(parents=True, exist_ok=True)
    out = folder / "packed" / f"{name}-{os.urandom(4).hex()}"
    source.write_text(f'"""{out.name} {os.urandom(size).hex()}"""\n\ntopology = None\n', "utf-8")
    pack(str(source), out, conf={"topology.name": name}, plan=plan)
    return out


class SimulatedCluster(Closing):
    """Real Nimbuses and supervisors, with simulated drivers.

    For tests of everything around topologies: leadership, assignments, answers to clients, authorization. Daemons are
    in this process, where a test can look into them, or in separate processes, to be killed. Each driver is a separate
    process, which owns its topology; `simulated.driver` lists what a topology's configuration can ask of it. Everything
    that still runs is ended at the end of a `with` statement.

    Args:
        connect: `host:port` of each ZooKeeper server, with commas between them.
        folder: for everything on disk.
        root: of the nodes in ZooKeeper; two clusters on one ZooKeeper need two.
        conf: of all daemons and clients, in addition.

    Raises:
        ClusterError: ZooKeeper can't be reached.

    Example:
        >>> with ZooKeeperServer() as zookeeper:                                         # doctest: +SKIP
        ...     with SimulatedCluster(zookeeper.connect_string, Path("/tmp/cluster")) as cluster:
        ...         nimbus, supervisor = cluster.nimbus("n1"), cluster.supervisor("s1")
        ...         topology_id = cluster.submit("words")
        ...         first = cluster.runs(topology_id)
        ...         os.kill(first, signal.SIGKILL)
        ...         cluster.runs(topology_id, but=first) != first
        True
    """

    def __init__(self, connect: str, folder: Path, root: str = "/storm", **conf: Any) -> None:
        self.folder = folder
        self.conf: dict[str, Any] = {
            "storm.zookeeper.servers": connect.split(","),
            "storm.zookeeper.root": root,
            # These tests are not about expired sessions: a disk that hangs for a second must not break a connection.
            "storm.zookeeper.session.timeout": 12_000,
            "storm.zookeeper.connection.timeout": 5000,
            "storm.zookeeper.retry.times": 1,
            "storm.zookeeper.retry.interval": 200,
            "storm.local.hostname": "127.0.0.1",
            "nimbus.monitor.freq.secs": 1,
            "supervisor.heartbeat.frequency.secs": 1,
            "supervisor.worker.shutdown.sleep.secs": 8,
            "storm.nimbus.retry.times": 40,
            "storm.nimbus.retry.interval.millis": 50,
            "storm.nimbus.retry.intervalceiling.millis": 300,
            **conf,
        }
        self.nimbuses: dict[str, Nimbus] = {}
        self.supervisors: dict[str, Supervisor] = {}
        self.processes: list[DaemonProcess] = []
        self._seeds: list[DaemonProcess] = []
        self._former: list[Supervisor] = []
        self._clients: list[NimbusClient] = []
        zookeeper = {key: value for key, value in self.conf.items() if key.startswith("storm.zookeeper.")}
        self.session = ZooKeeperSession(ZooKeeperSettings.from_conf(zookeeper))
        self.session.start()
        #: It has no secret: it reads the drivers' reports and the existing nodes.
        self.state = ClusterState(self.session)

    def close(self) -> None:
        """Ends clients, drivers, supervisors and Nimbuses; drivers of separate supervisor processes keep running."""
        for client in self._clients:
            client.close()
        for supervisor in self.supervisors.values():
            supervisor.stop(drivers=True)
        for supervisor in self._former:
            # Their drivers have ended, but are their children.
            supervisor.end_drivers()
        for nimbus in self.nimbuses.values():
            nimbus.stop()
        for process in self.processes:
            process.close()
        for done in (self.supervisors, self._former, self.nimbuses, self.processes, self._seeds, self._clients):
            done.clear()
        self.session.close()

    def nimbus(self, name: str, **conf: Any) -> Nimbus:
        """Starts a Nimbus; one with the same name is stopped first, and its files stay.

        Args:
            name: of its folder.
            conf: in addition.
        """
        if name in self.nimbuses:
            self.nimbuses.pop(name).stop()
        found = Nimbus({**self.conf, **conf, "storm.local.dir": str(self.folder / name)}, port=0)
        found.start()
        self.nimbuses[name] = found
        return found

    def supervisor(self, name: str, ports: tuple[int, ...] = (6700, 6701), **conf: Any) -> Supervisor:
        """Starts a supervisor; one with the same name is stopped first, its files stay, and its drivers keep running.

        Args:
            name: of its folder.
            ports: names of its slots; nothing listens on them.
            conf: in addition.
        """
        if name in self.supervisors:
            former = self.supervisors.pop(name)
            former.stop()
            self._former.append(former)
        own = {"storm.local.dir": str(self.folder / name), "supervisor.slots.ports": list(ports)}
        found = Supervisor({**self.conf, **own, **conf}, driver=DRIVER)
        found.start()
        self.supervisors[name] = found
        return found

    def nimbus_process(self, name: str, **conf: Any) -> DaemonProcess:
        """Starts a Nimbus in a separate process; see `nimbus`."""
        process = self._process("nimbus", name, [], conf)
        self._seeds.append(process)
        return process

    def supervisor_process(self, name: str, **conf: Any) -> DaemonProcess:
        """Starts a supervisor in a separate process; see `supervisor`."""
        return self._process("supervisor", name, [DRIVER], conf)

    def _process(self, kind: str, name: str, more: list[str], conf: Mapping[str, Any]) -> DaemonProcess:
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        file = folder / "conf.json"
        file.write_text(json.dumps({**self.conf, **conf, "storm.local.dir": str(folder)}), "utf-8")
        process = DaemonProcess([kind, str(file), *more], folder)
        self.processes.append(process)
        return process

    def client(self, *nimbuses: Nimbus | DaemonProcess, **conf: Any) -> NimbusClient:
        """Returns a client of these Nimbuses, or of all; the cluster closes it at the end.

        Args:
            nimbuses: their addresses are its seeds.
            conf: in addition.
        """
        seeds = [
            nimbus.address if isinstance(nimbus, Nimbus) else nimbus.name
            for nimbus in nimbuses or (*self._seeds, *self.nimbuses.values())
        ]
        client = NimbusClient({**self.conf, **conf}, seeds=seeds)
        self._clients.append(client)
        return client

    def packed(self, name: str, plan: Mapping[str, Any] | None = None) -> Path:
        """Packs a topology for simulated drivers and returns the folder; see `pack_simulated`."""
        return pack_simulated(self.folder, name, plan)

    def submit(self, name: str, **conf: Any) -> str:
        """Submits a topology and returns its id when it runs.

        Raises:
            TimeoutError: it does not run within 60 s.
        """
        own = {"topology.checkpoint.dir": str(self.folder / "checkpoints" / name), **conf}
        with self.client() as client:
            topology_id = client.submit(self.packed(name), name, own)
        self.runs(topology_id)
        return topology_id

    def owner(self, topology_id: str) -> Ownership | None:
        """Returns which process runs a topology; None if none does."""
        found = self.state.get(Ownership, OWNERS, topology_id)
        return None if found is None else found[0]

    def runs(self, topology_id: str, but: int = 0, timeout: float = 60) -> int:
        """Returns the process id of a topology's driver, once there is one.

        Args:
            topology_id: of the topology.
            but: the process id of an earlier driver, which does not count.
            timeout: seconds to wait at most.

        Raises:
            TimeoutError: there is none in time.
        """
        deadline = time.monotonic() + timeout
        while (owner := self.owner(topology_id)) is None or owner.pid == but:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{topology_id} does not run within {timeout:g} s")
            time.sleep(_POLL_SECS)
        return owner.pid
