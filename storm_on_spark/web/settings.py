"""What the pages read of the configuration, typed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from storm_on_spark.api.config import Config
from storm_on_spark.api.config.settings import Settings


@dataclass(frozen=True)
class UiSettings(Settings):
    """Of a Nimbus's pages."""

    actions_enabled: Annotated[bool, Config.UI_ACTIONS_ENABLED]
