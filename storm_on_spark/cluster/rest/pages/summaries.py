"""Storm UI's summaries: of the cluster, its Nimbuses, its supervisors and its topologies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote

from storm_on_spark.cluster.heartbeats.knowledge import PacemakerState
from storm_on_spark.cluster.nimbus.scheduling.draining import drained_of
from storm_on_spark.cluster.paths import STORMS
from storm_on_spark.cluster.records import Assignment, StormBase, SupervisorInfo
from storm_on_spark.cluster.rest.pages.durations import pretty
from storm_on_spark.cluster.rest.picture.settings import PageSettings
from storm_on_spark.cluster.rest.picture.snapshot import Picture
from storm_on_spark.cluster.rest.schemas import (
    ClusterSummary,
    HostPort,
    NimbusEntry,
    NimbusStatus,
    NimbusSummaries,
    PacemakerEntry,
    SupervisorPage,
    SupervisorStatus,
    SupervisorSummaries,
    TopologyStatus,
    TopologySummaries,
    TopologyWorkers,
    Worker,
)


def cluster_summary(picture: Picture) -> ClusterSummary:
    """Returns `cluster/summary`."""
    snapshot, now = picture.snapshot, picture.now
    leader = snapshot.leader.address if snapshot.leader is not None else None
    total = sum(len(supervisor.slots) for supervisor in snapshot.supervisors.values())
    used = sum(picture.slots_used.get(name, 0) for name in snapshot.supervisors)
    counts = [picture.totals(base) for base in snapshot.storms.values() if base.topology_id in snapshot.assignments]
    nimbuses = sorted(snapshot.nimbuses.values(), key=lambda nimbus: nimbus.address)
    uptime = next((now - nimbus.started_at for nimbus in nimbuses if nimbus.address == leader), 0.0)
    return ClusterSummary(
        heartbeat_store=picture.heartbeats.store,
        pacemakers=tuple(map(_pacemaker, picture.heartbeats.pacemakers)),
        user=picture.user,
        storm_version=picture.version,
        nimbus_uptime=pretty(uptime),
        supervisors=len(snapshot.supervisors),
        topologies=len(snapshot.storms),
        slots_total=total,
        slots_used=used,
        slots_free=max(0, total - used),
        executors_total=sum(executors for _, executors in counts),
        tasks_total=sum(tasks for tasks, _ in counts),
        nimbuses=tuple(
            NimbusEntry(
                host=nimbus.host,
                port=nimbus.port,
                uptime_secs=_seconds(now - nimbus.started_at),
                is_leader=nimbus.address == leader,
                version=nimbus.version,
            )
            for nimbus in nimbuses
        ),
        problems=tuple(snapshot.problems.values()),
        **picture.freshness,
    )


def _pacemaker(state: PacemakerState) -> PacemakerEntry:
    return PacemakerEntry(
        server=state.server,
        away_since=state.away_since,
        problem=state.problem,
        heartbeats=state.pulses,
        bytes=state.bytes,
        writes_per_sec=round(state.writes_per_sec, 1),
        read_secs=round(state.read_secs, 4),
        writers=state.writers,
    )


def nimbus_summary(picture: Picture, seeds: Sequence[str], default_port: int) -> NimbusSummaries:
    """Returns `nimbus/summary`; seeds that aren't registered are offline."""
    snapshot, now = picture.snapshot, picture.now
    leader = snapshot.leader.address if snapshot.leader is not None else None
    found = []
    for nimbus in sorted(snapshot.nimbuses.values(), key=lambda nimbus: (nimbus.address != leader, nimbus.address)):
        uptime = now - nimbus.started_at
        found.append(
            NimbusStatus(
                host=nimbus.host,
                port=nimbus.port,
                status="Leader" if nimbus.address == leader else "Not a Leader",
                version=nimbus.version,
                nimbus_up_time=pretty(uptime),
                nimbus_up_time_seconds=str(_seconds(uptime)),
                missing_code=tuple(
                    sorted(
                        name
                        for name in snapshot.storms
                        if name not in snapshot.code or nimbus.address not in snapshot.code[name].replicas
                    )
                ),
            )
        )
    known = {nimbus.address for nimbus in snapshot.nimbuses.values()} | {n.host for n in snapshot.nimbuses.values()}
    for seed in seeds:
        host, _, port = seed.partition(":")
        if seed not in known and host not in known:
            found.append(_offline(host, int(port) if port.isdecimal() else default_port))
    return NimbusSummaries(nimbuses=tuple(found), **picture.freshness)


def supervisor_summary(picture: Picture) -> SupervisorSummaries:
    """Returns `supervisor/summary`."""
    return SupervisorSummaries(
        supervisors=tuple(_supervisors(picture, picture.snapshot.supervisors.values())), **picture.freshness
    )


