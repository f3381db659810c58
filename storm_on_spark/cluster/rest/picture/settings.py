"""What the pages read of a topology's configuration, typed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from storm_on_spark.api.config import Config
from storm_on_spark.api.config.settings import Settings


@dataclass(frozen=True)
class PageSettings(Settings):
    """What pages show of a topology beside its numbers."""

    version: Annotated[str | None, Config.TOPOLOGY_VERSION]
    debug: Annotated[bool, Config.TOPOLOGY_DEBUG]
