"""Topologies: the summary of all, and the page of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from storm_on_spark.cluster.http.views import View
from storm_on_spark.cluster.rest.schemas.counters import SpoutWindow
from storm_on_spark.cluster.rest.schemas.errors import ComponentError, ErrorFields
from storm_on_spark.cluster.rest.schemas.page import Page
from storm_on_spark.cluster.rest.schemas.plan import RunningPlan
from storm_on_spark.cluster.rest.schemas.supervisors import Worker


class TopologyStatus(View, frozen=True, kw_only=True):
    """One of `topology/summary`."""

    id: str
    encoded_id: str
    owner: str
    name: str
    status: str
    uptime: str
    uptime_seconds: int
    tasks_total: int
    workers_total: int
    executors_total: int
    replication_count: int
    scheduler_info: str | None
    """Why it has no slot."""
    topology_version: str | None = None
    storm_version: str = ""
    requested_mem_on_heap: float = 0.0
    requested_mem_off_heap: float = 0.0
    requested_total_mem: float = 0.0
    requested_cpu: float = 0.0
    assigned_mem_on_heap: float = 0.0
    assigned_mem_off_heap: float = 0.0
    assigned_total_mem: float = 0.0
    assigned_cpu: float = 0.0
    driver_status: str | None = None
    """Ours: what its driver said last: ACTIVE, INACTIVE, COMPLETED, FAILED; None before its first word."""


class TopologySummaries(Page, frozen=True, kw_only=True):
    """`topology/summary`."""

    topologies: tuple[TopologyStatus, ...]
    scheduler_display_resource: bool = False
    unreadable: dict[str, str] = {}
    """Ours: ids of the topologies that are there and can't be read by this release, and why."""


class SpoutLine(ErrorFields, frozen=True, kw_only=True):
    """A spout on a topology's page."""

    spout_id: str
    encoded_spout_id: str
    executors: int
    tasks: int
    emitted: int
    transferred: int
    complete_latency: str
    acked: int
    failed: int
    requested_mem_on_heap: float = 0.0
    requested_mem_off_heap: float = 0.0
    requested_cpu: float = 0.0


class BoltLine(ErrorFields, frozen=True, kw_only=True):
    """A bolt on a topology's page."""

    bolt_id: str
    encoded_bolt_id: str
    executors: int
    tasks: int
    emitted: int
    transferred: int
    capacity: str
    execute_latency: str
    executed: int
    process_latency: str
    acked: int
    failed: int
    requested_mem_on_heap: float = 0.0
    requested_mem_off_heap: float = 0.0
    requested_cpu: float = 0.0


class WarningLine(View, frozen=True, kw_only=True):
    """An early warning. Ours."""

    rule: str
    component: str
    """Empty for the whole topology."""
    text: str
    advice: str


class TopologyPage(TopologyStatus, frozen=True, kw_only=True):
    """`topology/:id`."""

    stale: bool = False
    stale_since: float | None = None
    heartbeats_unknown_since: float | None = None
    heartbeats_unknown: str = ""
    msg_timeout: int
    window: str = ":all-time"
    window_hint: str = "All time"
    window_secs: float = 0.0
    """Ours: how long the window is, in which components counted."""
    debug: bool = False
    sampling_pct: float = 10.0
    configuration: dict[str, Any]
    topology_stats: tuple[SpoutWindow, ...]
    """As in Storm: what all components emitted and transferred, beside acks and fails of spout tuples."""
    spout_stats: SpoutWindow
    """Ours: the spouts alone, so that all its counters are of the same tuples."""
    spouts: tuple[SpoutLine, ...]
    bolts: tuple[BoltLine, ...]
    workers: tuple[Worker, ...]
    scheduler_display_resource: bool = False
    pending: int = 0
    """Ours: spout tuples that are neither acked nor failed."""
    complete_latency_ms: Mapping[str, float] | None = None
    """Ours: p50, p95 and p99."""
    mode: str = ""
    """Ours: how tuples are executed at the moment, in `real time` or `micro-batches`."""
    repetition: dict[str, int] | None = None
    """Ours: rounds of real time that are executed again since a live process was lost, `executed` of `rounds`."""
    failure: str | None = None
    """Ours: why the topology failed, if it did. Not `error`: clients take that for one of the request."""
    log_link: str = ""
    """Ours: where the log of its driver can be read; of the last one if none runs."""
    system_errors: dict[str, tuple[ComponentError, ...]] = {}
    """Ours: the last errors of what is not a component of the topology's: `__acker`, and `__system` for its driver."""
    metrics: dict[str, dict[str, Any]] = {}
    """Ours: what components registered, by component and name; each as `MetricInfo.to_dict` gives it."""
    plan: RunningPlan | None = None
    """Ours: the operators that its driver runs; null while none runs."""
    load: dict[str, Any] | None = None
    """Ours: the fields of `LoadInfo`."""
    log_levels: dict[str, str] = {}
    """Ours: logger -> the level that it has while the topology runs, where that was changed."""
    warnings: tuple[WarningLine, ...] = ()
    """Ours: what deserves a look before it is a failure."""
