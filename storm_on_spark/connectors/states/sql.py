"""State in a database: a table of any number of states, over Python's DB-API."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from storm_on_spark.api.errors import ConfigError, SetupError
from storm_on_spark.connectors.jdbc.refusals import commits_by_itself, errors_of, sqlstate
from storm_on_spark.connectors.jdbc.table import SIGNS, WORD, transaction
from storm_on_spark.trident.state.external import DEFAULT_CACHE, ExternalMapStateFactory, TextStore
from storm_on_spark.trident.state.values import StateType

_MOST_KEYS: Final = 500
"""Keys of one SELECT: databases bound the number of parameters."""
_LONGEST: Final = 500
"""Characters of a key, so that a primary key over it is possible everywhere."""
_TAKEN: Final = "23505"
"""The SQLSTATE of a key that exists although this transaction removed it: there is another writer."""


class JdbcMapState(ExternalMapStateFactory):
    """Makes states in a table of a database; like the `JdbcState` of Storm, but exact.

    A batch is written in one transaction, with the mark of its task. The table has the columns `state`, `entry_key` and
    `entry_value`, and is made if it is missing. Keys are lists in JSON; what a value looks like, see
    `storm_on_spark.trident.state.encoding`.

    Args:
        connect: returns a new connection of DB-API 2, which must not commit by itself. It is pickled with the topology:
            let it read passwords where it runs.
        name: of the state, in the table.
        table: its name, also with its schema's.
        kind: what is stored beside a value.
        paramstyle: the driver's own: `qmark` for sqlite3, `format` or `pyformat` for those of PostgreSQL and MySQL.
        cache_size: the most keys that each task keeps in memory.

    Raises:
        ConfigError: an argument makes no sense.

    Example:
        >>> def connect():
        ...     return sqlite3.connect("/data/counts.db")
        >>> factory = JdbcMapState(connect, "word-counts")
        >>> factory.kind
        <StateType.OPAQUE: 'opaque'>
    """

    def __init__(
        self,
        connect: Callable[[], Any],
        name: str,
        table: str = "storm_states",
        kind: StateType = StateType.OPAQUE,
        paramstyle: str = "qmark",
        cache_size: int = DEFAULT_CACHE,
    ) -> None:
        super().__init__(kind, cache_size)
        if not callable(connect):
            raise ConfigError("expected a function that connects to the database", key="connect")
        if not 0 < len(name) <= 100:
            raise ConfigError(f"the name of a state has 1 to 100 characters (given {name!r:.120})", key="name")
        if not re.fullmatch(rf"{WORD}(\.{WORD})?", table):
            raise ConfigError(f"a table is named as states or shop.states (given {table!r:.100})", key="table")
        if paramstyle not in SIGNS:
            raise ConfigError(
                f"a paramstyle is one of {', '.join(SIGNS)} (given {paramstyle!r:.100})", key="paramstyle"
            )
        self._connect, self._name, self._table, self._sign = connect, name, table, SIGNS[paramstyle]

    def open_store(self) -> TextStore:  # noqa: D102
        return _TableStore(self._connect, self._name, self._table, self._sign)


class _TableStore(TextStore):
    def __init__(self, connect: Callable[[], Any], name: str, table: str, sign: str) -> None:
        self.title = f"the database (table {table})"
        self._connect, self._name, self._table, self._sign = connect, name, table, sign
        self._connection: Any = None
        self._errors: Any = None

    def read(self, keys: Sequence[str]) -> Mapping[str, str]:
        found: dict[str, str] = {}
        with transaction(self._reached()) as cursor:
            for start in range(0, len(keys), _MOST_KEYS):
                part = [_checked(key) for key in keys[start : start + _MOST_KEYS]]
                signs = ", ".join([self._sign] * len(part))
                query = (
                    f"SELECT entry_key, entry_value FROM {self._table} "  # noqa: S608 # a checked name
                    f"WHERE state = {self._sign} AND entry_key IN ({signs})"
                )
                cursor.execute(query, (self._name, *part))
                for row in cursor.fetchall():
                    if isinstance(row, Mapping):  # it would be taken for its keys
                        raise SetupError("rows have to be sequences: connect without a factory of dictionaries")
                    key, text = row
                    found[key] = text
        return found

    def write(self, entries: Mapping[str, str]) -> None:
        rows = [(self._name, _checked(key), text) for key, text in entries.items()]
        sign = self._sign
        with transaction(self._reached()) as cursor:
            old = f"DELETE FROM {self._table} WHERE state = {sign} AND entry_key = {sign}"  # noqa: S608 # the same
            cursor.executemany(old, [row[:2] for row in rows])
            new = f"INSERT INTO {self._table} (state, entry_key, entry_value) VALUES ({sign}, {sign}, {sign})"  # noqa: S608 # the same
            cursor.executemany(new, rows)

    def is_away(self, error: Exception) -> bool:
        if isinstance(error, OSError) or sqlstate(error) == _TAKEN:
            return True
        if self._connection is None and self._errors is None and not isinstance(error, (SetupError, ConfigError)):
            # It never connected, so its classes of errors are not known; by DB-API, they have these names.
            return type(error).__name__ in ("OperationalError", "InterfaceError")
        return self._errors is not None and isinstance(
            error, (self._errors.OperationalError, self._errors.InternalError, self._errors.InterfaceError)
        )

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _reached(self) -> Any:
        if self._connection is None:
            connection = self._connect()
            try:
                if commits_by_itself(connection):
                    raise SetupError("the connection commits by itself: connect without autocommit")
                self._errors = errors_of(connection)
                self._make_table(connection)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _make_table(self, connection: Any) -> None:
        look = f"SELECT state, entry_key, entry_value FROM {self._table} WHERE 1 = 0"  # noqa: S608 # the same
        with contextlib.suppress(Exception), transaction(connection) as cursor:
            cursor.execute(look)
            return
        # Refused where it is there by now: not every database knows IF NOT EXISTS.
        with contextlib.suppress(Exception), transaction(connection) as cursor:
            cursor.execute(
                f"CREATE TABLE {self._table} (state VARCHAR(100) NOT NULL, entry_key VARCHAR({_LONGEST}) NOT NULL, "
                "entry_value TEXT NOT NULL, PRIMARY KEY (state, entry_key))"
            )
        with transaction(connection) as cursor:
            cursor.execute(look)


def _checked(key: str) -> str:
    if len(key) > _LONGEST:
        raise ConfigError(f"a key in a database has at most {_LONGEST} characters (given {len(key)}: {key:.100}…)")
    return key
