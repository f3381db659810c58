"""What the compiler reads of the configuration, typed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from storm_on_spark.api.config import Config
from storm_on_spark.api.config.settings import Settings


@dataclass(frozen=True)
class TaskSettings(Settings):
    """How many tasks and partitions there are; None where the compiler decides."""

    ackers: Annotated[int | None, Config.TOPOLOGY_ACKER_EXECUTORS]
    workers: Annotated[int, Config.TOPOLOGY_WORKERS]
    tasks: Annotated[int | None, Config.TOPOLOGY_TASKS]
    max_parallelism: Annotated[int | None, Config.TOPOLOGY_MAX_TASK_PARALLELISM]
    partitions: Annotated[int | None, Config.TOPOLOGY_PARTITIONS]
