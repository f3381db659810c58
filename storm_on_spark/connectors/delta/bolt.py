"""Delta: a bolt that appends to a table, or changes its rows by key, each micro-batch exactly once."""

from __future__ import annotations

import logging
import os
import random
import re
import time
from collections.abc import Generator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from storm_on_spark.api.errors import ConfigError, SetupError, StormError
from storm_on_spark.api.sink import SinkContext, SinkTransaction
from storm_on_spark.api.text.extras import needs_extra
from storm_on_spark.connectors.delta.trial import reason, refuses, taking, trial_of
from storm_on_spark.connectors.sinks.columns import single_valued
from storm_on_spark.connectors.sinks.dead_letters import DeadLetters, Refused, refused_rows
from storm_on_spark.connectors.sinks.tables import TableBolt, last_among, last_by, rows_at
from storm_on_spark.runtime.storage.durable import sync_file_system

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import CommitProperties, DeltaTable

_log = logging.getLogger(__name__)

_PATIENCE_SECS: Final = 60.0
_MOST_PAUSE_SECS: Final = 2.0
_MOST_DOUBLINGS: Final = 10
_GENERATED: Final = "delta.generationExpression"


class DeltaBoltError(StormError, RuntimeError):
    """A micro-batch was not written, because other writers kept changing the table; the message says what to do."""