def supervisor_page(picture: Picture, supervisor_id: str | None, host: str | None) -> SupervisorPage:
    """Returns `supervisor?id=` or `supervisor?host=`; the id counts where both are given."""
    chosen = [
        supervisor
        for supervisor in picture.snapshot.supervisors.values()
        if (supervisor.supervisor_id == supervisor_id if supervisor_id is not None else supervisor.host == host)
    ]
    ids = {supervisor.supervisor_id for supervisor in chosen}
    found = [
        worker(picture, picture.snapshot.storms[assignment.topology_id], assignment)
        for assignment in picture.snapshot.assignments.values()
        if assignment.supervisor_id in ids and assignment.topology_id in picture.snapshot.storms
    ]
    return SupervisorPage(
        supervisors=tuple(_supervisors(picture, chosen)),
        workers=tuple(sorted(found, key=lambda w: (w.host, w.port))),
        **picture.freshness,
    )


def topology_summary(picture: Picture) -> TopologySummaries:
    """Returns `topology/summary`."""
    bases = sorted(picture.snapshot.storms.values(), key=lambda base: (base.name, base.topology_id))
    return TopologySummaries(
        topologies=tuple(TopologyStatus(**topology_fields(picture, base)) for base in bases),
        unreadable={name: problem.reason for name, problem in sorted(picture.snapshot.unread(STORMS).items())},
        **picture.freshness,
    )


def topology_workers(picture: Picture, base: StormBase) -> TopologyWorkers:
    """Returns `topology-workers/:id`."""
    assignment = picture.snapshot.assignments.get(base.topology_id)
    places = () if assignment is None else (HostPort(host=assignment.host, port=assignment.port),)
    return TopologyWorkers(host_port_list=places, **picture.freshness)


def topology_fields(picture: Picture, base: StormBase) -> dict[str, Any]:
    """Returns the fields of a `TopologyStatus`."""
    snapshot = picture.snapshot
    tasks, executors = picture.totals(base)
    uptime = picture.now - base.submitted_at
    info = picture.info(base.topology_id)
    code = snapshot.code.get(base.topology_id)
    version = PageSettings.of(base.conf).version
    return {
        "id": base.topology_id,
        "encoded_id": quote(base.topology_id, safe=""),
        "owner": base.owner,
        "name": base.name,
        "status": base.status,
        "uptime": pretty(uptime),
        "uptime_seconds": _seconds(uptime),
        "tasks_total": tasks,
        "workers_total": int(base.topology_id in snapshot.assignments),
        "executors_total": executors,
        "replication_count": 0 if code is None else len(code.replicas),
        "scheduler_info": picture.waiting.get(base.topology_id),
        "topology_version": version,
        "storm_version": picture.version,
        "driver_status": None if info is None else info.status,
    }


def worker(picture: Picture, base: StormBase, assignment: Assignment) -> Worker:
    """Returns the driver of a topology as Storm UI shows a worker."""
    beat = picture.snapshot.workerbeats.get(base.topology_id)
    same = beat is not None and (beat.supervisor_id, beat.port) == (assignment.supervisor_id, assignment.port)
    uptime = picture.now - (beat.started_at if beat is not None and same else assignment.assigned_at)
    _, executors = picture.totals(base)
    return Worker(
        supervisor_id=assignment.supervisor_id,
        host=assignment.host,
        port=assignment.port,
        topology_id=base.topology_id,
        topology_name=base.name,
        executors_total=executors,
        component_num_tasks={name: tasks for name, (_, tasks, _) in picture.components(base).items()},
        uptime=pretty(uptime),
        uptime_seconds=_seconds(uptime),
        owner=base.owner,
        worker_log_link=picture.log_link(base.topology_id, assignment.supervisor_id, assignment.port),
    )


def _supervisors(picture: Picture, chosen: Iterable[SupervisorInfo]) -> list[SupervisorStatus]:
    found, drained = [], drained_of(picture.snapshot)
    for supervisor in sorted(chosen, key=lambda s: (s.host, s.supervisor_id)):
        uptime = picture.now - supervisor.started_at
        ill = picture.snapshot.unhealthy.get(supervisor.supervisor_id)
        used = picture.slots_used.get(supervisor.supervisor_id, 0)
        found.append(
            SupervisorStatus(
                id=supervisor.supervisor_id,
                host=supervisor.host,
                uptime=pretty(uptime),
                uptime_seconds=_seconds(uptime),
                slots_total=len(supervisor.slots),
                slots_used=used,
                slots_free=0 if supervisor.supervisor_id in drained else max(0, len(supervisor.slots) - used),
                blacklisted=supervisor.supervisor_id in drained,
                unhealthy="" if ill is None else ill.reason,
                version=supervisor.version,
                worker_logs_link=picture.logs_link(supervisor),
            )
        )
    return found


def _offline(host: str, port: int) -> NimbusStatus:
    return NimbusStatus(
        host=host,
        port=port,
        status="Offline",
        version="Not applicable",
        nimbus_up_time="Not applicable",
        nimbus_up_time_seconds="Not applicable",
    )


def _seconds(duration: float) -> int:
    return max(0, int(duration))
