"""The bus of Delta: what a module emits is a table, which Spark reads like any other.

<location>/tables/<stream>-<id>/<module>   the steps of all instances of a module
<location>/notes/                          what stands beside the journals, as on the local bus
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from typing import Final
from weakref import WeakValueDictionary

from storm_on_spark.api.config import Config
from storm_on_spark.api.errors import ConfigError
from storm_on_spark.xd.bus.delta.journal import DeltaJournal
from storm_on_spark.xd.bus.delta.log import TableLog
from storm_on_spark.xd.bus.files import Folder
from storm_on_spark.xd.bus.journals import JournalBus
from storm_on_spark.xd.bus.port import Alive
from storm_on_spark.xd.bus.seals import Seals
from storm_on_spark.xd.bus.store import Store, StoreFolder

_TABLES: Final = "tables"
_NOTES: Final = "notes"


def checked_store(location: str | None) -> Store:
    """Returns the store of a bus.

    Args:
        location: of the configuration.

    Raises:
        ConfigError: it is missing, or is neither an absolute path nor a URI.
        SetupError: deltalake is not installed, or the location can't be reached.
    """
    key = Config.XD_MESSAGEBUS_DELTA_LOCATION
    if location is None:
        raise ConfigError(f"the message bus of Delta needs {key}, an absolute path or a URI", key=key)
    # What is in the memory of one process is no bus.
    if "\0" in location or not re.match(r"/|(?!memory:)[A-Za-z][A-Za-z0-9+.-]*://", location):
        raise ConfigError(
            f"{key} must be an absolute path, or a URI such as s3://bucket/bus, not {location!r:.200}", key=key
        )
    return Store(location)


class DeltaBus(JournalBus):
    """The bus of Delta.

    Args:
        store: with the tables.
        seals: of the cluster.
        most_bytes: that an instance keeps for those that have not read it yet.
        keep_secs: how long rows stay that all have read, and tables of destroyed streams, at least; rows only unless
            there are more than `most_bytes`.
        alive: whether an instance may go on.
        exists: whether a stream, by its name on the bus, exists.
        batch: how many steps are removed at once, at least.
        cluster: see `JournalBus`.
        clock: seconds.
        now: seconds since 1970.
    """

    def __init__(
        self,
        store: Store,
        seals: Seals,
        *,
        most_bytes: int,
        keep_secs: float,
        alive: Alive = lambda name: True,
        exists: Callable[[str], bool] = lambda stream: True,
        batch: int = 64,
        cluster: Callable[[], str] = lambda: "",
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._store, self._seals = store, seals
        #: Table -> its log, for all of this container that use it.
        self._logs: WeakValueDictionary[str, TableLog] = WeakValueDictionary()
        self._opening = threading.Lock()
        super().__init__(
            StoreFolder(self._store, _NOTES),
            self._journal,
            most_bytes=most_bytes,
            keep_secs=keep_secs,
            exists=exists,
            alive=alive,
            cluster=cluster,
            clock=clock,
        )
        self._batch, self._now = batch, now

    def remove(self, stream: str) -> None:
        """See `JournalBus`."""
        for folder in (f"{_NOTES}/{stream}", f"{_TABLES}/{stream}"):
            if self._store.names(folder):
                self._store.remove_folder(folder)

    def _journal(self, folder: Folder) -> DeltaJournal:
        assert isinstance(folder, StoreFolder)
        _, stream, label, _ = folder.path.split("/")
        table = f"{_TABLES}/{stream}/{label}"
        with self._opening:
            log = self._logs.get(table)
            if log is None:
                log = self._logs[table] = TableLog(self._store, table, self.clock)
        return DeltaJournal(
            folder,
            table,
            log,
            self._seals,
            most_bytes=self.most_bytes,
            keep_secs=self.keep_secs,
            batch=self._batch,
            now=self._now,
        )
