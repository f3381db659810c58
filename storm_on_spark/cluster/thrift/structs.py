"""The cluster's records as Thrift's structs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from storm_on_spark.api.text.moments import occurred
from storm_on_spark.cluster.records import ErrorRecord, NimbusSummary, StormBase
from storm_on_spark.cluster.rest.pages.summaries import topology_fields
from storm_on_spark.cluster.rest.picture.snapshot import Picture
from storm_on_spark.cluster.thrift.interface import interface


def cluster_summary(picture: Picture) -> Any:
    """Returns a `ClusterSummary`."""
    snapshot = picture.snapshot
    return interface().ClusterSummary(
        supervisors=[
            interface().SupervisorSummary(
                host=supervisor.host,
                uptime_secs=_secs(picture.now - supervisor.started_at),
                num_workers=len(supervisor.slots),
                num_used_workers=picture.slots_used.get(supervisor.supervisor_id, 0),
                supervisor_id=supervisor.supervisor_id,
                version=supervisor.version,
            )
            for supervisor in sorted(snapshot.supervisors.values(), key=lambda s: (s.host, s.supervisor_id))
        ],
        topologies=topology_summaries(picture),
        nimbuses=[
            nimbus_summary(picture, nimbus)
            for nimbus in sorted(snapshot.nimbuses.values(), key=lambda nimbus: nimbus.address)
        ],
    )


def nimbus_summary(picture: Picture, nimbus: NimbusSummary) -> Any:
    """Returns a `NimbusSummary`."""
    leader = picture.snapshot.leader
    return interface().NimbusSummary(
        host=nimbus.host,
        port=nimbus.port,
        uptime_secs=_secs(picture.now - nimbus.started_at),
        isLeader=leader is not None and leader.address == nimbus.address,
        version=nimbus.version,
    )


def topology_summaries(picture: Picture) -> list[Any]:
    """Returns a `TopologySummary` for each topology, by name."""
    bases = sorted(picture.snapshot.storms.values(), key=lambda base: (base.name, base.topology_id))
    return [topology_summary(picture, base) for base in bases]


def topology_summary(picture: Picture, base: StormBase) -> Any:
    """Returns a `TopologySummary`."""
    fields = topology_fields(picture, base)
    return interface().TopologySummary(
        num_tasks=fields["tasks_total"],
        num_executors=fields["executors_total"],
        num_workers=fields["workers_total"],
        topology_version=fields["topology_version"],
        **_common(fields),
    )


def topology_info(
    picture: Picture, base: StormBase, errors: Mapping[str, Sequence[ErrorRecord]], most_errors: int | None = None
) -> Any:
    """Returns a `TopologyInfo`; executors have a place only while the topology has a slot.

    Args:
        picture: the cluster.
        base: of the topology.
        errors: its components' last errors, oldest first.
        most_errors: of a component, the newest ones; None for all.
    """
    return interface().TopologyInfo(
        executors=_executors(picture, base),
        errors={
            component: [
                interface().ErrorInfo(
                    error=_error_text(error),
                    error_time_secs=int(error.time),
                    host=error.host,
                    port=error.port,
                )
                for error in list(reversed(found))[:most_errors]
            ]
            for component, found in errors.items()
        },
        **_common(topology_fields(picture, base)),
    )


def _error_text(error: ErrorRecord) -> str:
    """Returns what Storm's struct has no field for, too: the input, and how many equal errors there were."""
    first = error.time if error.first_time is None else error.first_time
    more = [f"input: {error.input}"] if error.input else []
    more += [occurred(error.count, first, error.time)] if error.count > 1 else []
    return "\n".join([(error.trace or error.message).rstrip("\n"), *more]) if more else error.trace or error.message


def _common(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": fields["id"],
        "name": fields["name"],
        "uptime_secs": fields["uptime_seconds"],
        "status": fields["status"],
        "storm_version": fields["storm_version"],
        "sched_status": fields["scheduler_info"],
        "owner": fields["owner"],
        "replication_count": fields["replication_count"],
    }


def _executors(picture: Picture, base: StormBase) -> list[Any]:
    assignment = picture.snapshot.assignments.get(base.topology_id)
    plan = picture.plan(base.topology_id)
    if assignment is None or plan is None:
        return []
    counts = {name: executors for name, (_, _, executors) in picture.components(base).items()}
    groups = [(name, part.tasks, counts[name]) for name, part in plan.components.items()]
    groups.append(("__acker", plan.acker_tasks, len(plan.acker_tasks)))
    uptime = _secs(picture.now - assignment.assigned_at)
    found = []
    for name, tasks, executors in groups:
        for start, end in _shares(tasks, executors):
            found.append(
                interface().ExecutorSummary(
                    executor_info=interface().ExecutorInfo(task_start=start, task_end=end),
                    component_id=name,
                    host=assignment.host,
                    port=assignment.port,
                    uptime_secs=uptime,
                )
            )
    return found


def _shares(tasks: Sequence[int], executors: int) -> list[tuple[int, int]]:
    """Returns the first and last task of each executor; the tasks of a component are numbered in a row."""
    if not tasks:
        return []
    size, more = divmod(len(tasks), max(1, executors))
    found, at = [], 0
    for index in range(max(1, executors)):
        end = at + size + (index < more)
        if end > at:
            found.append((tasks[at], tasks[end - 1]))
        at = end
    return found


def _secs(duration: float) -> int:
    return max(0, int(duration))
