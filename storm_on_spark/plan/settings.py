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


@dataclass(frozen=True)
class LiveSettings(Settings):
    """Settings of tasks that execute between micro-batches."""

    spouts: Annotated[str, Config.TOPOLOGY_SPOUTS_PLACEMENT]
    profile: Annotated[str | None, Config.TOPOLOGY_PROFILE]
    checkpoint_ms: Annotated[int, Config.TOPOLOGY_STATE_CHECKPOINT_INTERVAL]

    @property
    def asked(self) -> bool:
        """Whether somebody has asked for real time."""
        return self.profile == "realtime"

    @property
    def allowed(self) -> bool:
        """Whether tasks may be live, which they are where the plan and the session allow it."""
        return self.profile is None or self.asked