class DeltaBolt(TableBolt):
    """Writes tuples to a Delta table, all of a micro-batch in one transaction.

    Without keys, rows are appended. With keys, a row replaces the one that has the same values in these columns, or is
    inserted (a MERGE); of several in one micro-batch the last counts, so group the bolt's input by the keys.

    Each transaction has the topology's id and the micro-batch's number in the table's log (Delta's `txn`, which Spark
    calls `txnAppId` and `txnVersion`), and under a second id a fingerprint of what was planned. A micro-batch that is
    executed again after a crash is not written again if its transaction is there. A table that has later micro-batches
    than the checkpoint, or other tuples under the same number, is refused: the checkpoint is an older one. A tuple is
    acked once its transaction and the micro-batch are committed.

    A table that is missing is made. One that is there may have more columns, which stay empty; those of the bolt must
    have the same types. A transaction that meets another writer's is tried again for a minute. What can't be written,
    say because the table has lost a column, ends the topology; started again from its checkpoint it continues with the
    same micro-batch. The driver writes by the package `deltalake` (extra `delta`), without a jar.

    A row that the table refuses, by a constraint or for a missing value, ends the topology too, with that row. With
    `dead_letters`, the refused rows are put into files, reported among the bolt's errors and acked, and the others are
    written in the same transaction. Which rows these are is tried on a table in the driver's temporary folder.

    Args:
        table: a path that the driver reaches, or a URI such as `s3://bucket/words`; access is configured by the
            environment, as `deltalake` reads it.
        columns: a type of Spark SQL for each field that is written.
        keys: the columns that make a row unique, no arrays; none to append.
        partition_by: columns, no arrays, by which the table is partitioned if the bolt makes it.
        dead_letters: a folder for refused rows, on this machine or shared by all that a driver may run on.

    Raises:
        ConfigError: an argument makes no sense.

    Example:
        >>> bolt = DeltaBolt("/data/words", {"word": "string", "count": "long"}, keys=["word"])
    """

    needs_spark = False

    def __init__(
        self,
        table: str | os.PathLike[str],
        columns: Mapping[str, str],
        *,
        keys: Sequence[str] = (),
        partition_by: Sequence[str] = (),
        dead_letters: str | os.PathLike[str] | None = None,
    ) -> None:
        super().__init__(columns)
        self.location = checked_location(table)
        self._keys = single_valued(keys, self.columns, "keys")
        self._partition_by = single_valued(partition_by, self.columns, "partition_by")
        self._dead_letters = DeadLetters(dead_letters, f"the Delta table {self.location}")
        #: As each writer read it last; in the driver only, where topologies may share a bolt.
        self._tables: dict[str, DeltaTable] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_tables": {}}

    def replaced_rows(self) -> str:
        """Returns which rows the bolt replaces, in words; nothing where it appends."""
        return f"rows of {self.location} by {', '.join(self._keys)}" if self._keys else ""

    def open_sink(self, context: SinkContext) -> None:
        """Makes the table if it is missing.

        Raises:
            SetupError: it can't be read or made, or `deltalake` is not installed.
            CheckpointError: it is ahead of the checkpoint.
        """
        try:
            from deltalake import DeltaTable
            from deltalake.exceptions import DeltaError
        except ImportError as error:
            raise SetupError(needs_extra("a DeltaBolt", "delta", "deltalake")) from error
        self._dead_letters.open()
        try:
            DeltaTable.create(
                self.location, self.columns.schema(), mode="ignore", partition_by=list(self._partition_by)
            )
            target = DeltaTable(self.location)
            self._check(target)
        except (DeltaError, OSError) as error:
            raise SetupError(f"the Delta table {self.location} can't be opened: {error}") from error
        context.check_history(_last(target, context), f"the Delta table {self.location}")

    def write_table(self, table: pa.Table, context: SinkContext) -> None:
        """Commits a micro-batch, unless the table has it already.

        Raises:
            DeltaBoltError: other writers were faster for a minute.
            CheckpointError: the table is ahead of the checkpoint.
            SetupError: the table lacks a column, or has one of another type.
            RefusedRowError: the table refuses a row, and there is not a folder for dead letters.
        """
        from deltalake.exceptions import CommitFailedError

        rows, kept = last_by(table, self._keys), False
        began, attempts = time.monotonic(), 0
        while True:
            target = self._newest(context.writer)
            if context.is_written(_last(target, context), f"the Delta table {self.location}"):
                _log.info("%s has micro-batch %s of %s already", self.location, context.micro_batch, context.writer)
                self._dead_letters.finish(context, kept=True)
                return
            self._check(target)
            try:
                # Against the version in which the transaction was looked for: one that came since is a conflict.
                self.commit(target, rows, context)
            except CommitFailedError as error:
                del self._tables[context.writer]
                attempts += 1
                took = time.monotonic() - began
                if took >= _PATIENCE_SECS:
                    raise DeltaBoltError(
                        f"the Delta table {self.location} was changed by other writers while {len(rows)} rows of "
                        f"micro-batch {context.micro_batch} were written, {attempts} times in {took:.0f} s: let them "
                        "write less often, or into another table, and start the topology again: it continues with this "
                        f"micro-batch. Delta says: {error}"
                    ) from error
                _log.info("%s was changed meanwhile, and is written again: %s", self.location, error)
                # Random, so that two that collided don't do so again.
                time.sleep(random.uniform(0, min(_MOST_PAUSE_SECS, 0.05 * 2 ** min(attempts, _MOST_DOUBLINGS))))
            except Exception as error:
                if not refuses(error):
                    raise
                rows, kept = self._accepted(target, table, context, error), True
            else:
                self._dead_letters.finish(context, kept=kept)
                if context.durable and os.path.isdir(self.location):  # noqa: PTH112 # it may be a URI
                    sync_file_system(Path(self.location))
                return

    def _accepted(self, target: DeltaTable, table: pa.Table, context: SinkContext, error: Exception) -> pa.Table:
        """Returns the rows that the table takes, once the others are kept.

        Raises:
            RefusedRowError: there is not a folder for them.
        """
        refused = set()

        def found() -> Generator[Refused]:
            with trial_of(target, table, self._keys) as trial:
                take = taking(trial, self._put)
                last = partial(last_among, table, self._keys)
                for number, refusal in refused_rows(len(table), lambda part: take(rows_at(table, part)), last):
                    refused.add(number)
                    row = rows_at(table, [number]).to_pylist()[0]
                    yield Refused(row, reason(target, row, refusal), number)

        if not self._dead_letters.keep(found(), context):
            raise error  # no row alone is to blame
        return last_by(rows_at(table, [n for n in range(len(table)) if n not in refused]), self._keys)

    def _newest(self, writer: str) -> DeltaTable:
        from deltalake import DeltaTable

        found = self._tables.pop(writer, None)
        if found is None:
            found = DeltaTable(self.location)
        else:
            found.update_incremental()
        self._tables[writer] = found
        return found

    def _check(self, target: DeltaTable) -> None:
        """Compares types: `deltalake` would write a number into a column of text, or as a time.

        Raises:
            SetupError: the table lacks a column, or has one of another type.
        """
        from deltalake import Schema

        there = {field.name: field.type for field in target.schema().fields}
        for field in Schema.from_arrow(self.columns.schema()).fields:
            if field.name not in there:
                raise SetupError(
                    f"the Delta table {self.location} has no column {field.name}; it has {', '.join(there)}"
                )
            if field.type != there[field.name]:
                raise SetupError(
                    f"the column {field.name} of the Delta table {self.location} is {_type_name(there[field.name])}, "
                    f"and the bolt writes {self.columns.types[field.name]}"
                )
        others = [each for each in target.schema().fields if each.name not in self.columns.types]
        needed = [each.name for each in others if not each.nullable and _GENERATED not in each.metadata]
        if needed and not self._keys:
            raise SetupError(
                f"the Delta table {self.location} wants a value for {', '.join(needed)}, and the bolt has no such "
                f"column; it writes {', '.join(self.columns.names)}"
            )

    def commit(self, target: DeltaTable, rows: pa.Table, context: SinkContext) -> None:
        """Commits rows on top of the version of the table that `target` holds."""
        self._put(target, rows, _transaction(context))

    def _put(self, target: DeltaTable, rows: pa.Table, properties: CommitProperties | None = None) -> None:
        from deltalake import write_deltalake

        if not self._keys:
            # Columns that the bolt does not have are filled up with nulls; those that it has are in the table.
            write_deltalake(target, rows, mode="append", schema_mode="merge", commit_properties=properties)
            return
        same = " AND ".join(f"t.{_quoted(key)} IS NOT DISTINCT FROM s.{_quoted(key)}" for key in self._keys)
        values = {_quoted(name): f"s.{_quoted(name)}" for name in self.columns.names}
        merger = target.merge(rows, same, source_alias="s", target_alias="t", commit_properties=properties)
        merger.when_matched_update(values).when_not_matched_insert(values).execute()


