"""The journal of an instance in a Delta table, which the instances of its module share: each step is one commit.

A commit says which step of which instance it is (Delta's `txn`). Of two that commit the same step, the second one
conflicts, so of two processes that believe to be the same instance one loses at its next step.
"""

from __future__ import annotations

import contextlib
import json
import logging
import random
import time
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from storm_on_spark.xd.bus.delta.log import StepFile, TableLog
from storm_on_spark.xd.bus.delta.rows import columns, of_parquet, to_parquet
from storm_on_spark.xd.bus.files import write_whole
from storm_on_spark.xd.bus.journal import Record, TakenError, on_disk
from storm_on_spark.xd.bus.seals import Seals
from storm_on_spark.xd.bus.store import StoreFolder

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from deltalake._internal import RemoveAction
    from deltalake.transaction import AddAction

logger = logging.getLogger(__name__)

_ATTEMPTS: Final = 20
_MOST_PAUSE_SECS: Final = 0.5
_PROPERTIES: Final = {
    "delta.checkpointInterval": "100",
    "delta.logRetentionDuration": "interval 1 minutes",
    "delta.deletedFileRetentionDuration": "interval 1 minutes",
}


class DeltaJournal:
    """The records of an instance; see `Journal`.

    Args:
        folder: for what is written beside the records.
        table: where the table is in the store.
        log: of the table.
        seals: of the cluster.
        most_bytes: of records that all readers have read: more are removed before `keep_secs` have passed.
        keep_secs: how long they are kept.
        batch: how many records are removed at once, at least.
        now: seconds since 1970.
    """

    def __init__(
        self,
        folder: StoreFolder,
        table: str,
        log: TableLog,
        seals: Seals,
        *,
        most_bytes: int,
        keep_secs: float,
        batch: int = 64,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.folder = folder
        self._store = folder.store
        self._instance = int(folder.name)
        self._app = f"instance-{self._instance}"
        self._path = table
        self._log = log
        self._seals = seals
        self._most_bytes = most_bytes
        self._keep_secs = keep_secs
        self._batch = batch
        self._now = now
        #: Only of one that writes.
        self._table: DeltaTable | None = None
        #: The instance's last step, in the state of the table that `_table` has.
        self._done = 0
        #: When files were taken out of the table that queries may still read, and which.
        self._left: list[tuple[float, list[str]]] = []

    def last(self) -> int:
        """Returns the number of the last record; 0 if there is none."""
        self._log.look(fresh=True)
        return max(self._log.files(self._instance), default=0)

    def first(self) -> int:
        """Returns the number of the first record that is still there; 0 if there is none."""
        self._log.look()
        return min(self._log.files(self._instance), default=0)

    def has(self, number: int) -> bool:
        """Whether a record is there."""
        return self._find(number) is not None

    def read(self, number: int) -> Record | None:
        """Returns a record; None if it is not there.

        Raises:
            CheckpointError: the file is damaged, or no container of this cluster wrote it.
        """
        file = self._find(number)
        if file is None:
            return None
        path = f"{self._path}/{file.path}"
        try:
            return of_parquet(self._store.read(path), self._seals, self._step(number), self._store.uri(path))
        except FileNotFoundError:
            # It was removed since the log was read.
            return None

    def append(self, number: int, record: Record) -> int:
        """Commits the record behind the last; returns the bytes that it takes.

        Raises:
            TakenError: there is such a record already.
            DeltaError: the table can't be written.
        """
        from deltalake.exceptions import DeltaError
        from deltalake.transaction import AddAction

        if self._table is None:
            self._begin()
        name = f"{self._instance}/{number:012}-{uuid.uuid4().hex}.parquet"
        data = to_parquet(record, self._instance, number, self._now(), self._seals, self._step(number))
        self._store.write(f"{self._path}/{name}", data)
        stats = json.dumps({"numRecords": len(record.messages)})
        add = AddAction(name, len(data), {}, int(self._now() * 1000), True, stats)
        for attempt in range(_ATTEMPTS):
            if self._done != number - 1:
                break
            assert self._table is not None
            version = self._table.version()
            try:
                self._commit([add], number)
                # What is in the table now tells, also if this process was paused for long: an entry that comes too
                # late is before a checkpoint, and Delta does not read it.
                self._table.update_incremental()
                self._done = self._table.transaction_version(self._app) or 0
                alone = self._table.version() == version + 1
            except DeltaError as error:
                if attempt + 1 == _ATTEMPTS:
                    raise
                logger.debug("%s: step %d of %s is tried again: %s", self._path, number, self._app, error)
                time.sleep(random.uniform(0, min(_MOST_PAUSE_SECS, 0.01 * 2**attempt)))
                self._reopen()
                alone = False
            if self._done == number and (alone or self._in_table(name)):
                return on_disk(len(data))
        with contextlib.suppress(OSError):
            self._store.remove(f"{self._path}/{name}")
        raise TakenError(f"another container has written step {self._done} of {self._app} of {self._path}")

    def sizes(self) -> dict[int, int]:
        """Returns number -> bytes that it takes, of the records that are there, in order."""
        self._log.look(fresh=True)
        return {number: on_disk(file.size) for number, file in sorted(self._log.files(self._instance).items())}

    def remove(self, *numbers: int) -> list[int]:
        """Removes records, several at once, and not before queries had time to read them; returns those that are gone.

        The files of removed records are deleted later: queries that have begun may still read them.
        """
        from deltalake._internal import RemoveAction
        from deltalake.exceptions import DeltaError

        now = self._now()
        self._delete(now - self._keep_secs)
        if not numbers:
            return []
        self._log.look()
        files = self._log.files(self._instance)
        total, due = sum(on_disk(file.size) for file in files.values()), []
        for number in sorted(number for number in numbers if number in files):
            if files[number].at <= (now - self._keep_secs) * 1000 or total > self._most_bytes:
                due.append(number)
                total -= on_disk(files[number].size)
        gone = [number for number in numbers if number not in files]
        if len(due) < self._batch:
            return gone
        if self._table is None:
            self._begin()
        removed = [files[number] for number in due]
        try:
            self._commit([RemoveAction(file.path, True, int(now * 1000), file.size, {}) for file in removed])
            self._reopen()
        except DeltaError as error:
            logger.debug("%s: records are removed later: %s", self._path, error)
            self._table = None
            return gone
        self._left.append((now, [file.path for file in removed]))
        return gone + due

    def _step(self, number: int) -> str:
        """Returns what a record is sealed for, so that it can't be put into the place of another step."""
        return f"{self._path}/{self._instance}/{number}"

    def _find(self, number: int) -> StepFile | None:
        found = self._log.file(self._instance, number)
        if found is None:
            self._log.look()
            found = self._log.file(self._instance, number)
        return found

    def _begin(self) -> None:
        from deltalake import DeltaTable, Schema
        from deltalake.exceptions import DeltaError

        # So that readers find the journal.
        write_whole(self.folder / "journal", b"")
        uri = self._store.uri(self._path)
        try:
            DeltaTable.create(uri, Schema.from_arrow(columns()), mode="ignore", configuration=_PROPERTIES)
        except DeltaError:
            # Another instance may just have made it.
            if not DeltaTable.is_deltatable(uri):
                raise
        self._reopen()
        self._sweep()

    def _reopen(self) -> None:
        from deltalake import DeltaTable

        self._table = DeltaTable(self._store.uri(self._path))
        self._done = self._table.transaction_version(self._app) or 0

    def _commit(self, actions: list[AddAction | RemoveAction], number: int | None = None) -> None:
        from deltalake import CommitProperties, Transaction

        assert self._table is not None
        done = None if number is None else [Transaction(self._app, number)]
        properties = CommitProperties(app_transactions=done)
        self._table.create_write_transaction(actions, "append", columns(), [], commit_properties=properties)

    def _in_table(self, name: str) -> bool:
        assert self._table is not None
        return any(uri.endswith(f"/{name}") for uri in self._table.file_uris())

    def _delete(self, until: float) -> None:
        while self._left and self._left[0][0] <= until:
            for path in self._left.pop(0)[1]:
                with contextlib.suppress(OSError):
                    self._store.remove(f"{self._path}/{path}")

    def _sweep(self) -> None:
        """Deletes files of this instance that are in no table: of steps that were removed, or never committed."""
        assert self._table is not None
        there = {uri.rpartition("/")[2] for uri in self._table.file_uris()}
        for name in self._store.names(f"{self._path}/{self._instance}"):
            step = name.partition("-")[0]
            # Behind the last step one may just be under way.
            if name not in there and step.isdigit() and int(step) <= self._done:
                with contextlib.suppress(OSError):
                    self._store.remove(f"{self._path}/{self._instance}/{name}")
