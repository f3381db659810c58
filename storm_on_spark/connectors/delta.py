"""Delta: a bolt that appends to a table, or changes its rows by key, each micro-batch exactly once."""

from __future__ import annotations

import logging
import os
import random
import re
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from storm_on_spark.api.errors import ConfigError, SetupError
from storm_on_spark.api.sink import SinkContext
from storm_on_spark.connectors.columns import some_of
from storm_on_spark.connectors.tables import TableBolt

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import CommitProperties, DeltaTable

_log = logging.getLogger(__name__)

_NUMBER: Final = "__storm_number"
_ATTEMPTS: Final = 8
_MOST_PAUSE_SECS: Final = 2.0


class DeltaBolt(TableBolt):
    """Writes tuples to a Delta table, all of a micro-batch in one transaction.

    Without keys, rows are appended. With keys, a row replaces the one that has the same values in these columns, or is
    inserted (a MERGE); of several in one micro-batch the last counts, so group the bolt's input by the keys.

    Each transaction has the topology's id and the micro-batch's number in the table's log (Delta's `txn`, which Spark
    calls `txnAppId` and `txnVersion`). A micro-batch that is executed again after a crash is not written again if its
    transaction is there. A tuple is acked once its transaction and the micro-batch are committed.

    A table that is missing is made. A transaction that meets another writer's is tried again some times. What can't be
    written, say because the table has other columns, ends the topology; started again from its checkpoint it goes on
    with the same micro-batch. The driver writes by the package `deltalake` (extra `delta`), without a jar.

    Args:
        table: a path that the driver reaches, or a URI such as `s3://bucket/words`; access is configured by the
            environment, as `deltalake` reads it.
        columns: a type of Spark SQL for each field that is written.
        keys: the columns that make a row unique; none to append.
        partition_by: columns by which the table is partitioned if the bolt makes it.

    Raises:
        ConfigError: an argument makes no sense.

    Example:
        >>> bolt = DeltaBolt("/data/words", {"word": "string", "count": "long"}, keys=["word"])
    """

    def __init__(
        self,
        table: str | os.PathLike[str],
        columns: Mapping[str, str],
        *,
        keys: Sequence[str] = (),
        partition_by: Sequence[str] = (),
    ) -> None:
        super().__init__(columns)
        self.location = _checked_location(table)
        self._keys = some_of(keys, self.columns, "keys")
        self._partition_by = some_of(partition_by, self.columns, "partition_by")
        #: As it was read last; in the driver only.
        self._table: DeltaTable | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_table": None}

    def open_sink(self, context: SinkContext) -> None:
        """Makes the table if it is missing.

        Raises:
            SetupError: it can't be read or made, or `deltalake` is not installed.
        """
        try:
            from deltalake import DeltaTable
            from deltalake.exceptions import DeltaError
        except ImportError as error:
            raise SetupError("a DeltaBolt needs the extra storm-on-spark[delta]") from error
        try:
            DeltaTable.create(
                self.location, self.columns.schema(), mode="ignore", partition_by=list(self._partition_by)
            )
            self._table = DeltaTable(self.location)
        except (DeltaError, OSError) as error:
            raise SetupError(f"the Delta table {self.location} can't be opened: {error}") from error
        names = [field.name for field in self._table.schema().fields]
        missing = [name for name in self.columns.names if name not in names]
        if missing:
            raise SetupError(
                f"the Delta table {self.location} has no column {', '.join(missing)}; it has {', '.join(names)}"
            )

    def write_table(self, table: pa.Table, context: SinkContext) -> None:
        """Commits a micro-batch, unless the table has it already."""
        from deltalake.exceptions import CommitFailedError

        rows = last_by(table, self._keys) if self._keys else table
        for attempt in range(_ATTEMPTS):
            target = self._newest()
            done = target.transaction_version(context.writer)
            if done is not None and done >= context.micro_batch:
                _log.info("%s has micro-batch %s of %s already", self.location, context.micro_batch, context.writer)
                return
            try:
                # Against the version in which the transaction was looked for: one that came since is a conflict.
                self.commit(target, rows, context)
            except CommitFailedError as error:
                self._table = None
                if attempt + 1 == _ATTEMPTS:
                    raise
                _log.info("%s was changed meanwhile, and is written again: %s", self.location, error)
                # Random, so that two that collided don't do so again.
                time.sleep(random.uniform(0, min(_MOST_PAUSE_SECS, 0.05 * 2**attempt)))
            except BaseException:
                self._table = None
                raise
            else:
                return

    def _newest(self) -> DeltaTable:
        from deltalake import DeltaTable

        if self._table is None:
            self._table = DeltaTable(self.location)
        else:
            self._table.update_incremental()
        return self._table

    def commit(self, target: DeltaTable, rows: pa.Table, context: SinkContext) -> None:
        """Commits rows on top of the version of the table that `target` holds."""
        from deltalake import write_deltalake

        properties = _transaction(context)
        if not self._keys:
            write_deltalake(target, rows, mode="append", commit_properties=properties)
            return
        same = " AND ".join(f"t.{_quoted(key)} IS NOT DISTINCT FROM s.{_quoted(key)}" for key in self._keys)
        values = {_quoted(name): f"s.{_quoted(name)}" for name in self.columns.names}
        merger = target.merge(rows, same, source_alias="s", target_alias="t", commit_properties=properties)
        merger.when_matched_update(values).when_not_matched_insert(values).execute()


def _transaction(context: SinkContext) -> CommitProperties:
    from deltalake import CommitProperties, Transaction

    return CommitProperties(app_transactions=[Transaction(context.writer, context.micro_batch)])


def _checked_location(table: str | os.PathLike[str]) -> str:
    text: Any = os.fspath(table)
    if not isinstance(text, str) or not text or "\0" in text:
        raise ConfigError(f"a table is a path or a URI (given {text!r:.200})", key="table")
    # The driver of a cluster has another working directory than the program that makes the bolt.
    return text if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:/", text) else os.path.abspath(text)  # noqa: PTH100 # it stays text


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def last_by(table: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Returns the last row of each key, in the order of the rows."""
    import pyarrow as pa

    numbered = table.append_column(_NUMBER, pa.array(range(table.num_rows), pa.int64()))
    last = numbered.group_by(list(keys)).aggregate([(_NUMBER, "max")])
    numbers = last[f"{_NUMBER}_max"].combine_chunks()
    return table.take(numbers.sort())