def _plans_id(context: SinkContext) -> str:
    """Returns the id under which the plan's fingerprint is the "version".

    What describes a commit goes when Delta cleans its log up; the last version of each id stays.
    """
    return f"{context.writer}/plan"


def _last(target: DeltaTable, context: SinkContext) -> SinkTransaction | None:
    done = target.transaction_version(context.writer)
    return None if done is None else SinkTransaction(done, target.transaction_version(_plans_id(context)) or 0)


def _transaction(context: SinkContext) -> CommitProperties:
    from deltalake import CommitProperties, Transaction

    ids = zip((context.writer, _plans_id(context)), context.transaction, strict=True)
    return CommitProperties(app_transactions=[Transaction(name, version) for name, version in ids])


def checked_location(table: str | os.PathLike[str]) -> str:
    """Returns where a table is, as any process finds it.

    Raises:
        ConfigError: it is neither a path nor a URI.
    """
    text: Any = os.fspath(table)
    if not isinstance(text, str) or not text or "\0" in text:
        raise ConfigError(f"a table is a path or a URI (given {text!r:.200})", key="table")
    # The driver of a cluster has another working directory than the program that makes the bolt.
    return text if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:/", text) else os.path.abspath(text)  # noqa: PTH100 # it stays text


def _type_name(kind: object) -> str:
    return str(getattr(kind, "type", kind))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
