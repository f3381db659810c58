"""The message bus between modules: what one emits stands there until those that read it have it."""

from __future__ import annotations

from pathlib import Path

from storm_on_spark.xd.bus.local import LocalBus
from storm_on_spark.xd.bus.port import Alive, Bus, Place, Port
from storm_on_spark.xd.bus.settings import BusSettings

__all__ = ["Bus", "BusSettings", "Place", "Port", "make_bus"]


def make_bus(settings: BusSettings, folder: Path, alive: Alive) -> Bus:
    """Returns the bus that a configuration names.

    Args:
        settings: which one.
        folder: of the local bus.
        alive: whether an instance, by its name on the bus, may go on.
    """
    sync = settings.durability == "machine"
    return LocalBus(folder, most_bytes=settings.retention_mb << 20, sync=sync, alive=alive)
