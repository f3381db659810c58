"""The data of the pages: a snapshot of the cluster, and values derived from it."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import quote

import msgspec

from storm_on_spark.api.info import MetricInfo, TopologyInfo
from storm_on_spark.cluster.heartbeats.knowledge import Knowledge
from storm_on_spark.cluster.nimbus.control import Control
from storm_on_spark.cluster.nimbus.scheduling.scheduler import Unknown, finished, schedule
from storm_on_spark.cluster.plan_summary import PlanSummary
from storm_on_spark.cluster.records import StormBase, SupervisorInfo, WorkerBeat
from storm_on_spark.cluster.rest.picture.kept import Kept
from storm_on_spark.cluster.rest.schemas import RunningPlan
from storm_on_spark.cluster.security.tls import Scheme
from storm_on_spark.cluster.state.snapshot import ClusterSnapshot
from storm_on_spark.metrics.packed import PackedWindows


def driver_info(beat: WorkerBeat | None) -> TopologyInfo | None:
    """Returns what a beat says; None without one, or for one that makes no sense.

    What a beat says is worked out once for all who ask: REST, Thrift, `/metrics` and the pages.
    """
    return None if beat is None else _INFOS.of(beat.topology_id, (beat,), lambda: _unpacked(beat))


_INFOS: Final = Kept[TopologyInfo | None]()


def _unpacked(beat: WorkerBeat) -> TopologyInfo | None:
    try:
        components = {
            name: {
                "id": name,
                **part,
                "metrics": {key: MetricInfo.fields_of(key, m) for key, m in part.get("metrics", {}).items()},
            }
            for name, part in beat.info.get("components", {}).items()
        }
        found = {"name": beat.topology_id, **beat.info, "components": components}
        windows = PackedWindows(str(found.pop("windows", "")))
        return replace(msgspec.convert(found, TopologyInfo, str_keys=True), windows=windows)
    except (msgspec.ValidationError, TypeError, ValueError, AttributeError, KeyError):
        return None


@dataclass(frozen=True)
class Picture:
    """The cluster as a Nimbus sees it at one moment."""

    snapshot: ClusterSnapshot
    now: float
    """Seconds since the epoch."""
    user: str
    version: str
    stale_since: float | None = None
    scheme: Scheme = "http"
    """Of URLs in this cluster."""
    heartbeats: Knowledge = Knowledge()  # noqa: RUF009 # it never changes
    """The state of all heartbeats together."""

    @classmethod
    def of(cls, control: Control) -> Picture:
        """Returns the cluster as a Nimbus sees it now."""
        return cls(
            control.snapshot(),
            control.now(),
            control.user,
            control.version,
            control.stale_since,
            control.scheme,
            control.heartbeats(),
        )

    @property
    def freshness(self) -> dict[str, Any]:
        """The fields of every page about its age."""
        return {
            "stale": self.stale_since is not None,
            "stale_since": self.stale_since,
            "heartbeats_unknown_since": self.heartbeats.unknown_since,
            "heartbeats_unknown": self.heartbeats.reason,
        }

    @functools.cached_property
    def waiting(self) -> Mapping[str, str]:
        """Topology id -> why it has no slot."""
        snapshot = self.snapshot
        return schedule(
            snapshot.storms,
            snapshot.assignments,
            snapshot.supervisors,
            snapshot.owners,
            finished(snapshot.storms, snapshot.workerbeats),
            epoch=0,
            now=self.now,
            unknown=Unknown.of(snapshot),
        ).waiting

    @functools.cached_property
    def slots_used(self) -> Mapping[str, int]:
        """Supervisor id -> how many of its slots have a topology."""
        used: dict[str, set[int]] = {}
        for assignment in self.snapshot.assignments.values():
            used.setdefault(assignment.supervisor_id, set()).add(assignment.port)
        return {supervisor: len(ports) for supervisor, ports in used.items()}

    def plan(self, topology_id: str) -> PlanSummary | None:
        """Returns what a topology compiled to, if it said so when it was submitted."""
        code = self.snapshot.code.get(topology_id)
        return None if code is None else code.manifest.plan

    def info(self, topology_id: str) -> TopologyInfo | None:
        """Returns what a topology's driver said last, if it is of the present launch."""
        beat = self.snapshot.workerbeats.get(topology_id)
        base = self.snapshot.storms.get(topology_id)
        return driver_info(beat) if beat is not None and base is not None and beat.launch == base.launch else None

    def running_plan(self, topology_id: str) -> RunningPlan | None:
        """Returns the plan that a topology's driver runs, if it is of the present launch and says so."""
        beat = self.snapshot.workerbeats.get(topology_id)
        base = self.snapshot.storms.get(topology_id)
        if beat is None or base is None or beat.launch != base.launch or not beat.plan:
            return None
        try:
            return msgspec.convert(beat.plan, RunningPlan)
        except msgspec.ValidationError:
            return None

    def logs_link(self, supervisor: SupervisorInfo) -> str:
        """Returns where the logs on a supervisor's host are listed; empty if nowhere."""
        return f"{self.scheme}://{supervisor.logs}/api/v1/logs" if supervisor.logs else ""

    def log_link(self, topology_id: str, supervisor_id: str, port: int, name: str = "worker.log") -> str:
        """Returns where the log of a driver can be read; empty if nowhere."""
        supervisor = self.snapshot.supervisors.get(supervisor_id)
        if supervisor is None or not supervisor.logs:
            return ""
        return f"{self.scheme}://{supervisor.logs}/api/v1/log?file={quote(f'{topology_id}/{port}/{name}', safe='')}"

    def components(self, base: StormBase) -> dict[str, tuple[str, int, int]]:
        """Returns component -> (kind, tasks, executors), from the plan, else from what the driver said."""
        plan = self.plan(base.topology_id)
        if plan is not None:
            found = {name: (part.kind, len(part.tasks), part.executors) for name, part in plan.components.items()}
        else:
            info = self.info(base.topology_id)
            counted = {} if info is None else info.components
            found = {name: (part.kind, part.tasks, part.tasks) for name, part in counted.items()}
        return {
            name: (kind, tasks, min(base.executors.get(name, executors), tasks))
            for name, (kind, tasks, executors) in found.items()
        }

    def totals(self, base: StormBase) -> tuple[int, int]:
        """Returns how many tasks and executors a topology has, ackers included."""
        plan = self.plan(base.topology_id)
        ackers = 0 if plan is None else len(plan.acker_tasks)
        parts = self.components(base).values()
        return ackers + sum(tasks for _, tasks, _ in parts), ackers + sum(executors for _, _, executors in parts)
