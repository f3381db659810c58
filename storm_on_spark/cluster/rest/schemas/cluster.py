"""The cluster and its Nimbuses."""

from __future__ import annotations

import msgspec

from storm_on_spark.cluster.http.views import View
from storm_on_spark.cluster.rest.schemas.page import Page


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
