"""The bus of Delta: what a module emits is a table, which Spark reads like any other.

<location>/tables/<stream>-<id>/<module>   the steps of all instances of a module
<location>/notes/                          what stands beside the journals, as on the local bus
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable
from typing import Final
from weakref import WeakValueDictionary

from storm_on_spark.api.config import Config
from storm_on_spark.api.errors import ConfigError
from storm_on_spark.xd.bus.claims import unclaimed_from
from storm_on_spark.xd.bus.delta.journal import DeltaJournal
from storm_on_spark.xd.bus.delta.log import TableLog
from storm_on_spark.xd.bus.files import Folder
from storm_on_spark.xd.bus.inputs import numbered
from storm_on_spark.xd.bus.journals import JournalBus, JournalPort
from storm_on_spark.xd.bus.port import Alive, Place
from storm_on_spark.xd.bus.store import Store, StoreFolder

logger = logging.getLogger(__name__)

_TABLES: Final = "tables"
_NOTES: Final = "notes"
_SWEEP_SECS: Final = 30.0


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

    The tables of a stream that was destroyed are deleted by the containers that ran it: so nobody deletes what another
    installation has at the same place.

    Args:
        store: with the tables.
        most_bytes: that an instance keeps for those that have not read it yet.
        keep_secs: how long rows stay that all have read, at least, unless there are more than `most_bytes`.
        alive: whether an instance may go on.
        exists: whether a stream, by its name on the bus, exists.
        batch: how many steps are removed at once, at least.
        clock: seconds.
        now: seconds since 1970.
    """

    def __init__(
        self,
        store: Store,
        *,
        most_bytes: int,
        keep_secs: float,
        alive: Alive = lambda name: True,
        exists: Callable[[str], bool] = lambda stream: True,
        batch: int = 64,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        super().__init__(
            StoreFolder(self._store, _NOTES), self._journal, most_bytes=most_bytes, alive=alive, clock=clock
        )
        self._keep_secs, self._batch, self._now = keep_secs, batch, now
        self.exists = exists
        self._lock = threading.Lock()
        #: Table -> its log, for all of this container that use it.
        self._logs: WeakValueDictionary[str, TableLog] = WeakValueDictionary()
        #: Streams of which an instance was here, and since when they are known to be destroyed.
        self._streams: dict[str, float | None] = {}
        self._ended = threading.Event()
        self._sweeper = threading.Thread(target=self._run, name="xd-bus-delta", daemon=True)
        self._sweeper.start()

    def port(self, place: Place) -> JournalPort:
        """See `Bus`."""
        with self._lock:
            self._streams[place.stream] = None
        return super().port(place)

    def close(self) -> None:
        """Ends it."""
        self._ended.set()
        self._sweeper.join()

    def sweep(self) -> None:
        """Deletes the tables of streams that were destroyed some time ago, and whose queues are empty."""
        with self._lock:
            streams = dict(self._streams)
        for stream, since in streams.items():
            if self.exists(stream):
                continue
            now = self.clock()
            if since is None:
                self._streams[stream] = now
            elif now - since >= self._keep_secs and not self._in_queues(stream):
                self._delete(stream)
                with self._lock:
                    self._streams.pop(stream, None)

    def _run(self) -> None:
        while not self._ended.wait(_SWEEP_SECS):
            try:
                self.sweep()
            except Exception:
                logger.warning("tables of destroyed streams are deleted later", exc_info=True)

    def _in_queues(self, stream: str) -> bool:
        """Whether a stream has sent messages to a queue that nobody has read."""
        labels = {
            name.partition(".")[2]
            for channel in self._store.names(f"{_NOTES}/channels")
            if channel.startswith("queue.")
            for name in self._store.names(f"{_NOTES}/channels/{channel}")
            if name.partition(".")[0] == stream
        }
        for label in labels:
            for folder in numbered(self.folder / stream / label).values():
                journal = self.journal(folder)
                behind = journal.last() + 1
                if unclaimed_from(folder, journal.first() or behind, behind) < behind:
                    return True
        return False

    def _delete(self, stream: str) -> None:
        logger.info("deleting the tables of stream %s, which was destroyed", stream)
        for channel in self._store.names(f"{_NOTES}/channels"):
            for name in self._store.names(f"{_NOTES}/channels/{channel}"):
                if name.partition(".")[0] == stream:
                    self._store.remove(f"{_NOTES}/channels/{channel}/{name}")
        for folder in (f"{_NOTES}/{stream}", f"{_TABLES}/{stream}"):
            if self._store.names(folder):
                self._store.remove_folder(folder)

    def _journal(self, folder: Folder) -> DeltaJournal:
        assert isinstance(folder, StoreFolder)
        _, stream, label, _ = folder.path.split("/")
        table = f"{_TABLES}/{stream}/{label}"
        with self._lock:
            log = self._logs.get(table)
            if log is None:
                log = self._logs[table] = TableLog(self._store, table, self.clock)
        return DeltaJournal(
            folder,
            table,
            log,
            most_bytes=self.most_bytes,
            keep_secs=self._keep_secs,
            batch=self._batch,
            now=self._now,
        )
