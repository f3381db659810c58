"""What the runtime reads of the configuration, typed; each class is what one part of it needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from storm_on_spark.api.config import Config
from storm_on_spark.api.config.settings import Settings


@dataclass(frozen=True)
class SpoutSettings(Settings):
    """Settings of a spout's tasks."""

    max_pending: Annotated[int | None, Config.TOPOLOGY_MAX_SPOUT_PENDING]
    log_max_bytes: Annotated[int, Config.TOPOLOGY_SPOUT_LOG_MAX_BYTES]
    batch_max_tuples: Annotated[int, Config.TOPOLOGY_BATCH_MAX_TUPLES]
    durability: Annotated[str | None, Config.TOPOLOGY_DURABILITY]


@dataclass(frozen=True)
class BoltSettings(Settings):
    """Settings of a bolt's tasks."""

    fail_fast: Annotated[bool, Config.TOPOLOGY_FAIL_FAST]
    tick_secs: Annotated[int | None, Config.TOPOLOGY_TICK_TUPLE_FREQ_SECS]
    state_memory_mb: Annotated[int, Config.TOPOLOGY_STATE_MEMORY_MB]
    attribute_warn_mb: Annotated[int, Config.TOPOLOGY_STATE_ATTRIBUTE_WARN_MB]


@dataclass(frozen=True)
class HookSettings(Settings):
    """Settings of the hooks that every task gets."""

    debug: Annotated[bool, Config.TOPOLOGY_DEBUG]
    names: Annotated[tuple[str, ...] | None, Config.TOPOLOGY_AUTO_TASK_HOOKS]


@dataclass(frozen=True)
class WorkerSettings(Settings):
    """Settings of a process that runs tasks."""

    threads: Annotated[int, Config.TOPOLOGY_WORKER_SHARED_THREAD_POOL_SIZE]


@dataclass(frozen=True)
class BatchSettings(Settings):
    """Settings of micro-batches and the hosts of spouts."""

    workers: Annotated[int, Config.TOPOLOGY_WORKERS]
    max_tuples: Annotated[int, Config.TOPOLOGY_BATCH_MAX_TUPLES]
    max_secs: Annotated[float, Config.TOPOLOGY_BATCH_MAX_SECS]
    min_interval_ms: Annotated[int, Config.TOPOLOGY_BATCH_MIN_INTERVAL_MS]


@dataclass(frozen=True)
class TrackingSettings(Settings):
    """Settings of tuple trees.

    Example:
        >>> TrackingSettings.of({"topology.message.timeout.secs": 2}).timeout_ms
        2000
    """

    timeout_secs: Annotated[int, Config.TOPOLOGY_MESSAGE_TIMEOUT_SECS]
    timeouts: Annotated[bool, Config.TOPOLOGY_ENABLE_MESSAGE_TIMEOUTS]

    @property
    def timeout_ms(self) -> int:
        """After this time a tree times out, if trees do."""
        return 1000 * self.timeout_secs


@dataclass(frozen=True)
class ReportSettings(Settings):
    """Settings of reports about errors and hanging tasks."""

    max_errors: Annotated[int, Config.TOPOLOGY_MAX_ERROR_REPORT_PER_INTERVAL]
    interval_secs: Annotated[int, Config.TOPOLOGY_ERROR_THROTTLE_INTERVAL_SECS]
    stall_secs: Annotated[int, Config.TOPOLOGY_TASK_STALL_SECS]
    metrics_port: Annotated[int | None, Config.TOPOLOGY_METRICS_PORT]
    otlp_endpoint: Annotated[str | None, Config.TOPOLOGY_METRICS_OTLP_ENDPOINT]
    consumers: Annotated[object | None, Config.TOPOLOGY_METRICS_CONSUMER_REGISTER]
    event_loggers: Annotated[object | None, Config.TOPOLOGY_EVENT_LOGGER_REGISTER]
    bucket_secs: Annotated[int, Config.TOPOLOGY_BUILTIN_METRICS_BUCKET_SIZE_SECS]
