"""States of Trident in other systems: Redis, databases, Delta tables."""

from __future__ import annotations

from storm_on_spark.connectors.states.delta import DeltaMapState
from storm_on_spark.connectors.states.redis import RedisMapState
from storm_on_spark.connectors.states.sql import JdbcMapState

__all__ = ["DeltaMapState", "JdbcMapState", "RedisMapState"]
