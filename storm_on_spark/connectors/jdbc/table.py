"""A table of a database that rows are written to by Python's DB-API, those of each step exactly once."""

from __future__ import annotations

import contextlib
import logging
import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from storm_on_spark.api.errors import ConfigError, SetupError, StormError
from storm_on_spark.api.sink import SinkContext, SinkTransaction
from storm_on_spark.connectors.jdbc.refusals import commits_by_itself, errors_of, refuses
from storm_on_spark.connectors.sinks.dead_letters import DeadLetters, Refused, error_line, refused_rows

_log = logging.getLogger(__name__)

SIGNS: Final = {"qmark": "?", "format": "%s", "pyformat": "%s"}
"""Parameter style of a driver -> what stands for a value."""
WORD: Final = r"[A-Za-z_][A-Za-z0-9_]{0,62}"
"""The name of a table or a column."""
_LEDGER: Final = "storm_written"
"""The table in which each writer's last step and its plan's fingerprint stand."""
_SAVEPOINT: Final = "storm_part"
_COMMITS: Final = "the connection commits by itself: connect without autocommit"

Row = tuple[Any, ...]


class JdbcTable:
    """Writes rows of steps, say of micro-batches: all of one in one transaction, with its number.

    Args:
        connect: returns a new connection, which must not commit by itself. It is called for each step.
        table: its name, also with its schema's; the table must be there.
        names: of the columns.
        keys: the columns by which a row replaces others; none to insert.
        paramstyle: of the driver.
        dead_letters: where refused rows go.

    Raises:
        ConfigError: an argument makes no sense.
    """

    def __init__(
        self,
        connect: Callable[[], Any],
        table: str,
        names: Sequence[str],
        *,
        keys: Sequence[str] = (),
        paramstyle: str = "qmark",
        dead_letters: DeadLetters,
    ) -> None:
        if not callable(connect):
            raise ConfigError(f"expected a function that connects (given {connect!r:.100})", key="connect")
        named: Any = table
        if not isinstance(named, str) or not re.fullmatch(rf"{WORD}(\.{WORD})?", named):
            raise ConfigError(f"a table is named as orders or shop.orders (given {table!r:.100})", key="table")
        for name in names:
            if not re.fullmatch(WORD, name):
                raise ConfigError(f"a column is named by letters, digits and _ (given {name!r:.100})", key="columns")
        if paramstyle not in SIGNS:
            raise ConfigError(
                f"a paramstyle is one of {', '.join(SIGNS)} (given {paramstyle!r:.100})", key="paramstyle"
            )
        self._connect = connect
        self._table = table
        self._names = tuple(names)
        self._keys = tuple(keys)
        self._sign = SIGNS[paramstyle]
        self._dead_letters = dead_letters

    def open(self, context: SinkContext) -> None:
        """Looks for the table and its columns, and makes `storm_written` if it is missing.

        Raises:
            SetupError: the database can't be reached, lacks something, or commits by itself.
            CheckpointError: it is ahead of the checkpoint.
        """
        self._dead_letters.open()
        try:
            with self._connected() as connection:
                with transaction(connection) as cursor:
                    self._look(cursor)
                    if self._dead_letters:
                        cursor.execute(f"SAVEPOINT {_SAVEPOINT}")
                # Refused where it is there: not every database knows IF NOT EXISTS.
                with contextlib.suppress(Exception), transaction(connection) as cursor:
                    cursor.execute(
                        f"CREATE TABLE {_LEDGER} (writer VARCHAR(255) PRIMARY KEY, micro_batch BIGINT, plan BIGINT)"
                    )
                self._check_takes_back(connection)
                with transaction(connection) as cursor:
                    last = self._last(cursor, context)
        except SetupError:
            raise
        except Exception as error:
            raise SetupError(f"the table {self._table} can't be written: {type(error).__name__}: {error}") from error
        context.check_history(last, f"the table {self._table}")

    def write(self, rows: Sequence[Row], context: SinkContext, last: Callable[[list[int]], list[int]] = list) -> None:
        """Commits a step, unless the database has it already.

        Args:
            rows: with a value for each column.
            context: which step.
            last: returns, of some numbers of rows, those of the last row of each key.

        Raises:
            CheckpointError: the database is ahead of the checkpoint.
            RefusedRowError: the database refuses a row, and nothing says what becomes of it.
        """
        with self._connected() as connection:
            try:
                with transaction(connection) as cursor:
                    if not self._note(cursor, context):
                        return
                    self._put(cursor, [rows[number] for number in last(list(range(len(rows))))])
            except StormError:
                raise
            except Exception as error:
                if not self._is_refusal(connection, error):
                    raise
                self._write_accepted(connection, rows, context, last, error)
            else:
                self._dead_letters.finish(context, kept=False)

    def _write_accepted(
        self,
        connection: Any,
        rows: Sequence[Row],
        context: SinkContext,
        last: Callable[[list[int]], list[int]],
        refusal: Exception,
    ) -> None:
        """Commits the rows that the database takes.

        Raises:
            RefusedRowError: it doesn't take all, and nothing says what becomes of the others.
        """
        with transaction(connection) as cursor:
            if not self._note(cursor, context):
                return

            def put(part: Sequence[int]) -> Exception | None:
                try:
                    cursor.execute(f"SAVEPOINT {_SAVEPOINT}")
                except Exception:  # it has none, and is not to blame
                    raise refusal from None
                found = None
                try:
                    self._put(cursor, [rows[number] for number in part])
                except Exception as error:
                    cursor.execute(f"ROLLBACK TO SAVEPOINT {_SAVEPOINT}")
                    if not self._is_refusal(connection, error):
                        raise
                    found = error
                cursor.execute(f"RELEASE SAVEPOINT {_SAVEPOINT}")
                return found

            refused = (
                Refused(dict(zip(self._names, rows[number], strict=True)), error_line(error), number)
                for number, error in refused_rows(len(rows), put, last)
            )
            kept = self._dead_letters.keep(refused, context)
        self._dead_letters.finish(context, kept=kept)

    def _put(self, cursor: Any, rows: Sequence[Row]) -> None:
        if self._keys:
            same = " AND ".join(f"{key} = {self._sign}" for key in self._keys)
            places = [self._names.index(key) for key in self._keys]
            found = [tuple([row[place] for place in places]) for row in rows]
            cursor.executemany(f"DELETE FROM {self._table} WHERE {same}", found)  # noqa: S608 # checked names
        names, signs = ", ".join(self._names), ", ".join([self._sign] * len(self._names))
        cursor.executemany(f"INSERT INTO {self._table} ({names}) VALUES ({signs})", rows)  # noqa: S608 # the same

    def _look(self, cursor: Any) -> None:
        cursor.execute(f"SELECT {', '.join(self._names)} FROM {self._table} WHERE 1 = 0")  # noqa: S608 # the same

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
        with transaction(connection) as cursor:
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
def transaction(connection: Any) -> Iterator[Any]:
    """Gives a cursor, and commits what it has done; takes it back if anything is raised."""
    try:
        with contextlib.closing(connection.cursor()) as cursor:
            yield cursor
        connection.commit()
    except BaseException:
        # A connection that is lost can't, and what it was lost by is the error to tell.
        with contextlib.suppress(Exception):
            connection.rollback()
        raise
