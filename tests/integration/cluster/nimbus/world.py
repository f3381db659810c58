"""What tests of Nimbuses share: processes, simulated supervisors and drivers, packed topologies."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from waiting import eventually

from storm_on_spark.cluster.client.nimbus_client import NimbusClient
from storm_on_spark.cluster.code.bundle import pack
from storm_on_spark.cluster.daemons.nimbus import Nimbus
from storm_on_spark.cluster.paths import SUPERVISORS
from storm_on_spark.cluster.records import Ownership, SupervisorInfo, WorkerBeat
from storm_on_spark.cluster.state import ClusterSnapshot, ClusterState, ClusterView
from storm_on_spark.cluster.zookeeper.session import ZooKeeperSession
from storm_on_spark.cluster.zookeeper.settings import ZooKeeperSettings

PLAN = json.loads((Path(__file__).parents[3] / "plan" / "golden" / "word_count.json").read_text("utf-8"))
WAIT = 20.0


def wait_for(condition: Callable[[], Any], what: str, timeout: float = WAIT) -> Any:
    """Returns the first true value of `condition`."""
    return eventually(condition, timeout, lambda: f"{what}: not within {timeout} s")


class NimbusProcess:
    """A Nimbus in a process of its own."""

    def __init__(self, conf: dict[str, Any], folder: Path, step: str | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        own = {**conf, "storm.local.dir": str(folder / "local")}
        (folder / "conf.json").write_text(json.dumps(own), "utf-8")
        self.log = folder / f"log-{uuid.uuid4().hex[:6]}"
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    str(Path(__file__).parent / "one_nimbus.py"),
                    str(folder / "conf.json"),
                    *([] if step is None else [step]),
                ],
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._address = ""
        assert self._process.stdout is not None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        self._lines.put(self._process.stdout.readline().decode().strip())

    @property
    def address(self) -> str:
        if not self._address:
            self._address = self._lines.get(timeout=WAIT)
            assert self._address, self.log.read_text("utf-8")[-3000:]
        return self._address

    @property
    def code(self) -> Path:
        """Folder of the topologies' code here."""
        return self.folder / "local" / "nimbus" / "code"

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self.ended()

    def ended(self) -> int:
        return self._process.wait(WAIT)

    def close(self) -> None:
        if self._process.poll() is None:
            self.signal(signal.SIGCONT)
            self.signal(signal.SIGTERM)
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self.signal(signal.SIGKILL)
        self._process.wait()
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()


class World:
    """A cluster of which the test is ZooKeeper's client, like a supervisor is."""

    def __init__(self, hosts: str, folder: Path) -> None:
        self.folder = folder
        self.conf: dict[str, Any] = {
            "storm.zookeeper.servers": hosts.split(","),
            "storm.zookeeper.root": f"/test-{uuid.uuid4().hex[:8]}",
            "storm.zookeeper.session.timeout": 2000,
            "storm.zookeeper.retry.interval": 100,
            "storm.zookeeper.retry.times": 2,
            "storm.zookeeper.connection.timeout": 5000,
            "nimbus.code.sync.freq.secs": 300,
        }
        self.session = ZooKeeperSession(ZooKeeperSettings.from_conf(self.conf))
        self.session.start()
        self.session.ensure_folders()
        self.state = ClusterState(self.session)
        self.view = ClusterView(self.session)
        self.view.start()
        self.nimbuses: list[NimbusProcess] = []
        self._local: list[Nimbus] = []
        self._clients: list[NimbusClient] = []

    def close(self) -> None:
        for client in self._clients:
            client.close()
        for local in self._local:
            local.stop()
        for nimbus in self.nimbuses:
            nimbus.close()
        self.view.close()
        self.session.close()

    def nimbus(self, name: str, step: str | None = None, **conf: Any) -> NimbusProcess:
        """Starts a Nimbus; the same name again has the same folder."""
        found = NimbusProcess({**self.conf, **conf}, self.folder / name, step)
        self.nimbuses.append(found)
        return found

    def local(self, name: str, **conf: Any) -> Nimbus:
        """Starts a Nimbus in this process: one that nothing happens to."""
        found = Nimbus({**self.conf, **conf, "storm.local.dir": str(self.folder / name / "local")}, port=0)
        found.start()
        self._local.append(found)
        return found

    def client(self, *nimbuses: NimbusProcess | Nimbus, **conf: Any) -> NimbusClient:
        seeds = [nimbus.address for nimbus in nimbuses or (*self.nimbuses, *self._local)]
        retry = {"storm.nimbus.retry.times": 40, "storm.nimbus.retry.interval.millis": 50}
        ceiling = {"storm.nimbus.retry.intervalceiling.millis": 300}
        client = NimbusClient({**retry, **ceiling, **conf}, seeds=seeds)
        self._clients.append(client)
        return client

    def leader(self, timeout: float = WAIT) -> str:
        found = self.until(lambda cluster: cluster.leader is not None, "a leader", timeout)
        assert found.leader is not None
        return found.leader.address

    def until(
        self, predicate: Callable[[ClusterSnapshot], object], what: str, timeout: float = WAIT
    ) -> ClusterSnapshot:
        found = self.view.wait_for(predicate, timeout)
        assert found is not None, f"{what}: not within {timeout} s; {self.view.snapshot()}"
        return found

    def supervisor(self, name: str, slots: int = 4) -> None:
        """Registers a supervisor that does nothing."""
        info = SupervisorInfo(
            supervisor_id=name,
            host=f"host-{name}",
            slots=tuple(range(6700, 6700 + slots)),
            started_at=time.time(),
            version="test",
            heartbeat_at=time.time(),
        )
        self.state.create_ephemeral(info, SUPERVISORS, name)

    def no_supervisor(self, name: str) -> None:
        self.state.delete_ephemeral(SUPERVISORS, name)

    def own(self, topology_id: str) -> Ownership:
        """Owns a topology as its driver would."""
        snapshot = self.until(lambda cluster: topology_id in cluster.assignments, f"{topology_id} assigned")
        assignment = snapshot.assignments[topology_id]
        ownership = Ownership(
            topology_id=topology_id,
            supervisor_id=assignment.supervisor_id,
            host=assignment.host,
            port=assignment.port,
            pid=os.getpid(),
            launch=assignment.launch,
            epoch=assignment.epoch,
        )
        self.state.take_ownership(ownership, snapshot.versions["assignments"][topology_id])
        return ownership

    def beat(self, owner: Ownership, info: dict[str, Any]) -> None:
        self.state.put_beat(
            WorkerBeat(
                topology_id=owner.topology_id,
                supervisor_id=owner.supervisor_id,
                host=owner.host,
                port=owner.port,
                pid=owner.pid,
                launch=owner.launch,
                time=time.time(),
                started_at=time.time(),
                info=info,
            )
        )

    def packed(self, name: str = "words", size: int = 0) -> Path:
        """Packs a small topology and returns the folder."""
        out = self.folder / "packed" / f"{name}-{uuid.uuid4().hex[:6]}"
        source = self.folder / "sources" / f"{name}.py"
        source.parent.mkdir(exist_ok=True)
        filler = os.urandom(size).hex()
        source.write_text(f'"""Of a test: {name} {filler}."""\n\ntopology = None\n', "utf-8")
        pack(str(source), out, conf={"topology.name": name}, plan=PLAN)
        return out
