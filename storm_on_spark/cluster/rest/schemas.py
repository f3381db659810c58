"""The answers of the REST interface, with Storm UI's field names and types.

Where Storm UI has something that doesn't exist here, the field is there with the value that Storm UI gives when it is
switched off: memory and CPU are 0.0 (Spark schedules the tasks). Counters are those since the driver started, so the
only window is `:all-time`. What is ours is marked so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from storm_on_spark.cluster.http.views import View


class Page(View, frozen=True, kw_only=True):
    """An answer as a whole. Ours: whether it is what was known before ZooKeeper went away, and since when."""

    stale: bool = False
    stale_since: float | None = None
    """Seconds since the epoch."""
    heartbeats_unknown_since: float | None = None
    """Ours: since when nothing is known of any driver's heartbeats, in seconds since the epoch; else null."""
    heartbeats_unknown: str = ""
    """Ours: why."""


class PacemakerEntry(View, frozen=True, kw_only=True):
    """A Pacemaker."""

    server: str
    """`host:port`."""
    away_since: float | None
    """Seconds since the epoch; null while it answers this Nimbus."""
    problem: str
    """Why it doesn't."""
    heartbeats: int
    """How many it has."""
    bytes: int
    """Of their values."""
    writes_per_sec: float
    """New heartbeats a second, at least: of what is overwritten between two looks one counts."""
    read_secs: float
    """How long this Nimbus took to read all of them the last time."""
    writers: tuple[str, ...]
    """The latest writers here: drivers as `<topology id>/<supervisor id>-<port>`, and `__supervisors/<id>`."""


class NimbusEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A Nimbus as in Storm's Thrift `ClusterSummary`; ours in REST."""

    host: str
    port: int
    uptime_secs: int
    is_leader: bool
    version: str


class ClusterSummary(Page, frozen=True, kw_only=True):
    """`cluster/summary`."""

    heartbeat_store: str = "zookeeper"
    """Ours: who keeps drivers' heartbeats, `zookeeper` or `pacemaker`."""
    pacemakers: tuple[PacemakerEntry, ...] = ()
    """Ours: as the Nimbus sees them that answers."""
    user: str
    storm_version: str
    nimbus_uptime: str
    """Of the leader; Storm UI had it until 0.9, and clients still read it."""
    supervisors: int
    topologies: int
    slots_total: int
    slots_used: int
    slots_free: int
    executors_total: int
    tasks_total: int
    total_mem: float = 0.0
    total_cpu: float = 0.0
    avail_mem: float = 0.0
    avail_cpu: float = 0.0
    mem_assigned_percent_util: float = 0.0
    cpu_assigned_percent_util: float = 0.0
    scheduler_display_resource: bool = False
    nimbuses: tuple[NimbusEntry, ...] = ()
    problems: tuple[str, ...] = ()
    """Ours: what in ZooKeeper can't be read."""


class NimbusStatus(View, frozen=True, kw_only=True):
    """One of `nimbus/summary`."""

    host: str
    port: int
    status: str
    """`Leader`, `Not a Leader` or `Offline`."""
    version: str
    nimbus_up_time: str
    nimbus_up_time_seconds: str
    nimbus_log_link: str = ""
    missing_code: tuple[str, ...] = ()
    """Ours: ids of the topologies whose code it lacks, which is what keeps a Nimbus from leading."""


class NimbusSummaries(Page, frozen=True, kw_only=True):
    """`nimbus/summary`."""

    nimbuses: tuple[NimbusStatus, ...]


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


class SpoutWindow(View, frozen=True, kw_only=True):
    """Counters of a topology or a spout. A latency is a string, as in Storm UI."""

    emitted: int
    """Each tuple once, however many tasks received it."""
    transferred: int
    """Each tuple once for every task that received it."""
    complete_latency: str
    """Milliseconds, the median."""
    acked: int
    failed: int
    window: str = ":all-time"
    window_pretty: str = "All time"


class BoltWindow(View, frozen=True, kw_only=True):
    """Counters of a bolt."""

    emitted: int
    transferred: int
    execute_latency: str
    executed: int
    process_latency: str
    """Milliseconds; a tuple is acked where it is executed, so both latencies are the same here."""
    acked: int
    failed: int
    window: str = ":all-time"
    window_pretty: str = "All time"


class ErrorFields(View, frozen=True, kw_only=True):
    """The newest error of a component; empty without one."""

    last_error: str = ""
    error_host: str = ""
    error_port: int | None = None
    error_time: int | None = None
    error_lapsed_secs: int | None = None
    error_worker_log_link: str = ""
    error_count: int = 0
    """Ours, as those below: see `ComponentError`."""
    error_first_time: int | None = None
    error_before_restart: bool = False
    error_input: str = ""


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


