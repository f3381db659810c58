"""Which message bus a container uses, and its settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from storm_on_spark.api.config import Config
from storm_on_spark.api.config.settings import Settings


@dataclass(frozen=True)
class BusSettings(Settings):
    """The message bus between modules."""

    transport: Annotated[Literal["local", "delta"], Config.XD_TRANSPORT]
    """`local` is a folder that all containers share, and `delta` are tables."""
    durability: Annotated[Literal["process", "machine"] | None, Config.TOPOLOGY_DURABILITY]
    """What the local bus must survive; None for the death of processes."""
    retention_mb: Annotated[int, Config.XD_MESSAGEBUS_LOCAL_RETENTION_MB]
    """What a journal of the local bus keeps for those that have not read it."""
    delta_location: Annotated[str | None, Config.XD_MESSAGEBUS_DELTA_LOCATION]
    """Where the tables are: an absolute path, or a URI."""
    delta_retention_mb: Annotated[int, Config.XD_MESSAGEBUS_DELTA_RETENTION_MB]
    """What an instance keeps in its table."""
    delta_retention_secs: Annotated[int, Config.XD_MESSAGEBUS_DELTA_RETENTION_SECS]
    """How long rows stay that all have read."""
