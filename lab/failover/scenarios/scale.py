"""Many topologies and supervisors: how long a new leader takes to give all of them a slot."""

from __future__ import annotations

import time
from typing import Any, Final

from lab.failover import history
from lab.failover.cluster import Cluster
from lab.failover.oracles import examine
from lab.suite.processes import wait_for
from storm_on_spark.cluster.code.checksums import artifacts_of
from storm_on_spark.cluster.code.distributor import Peers, make_distributor
from storm_on_spark.cluster.paths import ASSIGNMENTS, CODE, NAMES, OWNERS, STORMS, SUPERVISORS
from storm_on_spark.cluster.records import CodeManifest, NameClaim, Ownership, Record, StormBase, SupervisorInfo, encode
from storm_on_spark.cluster.state import ClusterState
from storm_on_spark.cluster.zookeeper import ZooKeeperSession, ZooKeeperSettings

SIZES: Final = ((50, 12), (100, 25), (200, 50), (400, 100), (800, 200))
"""Topologies and supervisors."""
_MEASURED: Final = (200, 50)
_SECS: Final = 60.0


def grow(cluster: Cluster, times: int) -> None:
    """More and more topologies; each time a new leader has to assign all of them again."""
    with ZooKeeperSession(ZooKeeperSettings.from_conf(_session(cluster.conf("harness")))) as session:
        session.ensure_folders()
        assert session.session_id is not None
        cluster.trusted.add(session.session_id)
        made = 0
        for topologies, supervisors in SIZES:
            _fill(cluster, session, made, topologies, supervisors)
            made = topologies
            repeated = times if (topologies, supervisors) == _MEASURED else min(times, 3)
            secs = [_schedule(cluster, session, topologies) for _ in range(repeated)]
            cluster.rows.append({"topologies": topologies, "supervisors": supervisors, "secs": secs})
            if (topologies, supervisors) == _MEASURED:
                cluster.times["scale"] = secs


def _session(conf: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in conf.items() if name.startswith("storm.zookeeper.")}


def _fill(cluster: Cluster, session: ZooKeeperSession, made: int, topologies: int, supervisors: int) -> None:
    """Creates topologies, whose code the Nimbus has, and supervisors that do nothing."""
    state = ClusterState(session)
    slots = tuple(range(6700, 6700 + -(-topologies // supervisors)))
    for number in range(supervisors):
        name = f"s{number:03}"
        info = SupervisorInfo(
            supervisor_id=name,
            host=f"host-{name}",
            slots=slots,
            started_at=time.time(),
            version="simulated",
            heartbeat_at=time.time(),
        )
        state.create_ephemeral(info, SUPERVISORS, name)
    distributor = make_distributor(cluster.conf("a"), Peers())
    folder = cluster.packed("many")
    artifacts = artifacts_of(folder)
    pending = []

    def create(record: Record, *parts: str) -> None:
        pending.append(session.client.create_async(session.paths.of(*parts), encode(record)))

    for number in range(made, topologies):
        topology_id = f"many-{number + 1}-1"
        manifest = CodeManifest(
            topology_id=topology_id,
            artifacts=artifacts,
            uploader="localhost:1",
            uploaded_at=time.time(),
            distributor=distributor.name,
            metafile=distributor.upload(folder, topology_id),
        )
        base = StormBase(
            topology_id=topology_id,
            name=f"many-{number}",
            owner="me",
            status="ACTIVE",
            submitted_at=float(number),
            launch=1,
            conf={"some.key": "x" * 500},
        )
        create(manifest, CODE, topology_id)
        create(base, STORMS, topology_id)
        create(NameClaim(topology_id=topology_id), NAMES, base.name)
        cluster.acknowledged[topology_id] = base.name
    distributor.close()
    for each in pending:
        each.get(timeout=30)


def _schedule(cluster: Cluster, session: ZooKeeperSession, topologies: int) -> float:
    """Makes a new leader assign all topologies and drivers claim them, and undoes both; returns the leader's time."""
    nimbus = cluster.nimbus("a")
    path = session.paths.of(ASSIGNMENTS)

    def done() -> bool:
        stat = session.client.exists(path)
        return stat is not None and stat.numChildren == topologies

    wait_for(done, f"{topologies} topologies are assigned", _SECS)
    wanted = set(cluster.acknowledged)
    owners = [
        session.client.create_async(session.paths.of(OWNERS, each), _owner(each), ephemeral=True) for each in wanted
    ]
    for each in owners:
        each.get(timeout=30)
    found = examine(history.read(server.data_dir for server in cluster.ensemble.servers), cluster.root, cluster.trusted)
    began = found.leaderships[-1].time
    ended = {topology_id: at for at, topology_id in found.assignments if at >= began}
    cluster.expect(set(ended) == wanted, f"{len(ended)} of {topologies} topologies were assigned by the new leader")
    load: dict[str, int] = {}
    for topology_id in wanted:
        supervisor = (cluster.node("assignments", topology_id) or {})["supervisor_id"]
        load[supervisor] = load.get(supervisor, 0) + 1
    cluster.expect(max(load.values()) - min(load.values()) <= 1, f"spread unevenly: {load}")
    nimbus.end()
    cluster.expect(nimbus.join(), "the Nimbus did not end")
    cluster.nimbuses.remove(nimbus)
    for folder in (OWNERS, ASSIGNMENTS):
        gone = [session.client.delete_async(session.paths.of(folder, each)) for each in wanted]
        for each in gone:
            each.get(timeout=30)
    return max(ended.values()) - began


def _owner(topology_id: str) -> bytes:
    return encode(
        Ownership(topology_id=topology_id, supervisor_id="", host="", port=1, pid=1, launch=1, epoch=1),
    )
