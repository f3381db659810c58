"""What a client reads of the configuration, typed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from storm_on_spark.api.config import Config
from storm_on_spark.api.config.settings import Settings


@dataclass(frozen=True)
class ClientSettings(Settings):
    """Where the Nimbuses are, and how often to try."""

    seeds: Annotated[tuple[str, ...], Config.NIMBUS_SEEDS]
    port: Annotated[int, Config.NIMBUS_THRIFT_PORT]
    retry_times: Annotated[int, Config.STORM_NIMBUS_RETRY_TIMES]
    retry_interval_ms: Annotated[int, Config.STORM_NIMBUS_RETRY_INTERVAL]
    retry_ceiling_ms: Annotated[int, Config.STORM_NIMBUS_RETRY_INTERVAL_CEILING]
