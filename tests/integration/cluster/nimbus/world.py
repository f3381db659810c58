"""A cluster of Nimbuses in which the test takes the part of supervisors and drivers."""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lengths import PATIENCE_SECS
from waiting import eventually

from storm_on_spark.cluster.paths import SUPERVISORS
from storm_on_spark.cluster.records import Ownership, SupervisorInfo, WorkerBeat
from storm_on_spark.cluster.state import ClusterSnapshot, ClusterView
from storm_on_spark.testing.simulated.cluster import SimulatedCluster, pack_simulated

PLAN = json.loads((Path(__file__).parents[3] / "plan" / "golden" / "word_count.json").read_text("utf-8"))
WAIT = PATIENCE_SECS
"""How quickly a leader comes is measured by `make failover`."""


def wait_for(condition: Callable[[], Any], what: str, timeout: float = WAIT) -> Any:
    """Returns the first true value of `condition`."""
    return eventually(condition, what, timeout)


class World(SimulatedCluster):
    """A cluster of which the test is ZooKeeper's client, like a supervisor is."""

    def __init__(self, hosts: str, folder: Path) -> None:
        soon = {
            # The default seed, which is listed though it be offline.
            "storm.local.hostname": "localhost",
            "storm.zookeeper.retry.interval": 100,
            "storm.zookeeper.retry.times": 2,
            "nimbus.code.sync.freq.secs": 300,
            "nimbus.monitor.freq.secs": 10,
        }
        super().__init__(hosts, folder, f"/test-{uuid.uuid4().hex[:8]}", **soon)
        # Of the daemons: if the test's own session expires on a slow machine, its supervisors go with it.
        self.conf["storm.zookeeper.session.timeout"] = 2000
        self.session.ensure_folders()
        self.view = ClusterView(self.session)
        self.view.start()

    def close(self) -> None:
        self.view.close()
        super().close()

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

    def idle_supervisor(self, name: str, slots: int = 4) -> None:
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

    def packed(self, name: str = "words", plan: Mapping[str, Any] | None = PLAN, size: int = 0) -> Path:
        return pack_simulated(self.folder, name, plan, size)
