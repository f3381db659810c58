"""The settings of a Nimbus, parsed from the configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from storm_on_spark.api.config import Config
from storm_on_spark.api.config.settings import Settings


@dataclass(frozen=True)
class NimbusSettings(Settings):
    """Settings of a Nimbus itself."""

    seeds: Annotated[tuple[str, ...], Config.NIMBUS_SEEDS]
    bind_address: Annotated[str, Config.NIMBUS_BIND_ADDRESS]
    port: Annotated[int, Config.NIMBUS_THRIFT_PORT]
    hostname: Annotated[str | None, Config.STORM_LOCAL_HOSTNAME]
    local_dir: Annotated[str, Config.STORM_LOCAL_DIR]
    checkpoint_dir: Annotated[str | None, Config.STORM_CHECKPOINT_DIR]
    """Folder of the checkpoints of topologies that name none."""
    supervisor_timeout_secs: Annotated[int, Config.NIMBUS_SUPERVISOR_TIMEOUT_SECS]
    task_launch_secs: Annotated[int, Config.NIMBUS_TASK_LAUNCH_SECS]
    task_timeout_secs: Annotated[int, Config.NIMBUS_TASK_TIMEOUT_SECS]
    monitor_secs: Annotated[int, Config.NIMBUS_MONITOR_FREQ_SECS]
    code_sync_secs: Annotated[int, Config.NIMBUS_CODE_SYNC_FREQ_SECS]
    cleanup_inbox_secs: Annotated[int, Config.NIMBUS_CLEANUP_INBOX_FREQ_SECS]
    artifact_expiration_secs: Annotated[int, Config.NIMBUS_INBOX_JAR_EXPIRATION_SECS]
    """An artifact in the inbox that no submission has taken goes after this time."""
    upload_expiration_secs: Annotated[int, Config.NIMBUS_FILE_COPY_EXPIRATION_SECS]
    """An upload that does not end is cut off after this time."""


@dataclass(frozen=True)
class ReplicationSettings(Settings):
    """Settings of a topology: how many copies of its code there must be before it runs."""

    min_count: Annotated[int, Config.TOPOLOGY_MIN_REPLICATION_COUNT]
    max_wait_secs: Annotated[int, Config.TOPOLOGY_MAX_REPLICATION_WAIT_TIME_SEC]
    """Negative: as long as it takes."""
