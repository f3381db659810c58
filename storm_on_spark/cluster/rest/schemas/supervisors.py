"""Supervisors and their workers, which are drivers here."""

from __future__ import annotations

from storm_on_spark.cluster.http.views import View
from storm_on_spark.cluster.rest.schemas.page import Page


class SupervisorStatus(View, frozen=True, kw_only=True):
    """One of `supervisor/summary`."""

    id: str
    host: str
    uptime: str
    uptime_seconds: int
    slots_total: int
    slots_used: int
    slots_free: int
    version: str
    blacklisted: bool = False
    """Whether it gets no topologies: it is drained, or its machine is not fit."""
    unhealthy: str = ""
    """Ours: why its machine is not fit, by its health checks."""
    total_mem: float = 0.0
    total_cpu: float = 0.0
    used_mem: float = 0.0
    used_cpu: float = 0.0
    avail_mem: float = 0.0
    avail_cpu: float = 0.0
    log_link: str = ""
    worker_logs_link: str = ""
    """Ours: where its drivers' logs are listed, also those of topologies that are no more; empty if nowhere."""


class Worker(View, frozen=True, kw_only=True):
    """A driver: what Storm calls a worker. A topology has one at most."""

    supervisor_id: str
    host: str
    port: int
    topology_id: str
    topology_name: str
    executors_total: int
    component_num_tasks: dict[str, int]
    uptime: str
    uptime_seconds: int
    owner: str
    assigned_mem_on_heap: float = 0.0
    assigned_mem_off_heap: float = 0.0
    assigned_cpu: float = 0.0
    worker_log_link: str = ""


class SupervisorSummaries(Page, frozen=True, kw_only=True):
    """`supervisor/summary`."""

    supervisors: tuple[SupervisorStatus, ...]
    scheduler_display_resource: bool = False


class SupervisorPage(Page, frozen=True, kw_only=True):
    """`supervisor?id=` or `supervisor?host=`."""

    supervisors: tuple[SupervisorStatus, ...]
    workers: tuple[Worker, ...]
    scheduler_display_resource: bool = False


class HostPort(View, frozen=True, kw_only=True):
    """Where a driver is."""

    host: str
    port: int


class TopologyWorkers(Page, frozen=True, kw_only=True):
    """`topology-workers/:id`."""

    host_port_list: tuple[HostPort, ...]
