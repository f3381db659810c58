"""The page of a component."""

from __future__ import annotations

from typing import Any

from storm_on_spark.cluster.rest.schemas.counters import BoltWindow, ExecutorStats, InputStats, OutputStats, SpoutWindow
from storm_on_spark.cluster.rest.schemas.errors import ComponentError
from storm_on_spark.cluster.rest.schemas.page import Page


class ComponentPage(Page, frozen=True, kw_only=True):
    """`topology/:id/component/:component`."""

    user: str
    id: str
    encoded_id: str
    name: str
    """Of the topology."""
    executors: int
    tasks: int
    topology_id: str
    encoded_topology_id: str
    topology_status: str
    component_type: str
    """`spout` or `bolt`."""
    window: str = ":all-time"
    window_hint: str = "All time"
    debug: bool = False
    sampling_pct: float = 10.0
    event_log_link: str = ""
    profiling_and_debugging_capable: bool = False
    profile_action_enabled: bool = False
    profiler_active: tuple[str, ...] = ()
    component_errors: tuple[ComponentError, ...]
    spout_summary: tuple[SpoutWindow, ...] | None = None
    bolt_stats: tuple[BoltWindow, ...] | None = None
    input_stats: tuple[InputStats, ...] = ()
    output_stats: tuple[OutputStats, ...] = ()
    executor_stats: tuple[ExecutorStats, ...] = ()
    metrics: dict[str, dict[str, Any]] = {}
    """What the component registered, by name; each as `MetricInfo.to_dict` gives it."""
    latencies: dict[str, dict[str, dict[str, float] | None]] = {}
    """Ours: by window, p50, p95 and p99 in ms of `execute`, `process` and `complete`; null where there was none."""
    requested_mem_on_heap: float = 0.0
    requested_mem_off_heap: float = 0.0
    requested_cpu: float = 0.0
    scheduler_display_resource: bool = False
