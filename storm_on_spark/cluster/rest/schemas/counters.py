"""Counters of a topology, its components, their streams and executors."""

from __future__ import annotations

from storm_on_spark.cluster.http.views import View


class SpoutWindow(View, frozen=True, kw_only=True):
    """Counters of a topology or a spout. A latency is a string, as in Storm UI."""

    emitted: int
    """Each tuple once, however many tasks received it."""
    transferred: int
    """Each tuple once for every task that received it."""
    complete_latency: str
    """Milliseconds, the mean."""
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
    """Milliseconds from a tuple's arrival to its ack; both latencies are means."""
    acked: int
    failed: int
    window: str = ":all-time"
    window_pretty: str = "All time"


class InputStats(View, frozen=True, kw_only=True):
    """What a bolt got of one stream."""

    component: str
    encoded_component_id: str
    stream: str
    execute_latency: str | None
    process_latency: str | None
    executed: int | None
    acked: int | None
    failed: int | None


class OutputStats(View, frozen=True, kw_only=True):
    """What a component emitted on one stream. Ours: of a spout with several, `acked` and `failed` are null."""

    stream: str
    emitted: int | None
    transferred: int | None
    complete_latency: str | None = None
    acked: int | None = None
    failed: int | None = None


class ExecutorStats(View, frozen=True, kw_only=True):
    """An executor: some tasks of a component."""

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
