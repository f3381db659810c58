"""What components in other languages read of the configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from storm_on_spark.api.config import Config
from storm_on_spark.api.config.settings import Settings


@dataclass(frozen=True)
class ShellSettings(Settings):
    """Settings of one component.

    Example:
        >>> ShellSettings.of({}).max_pending, silence({}), silence({"topology.subprocess.timeout.secs": 5})
        (100, 30, 5)
    """

    serializer: Annotated[str, Config.TOPOLOGY_MULTILANG_SERIALIZER]
    max_pending: Annotated[int, Config.TOPOLOGY_SHELLBOLT_MAX_PENDING]
    timeout_secs: Annotated[int | None, Config.TOPOLOGY_SUBPROCESS_TIMEOUT_SECS]


@dataclass(frozen=True)
class _WorkerSettings(Settings):
    timeout_secs: Annotated[int, Config.SUPERVISOR_WORKER_TIMEOUT_SECS]


def silence(conf: Mapping[str, Any]) -> int:
    """Returns for how many seconds a child may be silent: as in Storm, unset it is the limit of workers."""
    return ShellSettings.of(conf).timeout_secs or _WorkerSettings.of(conf).timeout_secs
