"""The supervisor's settings, parsed from the configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from storm_on_spark.api.config import Config
from storm_on_spark.api.config.settings import Settings


@dataclass(frozen=True)
class SupervisorSettings(Settings):
    """Settings of a supervisor itself."""

    local_dir: Annotated[str, Config.STORM_LOCAL_DIR]
    hostname: Annotated[str | None, Config.STORM_LOCAL_HOSTNAME]
    enable: Annotated[bool, Config.SUPERVISOR_ENABLE]
    ports: Annotated[tuple[int, ...], Config.SUPERVISOR_SLOTS_PORTS]
    spare_drivers: Annotated[int, Config.SUPERVISOR_SPARE_DRIVERS]
    heartbeat_secs: Annotated[int, Config.SUPERVISOR_HEARTBEAT_FREQUENCY_SECS]
    worker_start_timeout_secs: Annotated[int, Config.SUPERVISOR_WORKER_START_TIMEOUT_SECS]
    worker_timeout_secs: Annotated[int, Config.SUPERVISOR_WORKER_TIMEOUT_SECS]
    worker_shutdown_sleep_secs: Annotated[int, Config.SUPERVISOR_WORKER_SHUTDOWN_SLEEP_SECS]


@dataclass(frozen=True)
class LogSettings(Settings):
    """Settings of the drivers' logs, and of where they are shown."""

    bind_address: Annotated[str, Config.SUPERVISOR_LOGS_BIND_ADDRESS]
    port: Annotated[int, Config.SUPERVISOR_LOGS_PORT]
    cleanup_age_mins: Annotated[int, Config.SUPERVISOR_LOGS_CLEANUP_AGE_MINS]
