"""JDBC by its other name: a sink that inserts rows into a table of a database, by Python's DB-API."""

from __future__ import annotations

import contextlib
import importlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from storm_on_spark.api.component import BaseRichBolt
from storm_on_spark.api.errors import SetupError
from storm_on_spark.api.task.collector import OutputCollector
from storm_on_spark.api.task.context import TopologyContext
from storm_on_spark.api.tuple import Tuple
from storm_on_spark.cluster.security.tokens import read_secret_file
from storm_on_spark.connectors.jdbc.refusals import commits_by_itself, refuses
from storm_on_spark.xd.modules.declaration import ModuleDeclaration, Option, OptionError
from storm_on_spark.xd.modules.messages import written
from storm_on_spark.xd.modules.outside.rows import Rows

_WORD = r"[A-Za-z_][A-Za-z0-9_]{0,62}"
SIGNS: Final = {"qmark": "?", "format": "%s", "pyformat": "%s"}
"""Parameter style of a driver -> what stands for a value."""
_SQLITE: Final = "sqlite3"
_PAYLOAD: Final = "payload"


class JdbcSink(BaseRichBolt):
    """Inserts a row for each message: those of a micro-batch and task in one transaction.

    Messages are acked once it is committed. If the database refuses a row, the transaction is divided, and that row's
    message alone fails and comes again. If the database can't be reached, all fail that are not committed. A row may be
    there twice after a crash between the database's commit and that of the micro-batch, and none is missing.

    Args:
        driver: a module of Python's DB-API 2, such as `sqlite3`.
        connection: a file with a JSON object of arguments for its `connect`; only its owner may read it. Empty for
            sqlite3.
        database: the file of sqlite3; empty for other drivers.
        table: its name, also with its schema's.
        columns: names; of a payload that is a map, the values of these names are inserted. The one name `payload`
            stands for the payload itself.

    Raises:
        OptionError: the options contradict each other.
    """

    stateless = True

    def __init__(self, driver: str, connection: str, database: str, table: str, columns: str) -> None:
        if (driver == _SQLITE) != bool(database) or (driver == _SQLITE) == bool(connection):
            option = "database" if driver == _SQLITE else "connection"
            raise OptionError(f"Expected --{option}, and not the other, for the driver {driver}", option="driver")
        self.driver = driver
        self.connection = connection
        self.database = database
        self.table = table
        self.columns = [name.strip() for name in columns.split(",")]

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Loads the driver; the first message connects.

        Raises:
            SetupError: the driver is not installed, or is none, or the file of arguments can't be used.
        """
        self._collector = collector
        self._module = load_driver(self.driver)
        self._given = {"database": self.database} if self.database else driver_arguments(self.connection)
        sign = SIGNS[self._module.paramstyle]
        signs = ", ".join([sign] * len(self.columns))
        self._insert = f"INSERT INTO {self.table} ({', '.join(self.columns)}) VALUES ({signs})"  # noqa: S608 # checked names
        self._look = f"SELECT {', '.join(self.columns)} FROM {self.table} WHERE 1 = 0"  # noqa: S608 # the same
        self._rows: Rows = Rows(collector, self.table)
        self._connected: Any = None

    def execute(self, tup: Tuple) -> None:
        """Takes a message for the transaction of this micro-batch.

        Raises:
            ValueError: its payload does not have the columns.
        """
        if tup.is_tick:
            self._collector.ack(tup)
            return
        self._rows.add(tup, self._row(tup["payload"]))

    def finish_micro_batch(self) -> None:
        """Inserts the rows.

        Raises:
            SetupError: the connection commits by itself.
        """
        if not self._rows.write(self._write):
            self._drop()

    def _write(self, rows: Sequence[tuple[Any, ...]]) -> Exception | None:
        """Inserts rows in one transaction; returns why they are refused."""
        if self._connected is None:
            self._connected = self._module.connect(**self._given)
            if commits_by_itself(self._connected):
                raise SetupError("jdbc: the connection commits by itself: connect without autocommit")
        try:
            with contextlib.closing(self._connected.cursor()) as cursor:
                cursor.executemany(self._insert, rows)
            self._connected.commit()
        except Exception as error:
            self._connected.rollback()
            if not refuses(self._module, error, self._answers):
                raise
            return error
        return None

    def _answers(self) -> bool:
        try:
            with contextlib.closing(self._connected.cursor()) as cursor:
                cursor.execute(self._look)
            self._connected.rollback()
        except self._module.Error:
            return False
        return True

    def cleanup(self) -> None:
        """Closes the connection."""
        self._drop()

    def _row(self, payload: Any) -> tuple[Any, ...]:
        if self.columns == [_PAYLOAD] and not (isinstance(payload, dict) and _PAYLOAD in payload):
            return (_value(payload),)
        if not isinstance(payload, dict) or any(name not in payload for name in self.columns):
            raise ValueError(f"expected a map with {', '.join(self.columns)}, got {payload!r:.100}")
        return tuple(_value(payload[name]) for name in self.columns)

    def _drop(self) -> None:
        if self._connected is not None:
            with contextlib.suppress(self._module.Error):
                self._connected.rollback()
            with contextlib.suppress(self._module.Error):
                self._connected.close()
            self._connected = None


def load_driver(driver: str) -> Any:
    """Returns a driver's module.

    Raises:
        SetupError: it is not installed, or is none.
    """
    try:
        module: Any = importlib.import_module(driver)
    except ImportError as error:
        raise SetupError(f"jdbc needs the driver {driver}: {error}; install it on every machine") from error
    if getattr(module, "apilevel", None) != "2.0" or getattr(module, "paramstyle", None) not in SIGNS:
        styles = ", ".join(SIGNS)
        raise SetupError(f"jdbc: {driver} is no driver of DB-API 2.0 with parameters of the style {styles}")
    return module


def driver_arguments(path: str) -> dict[str, Any]:
    """Returns the arguments of a driver's `connect` that a file has.

    Raises:
        SetupError: others can read it, or it has none.
    """
    try:
        found = json.loads(read_secret_file(path, "jdbc's connection"))
    except (ValueError, RecursionError) as error:
        raise SetupError(f"jdbc's connection {path}: expected JSON") from error
    if not isinstance(found, dict):
        raise SetupError(f"jdbc's connection {path}: expected a JSON object of the driver's arguments")
    return found


def _value(value: Any) -> Any:
    return written(value) if isinstance(value, dict | list) else value


def a_table(text: str) -> None:
    """Refuses what is no name of a table.

    Raises:
        ValueError: it is none.
    """
    if not re.fullmatch(rf"{_WORD}(\.{_WORD})?", text):
        raise ValueError(f"Expected the name of a table, such as orders or shop.orders, got {text!r:.100}")


def column_names(text: str) -> None:
    """Refuses what is no list of columns.

    Raises:
        ValueError: it is none.
    """
    names = [name.strip() for name in text.split(",")]
    if not all(re.fullmatch(_WORD, name) for name in names) or len(set(names)) < len(names):
        raise ValueError(f"Expected names of columns, each once, separated by commas, got {text!r:.100}")


def a_driver(text: str) -> None:
    """Refuses what is no name of a module of Python.

    Raises:
        ValueError: it is none.
    """
    if not re.fullmatch(rf"{_WORD}(\.{_WORD})*", text):
        raise ValueError(f"Expected a module of Python, such as sqlite3 or psycopg, got {text!r:.100}")


SINK: Final = ModuleDeclaration(
    "sink",
    "jdbc",
    "Inserts a row into a table of a database for each message, by a driver of Python's DB-API.",
    JdbcSink,
    (
        Option("driver", "text", _SQLITE, "A module of Python's DB-API 2.", check=a_driver),
        Option("database", "text", "", "The file of sqlite3."),
        Option("connection", "text", "", "A file with a JSON object of arguments, for other drivers."),
        Option("table", "text", None, "The table; it must be there.", check=a_table, also=("tableName",)),
        Option(
            "columns", "text", _PAYLOAD, "Columns; a payload that is a map has a value for each.", check=column_names
        ),
    ),
)
