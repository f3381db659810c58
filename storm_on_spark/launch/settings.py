"""What starts a topology reads of its configuration, typed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from storm_on_spark.api.config import Config
from storm_on_spark.api.config.settings import Settings

Durability = Literal["process", "machine"]


@dataclass(frozen=True)
class NameSettings(Settings):
    """The name of a topology; None where it is to be that of its file."""

    name: Annotated[str | None, Config.TOPOLOGY_NAME]


@dataclass(frozen=True)
class CheckpointSettings(Settings):
    """Where a topology keeps its checkpoint: a directory or a URI; None if it is not set."""

    folder: Annotated[str | None, Config.TOPOLOGY_CHECKPOINT_DIR]


@dataclass(frozen=True)
class PlaceSettings(Settings):
    """Where a topology runs, and what it must survive."""

    spouts: Annotated[Literal["driver", "executors"], Config.TOPOLOGY_SPOUTS_PLACEMENT]
    durability: Annotated[Durability | None, Config.TOPOLOGY_DURABILITY]
