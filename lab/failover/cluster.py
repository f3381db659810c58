"""A cluster for the harness: processes that it starts and kills, and znodes that it reads directly."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from kazoo.protocol.states import ZnodeStat
from kazoo.retry import KazooRetry

from lab.failover.figures import SESSION_SECS
from lab.failover.routes import CLOCK, ROUTES
from lab.failover.writes import writes
from lab.suite import ROOT
from lab.suite.processes import POLL_SECS, WAIT_SECS, Marked, wait_for
from lab.suite.scenario import Injection
from storm_on_spark.cluster.client.nimbus_client import NimbusClient
from storm_on_spark.cluster.code.packing.bundle import pack
from storm_on_spark.cluster.heartbeats.connection import Connection
from storm_on_spark.cluster.heartbeats.pulses import PulseReader
from storm_on_spark.cluster.heartbeats.settings import PacemakerSettings
from storm_on_spark.cluster.heartbeats.values import unpack
from storm_on_spark.cluster.zookeeper.server import ZooKeeperEnsemble
from storm_on_spark.runtime.processes.server import free_ports
from storm_on_spark.testing.faults.connections import TcpProxy
from storm_on_spark.testing.simulated.process import END_SECS, DaemonProcess

DRIVER: Final = "lab.failover.driver"
_NEWER: Final = "newer-nimbus"
"""A Nimbus of a later release."""
_HARNESS_SECS: Final = 10.0
"""Session timeout of the harness itself."""

NOTHING: Final[Mapping[str, Any]] = {}


@dataclass
class Cluster:
    """The daemons of one scenario.

    Args:
        ensemble: ZooKeeper, all of it up.
        folder: for all files; new.
        root: node below which everything is.
    """

    ensemble: ZooKeeperEnsemble
    folder: Path
    root: str
    injections: list[Injection] = field(default_factory=list)
    """Faults, with the proof that they happened."""
    problems: list[str] = field(default_factory=list)
    times: dict[str, list[float]] = field(default_factory=dict)
    """Figure -> measurements, in seconds."""
    rows: list[dict[str, Any]] = field(default_factory=list)
    """Other measurements."""
    acknowledged: dict[str, str] = field(default_factory=dict)
    """Id -> name, of topologies whose submission was confirmed to a client and that were not killed since."""
    trusted: set[int] = field(default_factory=set)
    """Sessions of the harness that wrote in place of a leader."""
    pacemakers: int = 0
    """The number of Pacemakers; without any, ZooKeeper keeps the heartbeats."""

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        self.nimbuses: list[DaemonProcess] = []
        self.supervisors: list[DaemonProcess] = []
        self.hearts: list[DaemonProcess] = []
        """The Pacemakers."""
        self.lines: dict[str, list[TcpProxy]] = {}
        """Name of a daemon's folder -> the proxies between the daemon and its drivers, and each Pacemaker."""
        self._ports: list[int] = []
        self.proxies: dict[str, list[TcpProxy]] = {}
        """Nimbus -> the proxies between it and each ZooKeeper server, if there are any."""
        self.watched: dict[str, Callable[[], object]] = {}
        """Id of a topology that must run through all faults -> waits until it has progressed."""
        self.cleanup = contextlib.ExitStack()
        self.processes = Marked("FAILOVER_RUN")
        """Of one daemon's name, or of all."""
        self._clients: list[NimbusClient] = []
        self._packed = 0
        self.zk = KazooClient(self.ensemble.connect_string, timeout=_HARNESS_SECS)
        # Without a quorum there is no answer for a while, and then perhaps a new session.
        self._retry = KazooRetry(max_tries=-1, delay=0.1, max_delay=0.5, deadline=2 * WAIT_SECS)
        self.zk.start(WAIT_SECS)

    # --- processes ---------------------------------------------------------------

    def conf(self, name: str, more: Mapping[str, Any] = NOTHING) -> dict[str, Any]:
        """Returns the configuration of a daemon."""
        return {
            "storm.zookeeper.servers": self.ensemble.connect_string.split(","),
            "storm.zookeeper.root": self.root,
            "storm.zookeeper.session.timeout": round(SESSION_SECS * 1000),
            "storm.zookeeper.connection.timeout": 5000,
            "storm.zookeeper.retry.interval": 200,
            "storm.zookeeper.retry.times": 3,
            "storm.local.dir": str(self.folder / name / "local"),
            "storm.local.hostname": "localhost",
            # Far longer than any scenario: changes are noticed by watches.
            "nimbus.code.sync.freq.secs": 300,
            # A slow driver on a busy machine must not be given up.
            "nimbus.task.launch.secs": 600,
            "supervisor.worker.start.timeout.secs": 600,
            "supervisor.slots.ports": [6700, 6701],
            "supervisor.heartbeat.frequency.secs": 1,
            **more,
        }

    def nimbus(
        self, name: str, conf: Mapping[str, Any] = NOTHING, *, proxied: bool = False, newer: bool = False
    ) -> DaemonProcess:
        """Starts a Nimbus; one with the same name uses the same folder.

        Args:
            name: of its folder.
            conf: in addition.
            proxied: whether it reaches ZooKeeper only through `proxies`, which can be cut.
            newer: whether it is of a later release, whose records this one can't read.
        """
        if proxied:
            if name not in self.proxies:
                servers = self.ensemble.servers
                self.proxies[name] = [self.cleanup.enter_context(TcpProxy(s.connect_string)) for s in servers]
            conf = {**conf, "storm.zookeeper.servers": [proxy.address for proxy in self.proxies[name]]}
        daemon = self._start(_NEWER if newer else "nimbus", name, [], conf)
        self.nimbuses.append(daemon)
        return daemon

    def use_pacemakers(self, count: int) -> None:
        """Makes Pacemakers keep the heartbeats; called before any other daemon is started."""
        self.pacemakers = max(count, self.pacemakers)

    def _pacemaker_conf(self, name: str) -> dict[str, Any]:
        """Returns the configuration with which a daemon and its drivers reach Pacemakers through their own proxies."""
        if not self.pacemakers:
            return {}
        if not self.hearts:
            self._ports = free_ports(self.pacemakers)
            self.hearts = [self._start_pacemaker(number) for number in range(self.pacemakers)]
            for heart in self.hearts:
                assert heart.name
        if name not in self.lines:
            self.lines[name] = [self.cleanup.enter_context(TcpProxy(heart.name)) for heart in self.hearts]
        names = [heart.name for heart in self.hearts]
        return {
            "storm.cluster.state.store": "org.apache.storm.cluster.PaceMakerStateStorageFactory",
            "pacemaker.servers": names,
            ROUTES: {heart: line.address for heart, line in zip(names, self.lines[name], strict=True)},
            CLOCK: str(self.folder / name / "clock"),
        }

    def _start_pacemaker(self, number: int) -> DaemonProcess:
        folder = self.folder / f"pacemaker-{number + 1}"
        folder.mkdir(exist_ok=True)
        conf = {"pacemaker.port": self._ports[number], CLOCK: str(folder / "clock")}
        (folder / "conf.json").write_text(json.dumps(conf), "utf-8")
        (folder / "command.json").write_text(json.dumps(["pacemaker"]), "utf-8")
        return self._begin(folder.name)

    def restart_pacemaker(self, number: int) -> DaemonProcess:
        """Restarts a dead Pacemaker, empty, at the same address."""
        self.hearts[number] = daemon = self._begin(f"pacemaker-{number + 1}")
        assert daemon.name
        return daemon

    def beat(self, topology_id: str) -> dict[str, Any] | None:
        """Returns the last heartbeat of a topology's driver, from wherever it is kept."""
        found = self.node("workerbeats", topology_id)
        if not self.pacemakers:
            return found
        servers = [heart.name for heart in self.hearts if heart.answers]
        settings = PacemakerSettings(tuple(servers))
        beats = [] if found is None else [found]
        for server in servers:
            with PulseReader(Connection(server, settings)) as reader:
                for path, value in reader.read(f"/workerbeats/{topology_id}").items():
                    beats.append(msgspec.to_builtins(unpack(value, path)))
        return max(beats, key=lambda beat: (beat["launch"], beat["time"]), default=None)

    def again(self, dead: DaemonProcess) -> DaemonProcess:
        """Restarts a dead daemon as before, and waits until it takes part."""
        daemons = self.nimbuses if dead in self.nimbuses else self.supervisors
        daemons.remove(dead)
        daemons.append(started := self._begin(dead.folder.name))
        folder = "nimbuses" if daemons is self.nimbuses else "supervisors"
        wait_for(lambda: started.name in self.names(folder), f"{dead.folder.name} takes part again")
        return started

    def supervisor(self, name: str, conf: Mapping[str, Any] = NOTHING, driver: str = DRIVER) -> DaemonProcess:
        """Starts a supervisor; one with the same name is the same supervisor."""
        daemon = self._start("supervisor", name, [driver], conf)
        self.supervisors.append(daemon)
        return daemon

    def _start(self, kind: str, name: str, more: list[str], conf: Mapping[str, Any]) -> DaemonProcess:
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        (folder / "conf.json").write_text(json.dumps({**self._pacemaker_conf(name), **self.conf(name, conf)}), "utf-8")
        (folder / "command.json").write_text(json.dumps([kind, *more]), "utf-8")
        return self._begin(name)

    def _begin(self, name: str) -> DaemonProcess:
        """Starts a daemon with the configuration in its folder."""
        folder = self.folder / name
        kind, *more = json.loads((folder / "command.json").read_text("utf-8"))
        environment = {**os.environ, **self.processes.environment(name), "PYTHONPATH": str(ROOT)}
        conf = str(folder / "conf.json")
        if kind == _NEWER:
            return DaemonProcess(["nimbus", conf], folder, environment, "lab.failover.newer")
        return DaemonProcess([kind, conf, *more], folder, environment, "lab.failover.daemon")

    def kill_host(self, supervisor: DaemonProcess) -> float:
        """Kills a supervisor and all its processes, as when its machine dies; returns the time."""
        name, at = supervisor.folder.name, supervisor.kill()
        while self.processes.signal(signal.SIGKILL, name):
            time.sleep(POLL_SECS)
        return at

    # --- asking and changing -------------------------------------------------------

    def client(self, *nimbuses: DaemonProcess, retries: int = 60) -> NimbusClient:
        """Returns a client of these Nimbuses, or of all."""
        seeds = [nimbus.name for nimbus in nimbuses or self.nimbuses if nimbus.exit_code is None or nimbus in nimbuses]
        pauses = {"storm.nimbus.retry.interval.millis": 50, "storm.nimbus.retry.intervalceiling.millis": 300}
        client = NimbusClient({"storm.nimbus.retry.times": retries, **pauses}, seeds=seeds)
        self._clients.append(client)
        return client

    def packed(self, name: str) -> Path:
        """Packs a topology for a simulated driver, and returns its folder."""
        self._packed += 1
        source = self.folder / "sources" / f"{name}.py"
        source.parent.mkdir(exist_ok=True)
        source.write_text(f'"""{name} of a scenario, number {self._packed}."""\n\ntopology = None\n', "utf-8")
        out = self.folder / "packed" / f"{name}-{self._packed}"
        pack(str(source), out, conf={"topology.name": name})
        return out

    def submit(
        self, client: NimbusClient, name: str, conf: Mapping[str, Any] = NOTHING, folder: Path | None = None
    ) -> str:
        """Submits a topology and returns its id; it must not be lost from then on."""
        settings = {
            "topology.min.replication.count": 2,
            "topology.max.replication.wait.time.sec": 30,
            "topology.checkpoint.dir": str(self.checkpoint(name)),
            **conf,
        }
        topology_id = client.submit(self.packed(name) if folder is None else folder, name, settings)
        self.acknowledged[topology_id] = name
        return topology_id

    def kill_topology(self, client: NimbusClient, topology_id: str) -> None:
        """Kills a topology and returns once nothing of it is left."""
        client.kill(self.acknowledged.pop(topology_id), 0)
        wait_for(
            lambda: not any(self.node(folder, topology_id) for folder in ("storms", "assignments", "code")),
            f"nothing is left of {topology_id}",
        )

    def checkpoint(self, name: str) -> Path:
        """Returns the folder of a topology's checkpoint."""
        return self.folder / "checkpoints" / name

    def writers(self, name: str) -> list[int]:
        """Returns the drivers that wrote to a topology's checkpoint, in order."""
        return list(dict.fromkeys(pid for pid, _ in writes(self.checkpoint(name))))

    def wait_until_writing(self, name: str, but: int | None = None, timeout: float = WAIT_SECS) -> int:
        """Waits until a driver (other than `but`) writes to a topology's checkpoint; returns its pid."""
        since = time.monotonic_ns()

        def writer() -> int | None:
            new = [pid for pid, at in writes(self.checkpoint(name), 5) if at > since and pid != but]
            return new[-1] if new else None

        found = wait_for(writer, f"a driver of {name} works", timeout)
        assert found is not None
        return found

    # --- what must run through all faults ------------------------------------------

    def watch(self, topology_id: str, progresses: Callable[[], object] | None = None) -> None:
        """Marks a topology as one that no fault may disturb; by default, its driver's writes show that."""
        name = self.acknowledged[topology_id]
        self.watched[topology_id] = progresses or (lambda: self.wait_until_writing(name))

    def expect_progress(self) -> None:
        """Waits until each watched topology has progressed."""
        for progresses in self.watched.values():
            progresses()

    def expect_untouched(self) -> None:
        """Records a problem if a watched topology was reassigned, or its driver is not the first one."""
        for topology_id in self.watched:
            stat = self.stat(f"{self.root}/assignments/{topology_id}")
            self.expect(stat is not None and stat.version == 0, f"{topology_id} was assigned again")
            name = self.acknowledged[topology_id]
            self.wait_until_writing(name)
            self.expect(len(self.writers(name)) == 1, f"{topology_id} was run by {self.writers(name)}")

    # --- ZooKeeper -----------------------------------------------------------------

    def node(self, *parts: str) -> dict[str, Any] | None:
        """Returns a node's value; None if the node does not exist, `{}` if it is empty."""
        try:
            data = self._retry(self.zk.get, "/".join([self.root, *parts]))[0]
        except NoNodeError:
            return None
        found = json.loads(data or b"{}")
        return found if isinstance(found, dict) else {"value": found}

    def names(self, *parts: str) -> list[str]:
        """Returns the names of the nodes below a node."""
        try:
            return sorted(self._retry(self.zk.get_children, "/".join([self.root, *parts])))
        except NoNodeError:
            return []

    def stat(self, path: str) -> ZnodeStat | None:
        """Returns ZooKeeper's data about a node, such as its version; None if it does not exist."""
        return self._retry(self.zk.exists, path)

    def leader(self, but: DaemonProcess | None = None, epoch: int = 0, timeout: float = WAIT_SECS) -> DaemonProcess:
        """Waits for a leader (other than `but`, later than `epoch`) and returns it."""
        for nimbus in self.nimbuses:
            if nimbus.exit_code is None and not nimbus.stopped:
                assert nimbus.name

        def who() -> DaemonProcess | None:
            info = self.node("leader-info") or {}
            queued = self.names("leader-lock")
            if not queued or info.get("epoch", -1) <= epoch:
                return None
            stat = self.stat(f"{self.root}/leader-lock/{queued[0]}")
            if stat is None or stat.czxid != info["epoch"]:
                return None
            found = [nimbus for nimbus in self.nimbuses if nimbus.answers and nimbus.name == info["address"]]
            return found[-1] if found and found[-1] is not but else None

        found = wait_for(who, "a leader", timeout)
        assert found is not None
        return found

    def epoch(self) -> int:
        """Returns the epoch of the last leader."""
        return int((self.node("leader-info") or {}).get("epoch", 0))

    # --- notes -----------------------------------------------------------------------

    def injected(self, what: str, proof: str) -> None:
        """Records a fault that has happened."""
        self.injections.append(Injection(what, proof))

    def measured(self, figure: str, secs: float) -> None:
        """Records a time."""
        self.times.setdefault(figure, []).append(secs)

    def expect(self, truth: object, sentence: str) -> None:
        """Records a problem unless the condition is true."""
        if not truth:
            self.problems.append(sentence)

    # --- the end ---------------------------------------------------------------------

    def settle(self) -> None:
        """Waits until half-submitted topologies are done and sessions of dead processes have expired."""
        wait_for(lambda: not self.names("submissions"), "no submission is half done")
        wait_for(lambda: set(self.names("code")) == set(self.names("storms")), "no code is without its topology")

    def close(self) -> None:
        """Ends everything, and records leftovers."""
        for client in self._clients:
            client.close()
        leader = (self.node("leader-info") or {}).get("address")
        # The leader last, so that no other one is elected.
        last = [nimbus for nimbus in self.nimbuses if nimbus.answers and nimbus.name == leader]
        rest = [nimbus for nimbus in self.nimbuses if nimbus not in last]
        ends = (
            (self.supervisors, signal.SIGUSR1),
            (rest, signal.SIGTERM),
            (last, signal.SIGTERM),
            (self.hearts, signal.SIGTERM),
        )
        for daemons, number in ends:
            for daemon in daemons:
                daemon.end(number)
            for daemon in daemons:
                self.expect(daemon.join(), f"{daemon.folder.name} did not end within {END_SECS:.0f} s")
        self.cleanup.close()

    def check_nothing_left(self) -> None:
        """Records leftover processes, and znodes that should have ended with a session."""
        deadline = time.monotonic() + END_SECS
        folders = ("leader-lock", "nimbuses", "supervisors", "owners")
        while time.monotonic() < deadline:
            nodes = [f"{folder}/{name}" for folder in folders for name in self.names(folder)]
            nodes += [f"code/{name}/{who}" for name in self.names("code") for who in self.names("code", name)]
            left = self.processes.find()
            if not nodes and not left:
                break
            time.sleep(0.1)
        else:
            self.expect(not left, f"processes left behind: {left}")
            self.expect(not nodes, f"znodes left behind: {nodes}")
        storms = set(self.names("storms"))
        for folder in ("assignments", "code", "workerbeats", "errors", "checkpoints"):
            lonely = set(self.names(folder)) - storms
            self.expect(not lonely, f"znodes without a topology in {folder}: {sorted(lonely)}")
        claims = {(self.node("names", name) or {}).get("topology_id") for name in self.names("names")}
        self.expect(
            claims == storms, f"names are claimed by {sorted(map(str, claims))}, topologies are {sorted(storms)}"
        )
        lost = set(self.acknowledged) - storms
        self.expect(not lost, f"acknowledged topologies that are lost: {sorted(lost)}")

    def end(self) -> None:
        """Kills all remaining processes, and disconnects."""
        self.processes.signal(signal.SIGKILL)
        self.zk.stop()
        self.zk.close()
