"""The place of a store: a value that is sent to spout hosts and workers, which open the store there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from storm_on_spark.runtime.storage.interface import Storage
from storm_on_spark.runtime.storage.local import LocalStorage
from storm_on_spark.runtime.storage.within import within


class StoragePlace(Protocol):
    """The place of a store. It can be pickled; its text has no secrets."""

    def open(self) -> Storage:
        """Returns the store.

        Raises:
            OSError: it can't be reached.
            StormError: what it needs is missing here.
        """
        ...


@dataclass(frozen=True)
class LocalPlace:
    """A folder of a file system that is mounted under the same path everywhere."""

    folder: str
    synced: bool = False

    def open(self) -> Storage:
        """Returns the store."""
        return LocalStorage(Path(self.folder), synced=self.synced)


@dataclass(frozen=True)
class PlaceWithin:
    """A folder of a store."""

    place: StoragePlace
    folder: str

    def open(self) -> Storage:
        """Returns the folder as a store."""
        return within(self.place.open(), self.folder)
