"""State in a Delta table of any number of states, one commit for each batch of a task."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from storm_on_spark.api.errors import ConfigError, SetupError
from storm_on_spark.api.text.extras import needs_extra
from storm_on_spark.connectors.delta.bolt import checked_location
from storm_on_spark.trident.state.external import DEFAULT_CACHE, ExternalMapStateFactory, TextStore
from storm_on_spark.trident.state.values import StateType

if TYPE_CHECKING:
    from deltalake import DeltaTable

_PATIENCE_SECS: Final = 20.0
"""How long a batch tries to be written while others write to the table."""


class DeltaMapState(ExternalMapStateFactory):
    """Makes states in a Delta table, which Spark and other programs read as any other.

    A batch of a task is one commit, with the mark of the task, so all of it or nothing. The table has the columns
    `state`, `entry_key` and `entry_value`, is partitioned by `state`, and is made if it is missing. Keys are lists in
    JSON; for values see `storm_on_spark.trident.state.encoding`. A commit takes tens of milliseconds and leaves files:
    make batches large, and compact the table as any other. Needs the extra `delta`.

    Args:
        location: the path or URI of the table.
        name: of the state, in the table.
        kind: what is stored beside a value.
        cache_size: the most keys that each task keeps in memory. Reading others scans the state.

    Raises:
        ConfigError: an argument makes no sense.

    Example:
        >>> DeltaMapState("/data/states", "word-counts").kind
        <StateType.OPAQUE: 'opaque'>
    """

    def __init__(
        self,
        location: str | os.PathLike[str],
        name: str,
        kind: StateType = StateType.OPAQUE,
        cache_size: int = DEFAULT_CACHE,
    ) -> None:
        super().__init__(kind, cache_size)
        if not name:
            raise ConfigError("the name of a state is not empty", key="name")
        self._location = checked_location(location)
        self._name = name

    def open_store(self) -> TextStore:  # noqa: D102
        return _DeltaStore(self._location, self._name)


class _DeltaStore(TextStore):
    def __init__(self, location: str, name: str) -> None:
        self.title = f"the Delta table {location}"
        self._location, self._name = location, name
        self._table: DeltaTable | None = None

    def read(self, keys: Sequence[str]) -> Mapping[str, str]:
        import pyarrow as pa
        import pyarrow.compute

        # Files by their partition, and keys in memory: Arrow can't compare keys with Delta's statistics, which have
        # another type for text.
        rows = self._newest().to_pyarrow_dataset(file_pruning_predicate=[("state", "=", self._name)])
        wanted = pa.array(keys, pa.string())
        found: dict[str, str] = {}
        for batch in rows.to_batches(columns=["entry_key", "entry_value"]):
            part = batch.filter(pa.compute.is_in(batch["entry_key"].cast(pa.string()), wanted))
            found.update(zip(part["entry_key"].to_pylist(), part["entry_value"].to_pylist(), strict=True))
        return found

    def write(self, entries: Mapping[str, str]) -> None:
        from deltalake.exceptions import CommitFailedError

        began, pause = time.monotonic(), 0.02
        while True:
            try:
                return self._merge(entries)
            except CommitFailedError:
                # Another task was faster. Its keys are others, so it is right to try again.
                if time.monotonic() - began > _PATIENCE_SECS:
                    raise
                time.sleep(random.uniform(0, pause))
                pause = min(2 * pause, 1.0)

    def is_away(self, error: Exception) -> bool:
        try:
            from deltalake.exceptions import CommitFailedError
        except ImportError:
            return False
        return isinstance(error, (CommitFailedError, OSError))

    def close(self) -> None:
        self._table = None

    def _merge(self, entries: Mapping[str, str]) -> None:
        import pyarrow as pa

        rows = pa.table(
            {
                "state": pa.array([self._name] * len(entries), pa.string()),
                "entry_key": pa.array(entries, pa.string()),
                "entry_value": pa.array(entries.values(), pa.string()),
            }
        )
        same = f"t.state = {_quoted(self._name)} AND t.state = s.state AND t.entry_key = s.entry_key"
        merger = self._newest().merge(rows, same, source_alias="s", target_alias="t")
        merger.when_matched_update_all().when_not_matched_insert_all().execute()

    def _newest(self) -> DeltaTable:
        try:
            from deltalake import DeltaTable
        except ImportError:
            raise SetupError(needs_extra("state in a Delta table", "delta", "deltalake")) from None
        import pyarrow as pa

        if self._table is None:
            schema: Any = pa.schema([pa.field(name, pa.string()) for name in ("state", "entry_key", "entry_value")])
            DeltaTable.create(self._location, schema, mode="ignore", partition_by=["state"])
            self._table = DeltaTable(self._location)
        else:
            self._table.update_incremental()
        return self._table


def _quoted(text: str) -> str:
    escaped = text.replace("'", "''")
    return f"'{escaped}'"
