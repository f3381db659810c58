"""What the distribution of code reads of the configuration, typed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from storm_on_spark.api.config import Config
from storm_on_spark.api.config.settings import Settings


@dataclass(frozen=True)
class CodeSettings(Settings):
    """Settings of the storage of code. A user's own distributor gets the whole configuration, as in Storm."""

    distributor: Annotated[str, Config.STORM_CODEDISTRIBUTOR_CLASS]
    location: Annotated[str | None, Config.STORM_CODEDISTRIBUTOR_LOCATION]
    local_dir: Annotated[str, Config.STORM_LOCAL_DIR]
