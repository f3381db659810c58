"""Which message bus a container uses, and its settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from storm_on_spark.api.config import Config
from storm_on_spark.api.config.settings import Settings


@dataclass(frozen=True)
class BusSettings(Settings):
    """The message bus between modules."""

    transport: Annotated[Literal["local", "kafka"], Config.XD_TRANSPORT]
    """`local` for a folder that all containers share, `kafka` for topics."""
    durability: Annotated[Literal["process", "machine"] | None, Config.TOPOLOGY_DURABILITY]
    """What the local bus must survive; None for only the death of processes."""
    retention_mb: Annotated[int, Config.XD_MESSAGEBUS_LOCAL_RETENTION_MB]
    """Limit of the unread messages in a journal of the local bus."""
    kafka_brokers: Annotated[str, Config.XD_MESSAGEBUS_KAFKA_BROKERS]
    """`host:port`, with commas."""
    kafka_properties: Annotated[object, Config.XD_MESSAGEBUS_KAFKA_PROPERTIES]
    """Settings of kafka-python, for all clients."""
    kafka_partitions: Annotated[int, Config.XD_MESSAGEBUS_KAFKA_DEFAULT_MIN_PARTITION_COUNT]
    """Partitions of a channel's topic."""
    kafka_replication: Annotated[int, Config.XD_MESSAGEBUS_KAFKA_DEFAULT_REPLICATION_FACTOR]
    """Replicas of each topic."""
    kafka_retention_mb: Annotated[int, Config.XD_MESSAGEBUS_KAFKA_RETENTION_MB]
    """Limit of unread messages, and of read messages that are kept for taps."""
