"""The message bus in Kafka."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from storm_on_spark.api.config import Config
from storm_on_spark.api.errors import ConfigError
from storm_on_spark.connectors.kafka.config import checked_servers
from storm_on_spark.xd.bus.kafka.bus import KafkaBus
from storm_on_spark.xd.bus.kafka.clients import Clients
from storm_on_spark.xd.bus.kafka.seals import Seals
from storm_on_spark.xd.bus.settings import BusSettings

__all__ = ["Clients", "KafkaBus", "Seals", "kafka_bus", "kafka_clients"]


def kafka_clients(settings: BusSettings) -> Clients:
    """Returns a factory of clients; nothing is connected yet.

    Raises:
        ConfigError: a setting is invalid.
        SetupError: kafka-python is not installed, or too old.
    """
    key = Config.XD_MESSAGEBUS_KAFKA_BROKERS
    try:
        servers = checked_servers(settings.kafka_brokers)
    except ConfigError as error:
        raise ConfigError(f"{key}: {error}", key=key) from None
    return Clients(servers, cast("Mapping[str, Any]", settings.kafka_properties))


def kafka_bus(settings: BusSettings, folder: Path, exists: Callable[[str], bool]) -> KafkaBus:
    """Returns the bus; nothing is connected yet.

    Args:
        settings: of the bus.
        folder: that all containers share.
        exists: whether a stream, by its name on the bus, still exists.

    Raises:
        ConfigError, SetupError: see `kafka_clients`.
        BusError: the cluster's key is damaged.
    """
    return KafkaBus(
        kafka_clients(settings),
        Seals.of(folder),
        replication=settings.kafka_replication,
        channel_partitions=settings.kafka_partitions,
        most_bytes=settings.kafka_retention_mb << 20,
        exists=exists,
    )
