"""Databases: a bolt that inserts or replaces rows of a table by Python's DB-API, each micro-batch exactly once."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from storm_on_spark.api.sink import SinkContext
from storm_on_spark.connectors.jdbc.table import JdbcTable
from storm_on_spark.connectors.sinks.columns import single_valued
from storm_on_spark.connectors.sinks.dead_letters import DeadLetters
from storm_on_spark.connectors.sinks.tables import TableBolt, last_among

if TYPE_CHECKING:
    import pyarrow as pa


class JdbcBolt(TableBolt):
    """Writes tuples to a table of a database, all of a micro-batch in one transaction.

    Without keys, rows are inserted. With keys, a row replaces those with the same values in these columns; of several
    in one micro-batch the last counts, so group the bolt's input by the keys. A key that is None is like no other, as
    in SQL.

    The driver of the topology writes, by a module of Python's DB-API 2. The transaction also notes the micro-batch's
    number, and a fingerprint of what was planned, in the table `storm_written`, which is made if it is missing. A
    micro-batch that is executed again after a crash is not written again if it is noted. A database that has later
    micro-batches than the checkpoint, or other tuples under the same number, is refused. A tuple is acked once its
    transaction and its micro-batch are committed.

    A row that the database refuses, say by a constraint, ends the topology with that row, and nothing of its
    micro-batch is written; started again from its checkpoint, it continues there. With `dead_letters`, the refused rows
    are put into files, reported among the bolt's errors and acked, and the others are written. The database then needs
    savepoints. Constraints that it checks at the commit alone still end the topology, as anything else does.

    Args:
        connect: returns a new connection, which must not commit by itself. It is called for each micro-batch, and
            pickled with the bolt: let it read passwords where it runs.
        table: its name, also with its schema's; the table must be there.
        columns: a type of Spark SQL for each field that is written; columns have the same names.
        keys: the columns that make a row unique, no arrays; none to insert.
        paramstyle: the module's own: `qmark` for sqlite3, `format` or `pyformat` for those of PostgreSQL and MySQL.
        dead_letters: a folder for refused rows, on this machine or shared by all that a driver may run on.

    Raises:
        ConfigError: an argument makes no sense.

    Example:
        >>> def connect():
        ...     return sqlite3.connect("/data/words.db")
        >>> bolt = JdbcBolt(connect, "words", {"word": "string", "count": "long"}, keys=["word"])
    """

    needs_spark = False

    def __init__(
        self,
        connect: Callable[[], Any],
        table: str,
        columns: Mapping[str, str],
        *,
        keys: Sequence[str] = (),
        paramstyle: str = "qmark",
        dead_letters: str | os.PathLike[str] | None = None,
    ) -> None:
        super().__init__(columns)
        self._keys = single_valued(keys, self.columns, "keys")
        self._table = table
        self._target = JdbcTable(
            connect,
            table,
            self.columns.names,
            keys=self._keys,
            paramstyle=paramstyle,
            dead_letters=DeadLetters(dead_letters, f"the table {table}"),
        )

    def replaced_rows(self) -> str:
        """Returns which rows the bolt replaces, in words; nothing where it inserts."""
        return f"rows of {self._table} by {', '.join(self._keys)}" if self._keys else ""

    def open_sink(self, context: SinkContext) -> None:
        """See `JdbcTable.open`."""
        self._target.open(context)

    def write_table(self, table: pa.Table, context: SinkContext) -> None:
        """See `JdbcTable.write`."""
        rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
        self._target.write(rows, context, partial(last_among, table, self._keys, nulls_differ=True))
