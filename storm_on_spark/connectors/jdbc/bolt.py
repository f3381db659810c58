"""Databases: a bolt that inserts or replaces rows of a table by Python's DB-API, each micro-batch exactly once."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from storm_on_spark.api.errors import ConfigError, SetupError, StormError
from storm_on_spark.api.sink import SinkContext, SinkTransaction
from storm_on_spark.connectors.jdbc.refusals import commits_by_itself, errors_of, refuses
from storm_on_spark.connectors.sinks.columns import single_valued
from storm_on_spark.connectors.sinks.dead_letters import DeadLetters, Refused, error_line, refused_rows
from storm_on_spark.connectors.sinks.tables import TableBolt, last_by, rows_at

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger(__name__)

_SIGNS: Final = {"qmark": "?", "format": "%s", "pyformat": "%s"}
_WORD: Final = r"[A-Za-z_][A-Za-z0-9_]{0,62}"
_LEDGER: Final = "storm_written"
"""The table in which each writer's last micro-batch and its plan's fingerprint stand."""
_SAVEPOINT: Final = "storm_part"
_COMMITS: Final = "the connection commits by itself: connect without autocommit"


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
    micro-batch is written; started again from its checkpoint, it goes on there. With `dead_letters`, the refused rows
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
        if not callable(connect):
            raise ConfigError(f"a function that connects (given {connect!r:.100})", key="connect")
        named: Any = table
        if not isinstance(named, str) or not re.fullmatch(rf"{_WORD}(\.{_WORD})?", named):
            raise ConfigError(f"a table is named as orders or shop.orders (given {table!r:.100})", key="table")
        for name in self.columns.names:
            if not re.fullmatch(_WORD, name):
                raise ConfigError(f"a column is named by letters, digits and _ (given {name!r:.100})", key="columns")
        if paramstyle not in _SIGNS:
            raise ConfigError(
                f"a paramstyle is one of {', '.join(_SIGNS)} (given {paramstyle!r:.100})", key="paramstyle"
            )
        self._connect = connect
        self._table = table
        self._keys = single_valued(keys, self.columns, "keys")
        self._sign = _SIGNS[paramstyle]
        self._dead_letters = DeadLetters(dead_letters, f"the table {table}")

    def replaced_rows(self) -> str:
        """Returns which rows the bolt replaces, in words; nothing where it inserts."""
        return f"rows of {self._table} by {', '.join(self._keys)}" if self._keys else ""

    def open_sink(self, context: SinkContext) -> None:
        """Looks for the table and its columns, and makes `storm_written` if it is missing.

        Raises:
            SetupError: the database can't be reached, lacks something, or commits by itself.
            CheckpointError: it is ahead of the checkpoint.
        """
        self._dead_letters.open()
        try:
            with self._connected() as connection:
                with _transaction(connection) as cursor:
                    self._look(cursor)
                    if self._dead_letters:
                        cursor.execute(f"SAVEPOINT {_SAVEPOINT}")
                # Refused where it is there: not every database knows IF NOT EXISTS.
                with contextlib.suppress(Exception), _transaction(connection) as cursor:
                    cursor.execute(
                        f"CREATE TABLE {_LEDGER} (writer VARCHAR(255) PRIMARY KEY, micro_batch BIGINT, plan BIGINT)"
                    )
                self._check_takes_back(connection)
                with _transaction(connection) as cursor:
                    last = self._last(cursor, context)
        except SetupError:
            raise
        except Exception as error:
            raise SetupError(f"the table {self._table} can't be written: {type(error).__name__}: {error}") from error
        context.check_history(last, f"the table {self._table}")

    def write_table(self, table: pa.Table, context: SinkContext) -> None:
        """Commits a micro-batch, unless the database has it already.

        Raises:
            CheckpointError: the database is ahead of the checkpoint.
            RefusedRowError: the database refuses a row, and there is no folder for dead letters.
        """
        with self._connected() as connection:
            try:
                with _transaction(connection) as cursor:
                    if not self._note(cursor, context):
                        return
                    self._put(cursor, last_by(table, self._keys, nulls_differ=True))
            except StormError:
                raise
            except Exception as error:
                if not self._is_refusal(connection, error):
                    raise
                self._write_accepted(connection, table, context, error)
            else:
                self._dead_letters.finish(context, kept=False)

    def _write_accepted(self, connection: Any, table: pa.Table, context: SinkContext, refusal: Exception) -> None:
        """Commits the rows that the database takes.

        Raises:
            RefusedRowError: it doesn't take all, and there is no folder for the others.
        """
        with _transaction(connection) as cursor:
            if not self._note(cursor, context):
                return

            def put(part: pa.Table) -> Exception | None:
                try:
                    cursor.execute(f"SAVEPOINT {_SAVEPOINT}")
                except Exception:  # it has none, and is not to blame
                    raise refusal from None
                found = None
                try:
                    self._put(cursor, part)
                except Exception as error:
                    cursor.execute(f"ROLLBACK TO SAVEPOINT {_SAVEPOINT}")
                    if not self._is_refusal(connection, error):
                        raise
                    found = error
                cursor.execute(f"RELEASE SAVEPOINT {_SAVEPOINT}")
                return found

            found = refused_rows(table, self._keys, put, nulls_differ=True)
            rows = (Refused(rows_at(table, [number]).to_pylist()[0], error_line(error)) for number, error in found)
            kept = self._dead_letters.keep(rows, context)
        self._dead_letters.finish(context, kept=kept)

    def _put(self, cursor: Any, rows: pa.Table) -> None:
        values = list(zip(*(column.to_pylist() for column in rows.columns), strict=True))
        if self._keys:
            same = " AND ".join(f"{key} = {self._sign}" for key in self._keys)
            places = [self.columns.names.index(key) for key in self._keys]
            found = [tuple([row[place] for place in places]) for row in values]
            cursor.executemany(f"DELETE FROM {self._table} WHERE {same}", found)  # noqa: S608 # checked names
        names, signs = ", ".join(self.columns.names), ", ".join([self._sign] * len(self.columns.names))
        cursor.executemany(f"INSERT INTO {self._table} ({names}) VALUES ({signs})", values)  # noqa: S608 # the same

    def _look(self, cursor: Any) -> None:
        cursor.execute(f"SELECT {', '.join(self.columns.names)} FROM {self._table} WHERE 1 = 0")  # noqa: S608 # the same

    def _is_refusal(self, connection: Any, error: Exception) -> bool:
        def still_answers() -> bool:
            try:
                with contextlib.closing(connection.cursor()) as cursor:
                    self._look(cursor)
            except Exception:  # whatever the driver has for it
                return False
            return True

        errors = errors_of(connection)
        return errors is not None and refuses(errors, error, still_answers)

    def _note(self, cursor: Any, context: SinkContext) -> bool:
        """Notes the micro-batch; returns whether it was not noted yet.

        The row is locked from here on: a driver that was replaced while it slept waits, and finds its successor's.
        """
        sign, (number, plan), writer = self._sign, context.transaction, context.writer
        later = (
            f"UPDATE {_LEDGER} SET micro_batch = {sign}, plan = {sign} WHERE writer = {sign} AND micro_batch < {sign}"  # noqa: S608
        )
        cursor.execute(later, (number, plan, writer, number))
        if cursor.rowcount:
            return True
        last = self._last(cursor, context)
        if last is not None and context.is_written(last, f"the table {self._table}"):
            _log.info("%s has micro-batch %s of %s already", self._table, context.micro_batch, context.writer)
            self._dead_letters.finish(context, kept=True)
            return False
        first = f"INSERT INTO {_LEDGER} (micro_batch, plan, writer) VALUES ({sign}, {sign}, {sign})"  # noqa: S608
        cursor.execute(first, (number, plan, writer))
        return True

    def _last(self, cursor: Any, context: SinkContext) -> SinkTransaction | None:
        cursor.execute(f"SELECT micro_batch, plan FROM {_LEDGER} WHERE writer = {self._sign}", (context.writer,))  # noqa: S608
        row = cursor.fetchone()
        return None if row is None else SinkTransaction(int(row[0]), int(row[1]))

    def _check_takes_back(self, connection: Any) -> None:
        """Tries whether a transaction can be taken back: not every driver says that it commits by itself."""
        probe = f"probe-{uuid.uuid4().hex}"
        with contextlib.closing(connection.cursor()) as cursor:
            first = f"INSERT INTO {_LEDGER} (micro_batch, plan, writer) VALUES (0, 0, {self._sign})"  # noqa: S608
            cursor.execute(first, (probe,))
        with contextlib.suppress(Exception):  # some refuse it, as they have committed
            connection.rollback()
        with _transaction(connection) as cursor:
            cursor.execute(f"DELETE FROM {_LEDGER} WHERE writer = {self._sign}", (probe,))  # noqa: S608
            stayed = cursor.rowcount > 0
        if stayed:
            raise SetupError(_COMMITS)

    @contextlib.contextmanager
    def _connected(self) -> Iterator[Any]:
        with contextlib.closing(self._connect()) as connection:
            if commits_by_itself(connection):
                raise SetupError(_COMMITS)
            yield connection


@contextlib.contextmanager
def _transaction(connection: Any) -> Iterator[Any]:
    try:
        with contextlib.closing(connection.cursor()) as cursor:
            yield cursor
        connection.commit()
    except BaseException:
        connection.rollback()
        raise
