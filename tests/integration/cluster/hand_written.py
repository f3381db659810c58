"""What a Nimbus would write, written by hand: topologies, their code and their assignments."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from lengths import PATIENCE_SECS
from waiting import eventually

from storm_on_spark.cluster.code.checksums import artifacts_of
from storm_on_spark.cluster.code.distributor import Peers, make_distributor
from storm_on_spark.cluster.code.packing.bundle import pack
from storm_on_spark.cluster.paths import ASSIGNMENTS, CODE, STORMS, WORKERBEATS
from storm_on_spark.cluster.records import (
    Assignment,
    CodeManifest,
    Record,
    Status,
    StormBase,
    WorkerBeat,
)
from storm_on_spark.cluster.security.keyring import Keyring
from storm_on_spark.cluster.security.settings import SecuritySettings
from storm_on_spark.testing.simulated.cluster import SimulatedCluster

ROOT = Path(__file__).parents[3]


class HandWritten(SimulatedCluster):
    """A cluster without Nimbus.

    Args:
        connect: `host:port` of ZooKeeper.
        folder: for everything on disk.
        root: of the nodes.
        conf: of all supervisors, in addition.
    """

    def __init__(self, connect: str, folder: Path, root: str = "/storm", **conf: Any) -> None:
        # The test's own session: it outlasts a disk that hangs, whatever sessions the test looks at.
        super().__init__(connect, folder, root, **{"storm.zookeeper.session.timeout": 30_000})
        self.session.ensure_folders()
        self.conf |= {"storm.zookeeper.session.timeout": 4000, "supervisor.slots.ports": [6700, 6701], **conf}
        self.launches = 0
        #: Signs what is written where `conf` names a token.
        self.keyring = Keyring.of(SecuritySettings.of(self.conf))

    def conf_of(self, supervisor: str = "s1", **more: Any) -> dict[str, Any]:
        """Returns the configuration of a supervisor."""
        return {**self.conf, "storm.local.dir": str(self.folder / supervisor), **more}

    def write_topology(
        self,
        topology_id: str,
        target: Path | str,
        conf: Mapping[str, Any],
        *,
        status: Status = "ACTIVE",
        supervisor: str = "s1",
    ) -> None:
        """Puts code where the supervisor of that name finds it, and writes what a Nimbus writes after that."""
        packed = self.folder / "packed" / supervisor / topology_id
        pack(str(target), packed, conf=conf)
        distributor = make_distributor(self.conf_of(supervisor), Peers())
        metafile = distributor.upload(packed, topology_id)
        distributor.close()
        manifest = CodeManifest(
            topology_id=topology_id,
            artifacts=artifacts_of(packed),
            uploader="127.0.0.1:6627",
            uploaded_at=time.time(),
            distributor="local",
            metafile=metafile,
        )
        self.write(manifest, CODE, topology_id)
        checkpoint = str(self.folder / "checkpoints" / topology_id)
        self.write(
            StormBase(
                topology_id=topology_id,
                name=topology_id.rsplit("-", 2)[0],
                owner="me",
                status=status,
                submitted_at=time.time(),
                launch=1,
                conf={"topology.checkpoint.dir": checkpoint, **conf},
            ),
            STORMS,
            topology_id,
        )

    def assign(self, topology_id: str, supervisor_id: str, port: int = 6700) -> Assignment:
        """Gives a topology to a slot; a new launch every time."""
        self.launches += 1
        assignment = Assignment(
            topology_id=topology_id,
            supervisor_id=supervisor_id,
            host="127.0.0.1",
            port=port,
            launch=self.launches,
            epoch=1,
            assigned_at=time.time(),
        )
        self.write(assignment, ASSIGNMENTS, topology_id)
        return assignment

    def unassign(self, topology_id: str) -> None:
        self.session.client.delete(self.session.paths.of(ASSIGNMENTS, topology_id))

    def set_status(self, topology_id: str, status: Status) -> None:
        found = self.state.get(StormBase, STORMS, topology_id)
        assert found is not None
        self.write(msgspec.structs.replace(found[0], status=status), STORMS, topology_id)

    def write(self, record: Record, *parts: str) -> None:
        path = self.session.paths.of(*parts)
        data = self.keyring.encode(record, path)
        if self.session.client.exists(path):
            self.session.client.set(path, data)
        else:
            self.session.client.create(path, data)

    def beat(self, topology_id: str) -> WorkerBeat | None:
        found = self.state.get(WorkerBeat, WORKERBEATS, topology_id)
        return None if found is None else found[0]

    def info(self, topology_id: str) -> dict[str, Any]:
        """Returns what the driver says of the topology; empty before its first word."""
        beat = self.beat(topology_id)
        return {} if beat is None else beat.info

    def worker_log(self, topology_id: str, port: int = 6700, supervisor: str = "s1") -> str:
        path = self.folder / supervisor / "workers-artifacts" / topology_id / str(port) / "worker.log"
        return path.read_text() if path.exists() else ""


def wait_until(condition: Callable[[], object], what: str, timeout: float = PATIENCE_SECS) -> float:
    """Waits until `condition` is true; returns how long that took in seconds."""
    start = time.monotonic()
    eventually(condition, what, timeout)
    return time.monotonic() - start
