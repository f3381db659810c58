"""The message bus between modules: it stores what a module emits until its readers have received it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from storm_on_spark.xd.bus.kafka import kafka_bus, kafka_clients
from storm_on_spark.xd.bus.local import LocalBus
from storm_on_spark.xd.bus.port import Alive, Bus, Place, Port
from storm_on_spark.xd.bus.settings import BusSettings

__all__ = ["Bus", "BusSettings", "Place", "Port", "check_bus", "make_bus"]


def check_bus(settings: BusSettings) -> None:
    """Checks that the bus can be used, before a container says that it is up.

    Raises:
        ConfigError: a setting is missing or invalid.
        SetupError: something that the bus needs is missing.
    """
    if settings.transport == "kafka":
        kafka_clients(settings)


def make_bus(
    settings: BusSettings,
    folder: Path,
    alive: Alive,
    exists: Callable[[str], bool],
    cluster: Callable[[], str] = lambda: "",
) -> Bus:
    """Returns the bus of a configuration.

    Args:
        settings: of the bus.
        folder: of the local bus.
        alive: whether an instance, by its name on the bus, may continue.
        exists: whether a stream, by its name on the bus, still exists.
        cluster: distinguishes this installation from others at the same place; empty while it is unknown.

    Raises:
        ConfigError, SetupError: see `check_bus`.
        BusError: the cluster's key is damaged.
    """
    if settings.transport == "kafka":
        return kafka_bus(settings, folder, exists)
    sync = settings.durability == "machine"
    most = settings.retention_mb << 20
    return LocalBus(folder, most_bytes=most, sync=sync, exists=exists, alive=alive, cluster=cluster)
