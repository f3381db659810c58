"""What a table of the bus has, by its log: which file has which step of which instance."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from storm_on_spark.xd.bus.store import Store

_NAME: Final = re.compile(r"([1-9][0-9]{0,5})/([0-9]{12})-[0-9a-f]{32}\.parquet")
_LOOK_SECS: Final = 5.0


class StepFile(NamedTuple):
    """A file of a table, which has a step."""

    path: str
    """Below the table."""
    size: int
    at: int
    """When it was committed, in milliseconds since 1970."""


class TableLog:
    """Follows the log of a table, entry by entry; any thread may use it.

    Entries before a checkpoint are removed after a while. One that is so far behind reads the table's present state.

    Args:
        store: the store.
        table: where the table is; it may appear later.
        clock: seconds.
    """

    def __init__(self, store: Store, table: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._table = table
        self._clock = clock
        self._lock = threading.Lock()
        #: The last entry that was read.
        self._version = -1
        #: Instance -> step -> its file.
        self._steps: dict[int, dict[int, StepFile]] = {}
        self._looked = clock()
        with self._lock:
            self._load()

    def look(self, *, fresh: bool = False) -> None:
        """Reads what is new.

        Args:
            fresh: whether to make sure that no entries were removed before they were read, and not only sometimes.
        """
        with self._lock:
            moved = False
            while (entry := self._entry(self._version + 1)) is not None:
                self._apply(entry)
                self._version += 1
                moved = True
            if fresh or (not moved and self._clock() - self._looked > _LOOK_SECS):
                self._looked = self._clock()
                if self._checkpoint() > self._version:
                    self._load()

    def file(self, instance: int, step: int) -> StepFile | None:
        """Returns the file of a step, as far as the log was read."""
        with self._lock:
            return self._steps.get(instance, {}).get(step)

    def files(self, instance: int) -> dict[int, StepFile]:
        """Returns the files of an instance, as far as the log was read."""
        with self._lock:
            return dict(self._steps.get(instance, {}))

    def _entry(self, version: int) -> list[dict[str, Any]] | None:
        try:
            body = self._store.read(f"{self._table}/_delta_log/{version:020}.json")
        except FileNotFoundError:
            return None
        return [json.loads(line) for line in body.split(b"\n") if line]

    def _checkpoint(self) -> int:
        try:
            return int(json.loads(self._store.read(f"{self._table}/_delta_log/_last_checkpoint"))["version"])
        except FileNotFoundError:
            return -1

    def _load(self) -> None:
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        try:
            table = DeltaTable(self._store.uri(self._table))
        except TableNotFoundError:
            return
        found = table.get_add_actions()
        names = ("path", "size_bytes", "modification_time")
        columns = [found.column(found.schema.get_field_index(name)).to_pylist() for name in names]
        self._steps.clear()
        self._add(StepFile(path, size, _millis(at)) for path, size, at in zip(*columns, strict=True))
        self._version = table.version()

    def _apply(self, entry: Iterable[dict[str, Any]]) -> None:
        for action in entry:
            if (add := action.get("add")) is not None:
                self._add([StepFile(add["path"], add["size"], add["modificationTime"])])
            elif (remove := action.get("remove")) is not None and (name := _NAME.fullmatch(remove["path"])):
                self._steps.get(int(name[1]), {}).pop(int(name[2]), None)

    def _add(self, files: Iterable[StepFile]) -> None:
        for file in files:
            if (name := _NAME.fullmatch(file.path)) is not None:
                self._steps.setdefault(int(name[1]), {})[int(name[2])] = file


def _millis(at: Any) -> int:
    return int(at) if isinstance(at, int) else int(at.timestamp() * 1000)