class RunningOperator(View, frozen=True, kw_only=True):
    """An operator of the plan that runs, as in `storm-spark explain --json`."""

    stages: tuple[int, ...]
    """Numbers of the stages that it executes."""
    exchange: bool
    state: bool
    source: str | None
    becomes: str


class RunningStage(View, frozen=True, kw_only=True):
    """A stage of the plan that runs, as in `storm-spark explain --json`."""

    index: int
    kind: str
    components: tuple[str, ...]


class RunningPlan(View, frozen=True, kw_only=True):
    """The plan that runs: the same fields and words as in `storm-spark explain --json`."""

    partitions: int
    operators: tuple[RunningOperator, ...]
    stages: tuple[RunningStage, ...]


class TopologyPage(TopologyStatus, frozen=True, kw_only=True):
    """`topology/:id`."""

    stale: bool = False
    stale_since: float | None = None
    heartbeats_unknown_since: float | None = None
    heartbeats_unknown: str = ""
    msg_timeout: int
    window: str = ":all-time"
    window_hint: str = "All time"
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
    failure: str | None = None
    """Ours: why the topology failed, if it did. Not `error`: clients take that for one of the request."""
    log_link: str = ""
    """Ours: where the log of its driver can be read; of the last one if none runs."""
    system_errors: dict[str, tuple[ComponentError, ...]] = {}
    """Ours: the last errors of what is no component of the topology's: `__acker`, and `__system` for its driver."""
    metrics: dict[str, dict[str, Any]] = {}
    """Ours: what components registered, by component and name; each as `MetricInfo.to_dict` gives it."""
    plan: RunningPlan | None = None
    """Ours: the operators that its driver runs; null while none runs."""


class InputStats(View, frozen=True, kw_only=True):
    """What a bolt got of one stream. Ours: None where a bolt has several inputs, which are counted together."""

    component: str
    encoded_component_id: str
    stream: str
    execute_latency: str | None
    process_latency: str | None
    executed: int | None
    acked: int | None
    failed: int | None


class OutputStats(View, frozen=True, kw_only=True):
    """What a component emitted on one stream. Ours: None where it has several, which are counted together."""

    stream: str
    emitted: int | None
    transferred: int | None
    complete_latency: str | None = None
    acked: int | None = None
    failed: int | None = None


class ExecutorStats(View, frozen=True, kw_only=True):
    """Tasks of a component in one driver; all of them, since they are counted together."""

    id: str
    encoded_id: str
    host: str
    port: int
    uptime: str
    uptime_seconds: int
    emitted: int
    transferred: int
    acked: int
    failed: int
    complete_latency: str | None = None
    execute_latency: str | None = None
    executed: int | None = None
    process_latency: str | None = None
    capacity: str | None = None
    worker_log_link: str = ""


class ComponentError(View, frozen=True, kw_only=True):
    """An error of a component: the last of equal ones."""

    error: str
    error_time: int
    error_host: str
    error_port: int
    error_lapsed_secs: int
    error_worker_log_link: str = ""
    task: int
    """Ours."""
    trace: str = ""
    """Ours: the traceback with the frames of the user's own code; empty where there is none."""
    file: str = ""
    """Ours: the file of the innermost of these frames."""
    line: int | None = None
    """Ours: its line."""
    input: str = ""
    """Ours: the tuple that was executed, cut to 200 characters and without secrets; empty where that is not known."""
    count: int = 1
    """Ours: how many equal errors there were."""
    first_time: int
    """Ours: when there was the first of them."""
    before_restart: bool = False
    """Ours: whether the driver has been started since."""


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
    requested_mem_on_heap: float = 0.0
    requested_mem_off_heap: float = 0.0
    requested_cpu: float = 0.0
    scheduler_display_resource: bool = False


class HostPort(View, frozen=True, kw_only=True):
    """Where a driver is."""

    host: str
    port: int


class TopologyWorkers(Page, frozen=True, kw_only=True):
    """`topology-workers/:id`."""

    host_port_list: tuple[HostPort, ...]


class PartitionLag(View, frozen=True, kw_only=True):
    """A partition of a topic, as storm-kafka-monitor tells of it."""

    consumer_committed_offset: int
    """-1 where the group has committed nothing."""
    log_head_offset: int
    lag: int


class SpoutLag(View, frozen=True, kw_only=True):
    """How far a spout is behind: `spoutLagResult` by topic and partition, or `errorInfo`."""

    spout_id: str
    spout_type: str = "KAFKA"
    spout_lag_result: dict[str, dict[str, PartitionLag]] | None = None
    error_info: str | None = None


class TopologyErrors(Page, frozen=True, kw_only=True):
    """`topology/:id/errors`, ours: errors by component, oldest first; equal ones are one."""

    topology_id: str
    errors: dict[str, tuple[ComponentError, ...]]
