"""JDBC: a sink that inserts rows into a table of a database, by Python's DB-API."""

from __future__ import annotations

import importlib
import json
import pickle
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from storm_on_spark.api.errors import SetupError
from storm_on_spark.api.sink import SinkBolt, SinkContext
from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
from storm_on_spark.api.task.collector import OutputCollector
from storm_on_spark.api.task.context import TopologyContext
from storm_on_spark.api.tuple import Tuple
from storm_on_spark.cluster.security.tokens import read_secret_file
from storm_on_spark.connectors.jdbc.table import SIGNS, WORD, JdbcTable, Row
from storm_on_spark.connectors.sinks.dead_letters import DeadLetters
from storm_on_spark.xd.modules.declaration import ModuleDeclaration, Option, OptionError
from storm_on_spark.xd.modules.messages.message import written

_SQLITE: Final = "sqlite3"
_PAYLOAD: Final = "payload"


class JdbcSink(SinkBolt):
    """Inserts a row for each message.

    The rows of a micro-batch, or of a container's step, are inserted once, in one transaction. Messages are acked once
    it is committed. The transaction records its number in the table `storm_written`, which is
    created if it is missing; see `JdbcTable`.

    Args:
        driver: a module of Python's DB-API 2, such as `sqlite3`.
        connection: a file with a JSON object of arguments for its `connect`; only its owner may read it. Empty for
            sqlite3.
        database: the file of sqlite3; empty for other drivers.
        table: its name, also with its schema's.
        columns: names. If the payload is a map, the values of these keys are inserted. The single name `payload` stands
            for the payload itself.

    Raises:
        OptionError: the options contradict each other.
    """

    needs_spark = False

    def __init__(self, driver: str, connection: str, database: str, table: str, columns: str) -> None:
        if (driver == _SQLITE) != bool(database) or (driver == _SQLITE) == bool(connection):
            option = "database" if driver == _SQLITE else "connection"
            raise OptionError(f"Expected --{option}, and not the other, for the driver {driver}", option="driver")
        self.driver = driver
        # The driver of the topology has a different working directory from the command.
        self.connection = connection and str(Path(connection).absolute())
        self.database = database if database in ("", ":memory:") else str(Path(database).absolute())
        self.table = table
        self.columns = [name.strip() for name in columns.split(",")]
        self._rows: list[tuple[Tuple, Row]] = []
        self._written = b""
        self._refused: str | None = None

    def refuse_to(self, folder: str) -> None:
        """See `RefusesRows`."""
        self._refused = folder

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Keeps the collector."""
        self._collector = collector

    def execute(self, tup: Tuple) -> None:
        """Takes a message for the transaction.

        Raises:
            ValueError: its payload does not have the columns.
        """
        if tup.is_tick:
            self._collector.ack(tup)
        else:
            self._rows.append((tup, self._row(tup["payload"])))

    def finish_micro_batch(self) -> None:
        """Returns the rows to write."""
        rows, self._rows = self._rows, []
        for tup, _ in rows:
            self._collector.ack(tup)
        self._written = pickle.dumps([row for _, row in rows]) if rows else b""

    def take_written(self) -> bytes:
        """Returns the rows, pickled."""
        written, self._written = self._written, b""
        return written

    def open_sink(self, context: SinkContext) -> None:
        """Loads the driver, and looks for the table.

        Raises:
            SetupError: the driver is not installed, is not a DB-API driver, or the file of arguments can't be used; or
                as for `JdbcTable.open`.
        """
        module = load_driver(self.driver)
        self._target = JdbcTable(
            lambda: module.connect(**self._arguments()),
            self.table,
            self.columns,
            paramstyle=module.paramstyle,
            dead_letters=DeadLetters(self._refused, f"the table {self.table}", "--dead-letters FOLDER"),
        )
        self._target.open(context)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_target", "_collector")}

    def write(self, written: Sequence[bytes], context: SinkContext) -> None:
        """Inserts the rows."""
        rows = [row for part in written for row in pickle.loads(part)]  # noqa: S301 # of our own tasks
        self._target.write(rows, context)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares nothing: the sink emits no tuples."""

    def _arguments(self) -> dict[str, Any]:
        return {"database": self.database} if self.database else driver_arguments(self.connection)

    def _row(self, payload: Any) -> Row:
        if self.columns == [_PAYLOAD] and not (isinstance(payload, dict) and _PAYLOAD in payload):
            return (_value(payload),)
        if not isinstance(payload, dict) or any(name not in payload for name in self.columns):
            raise ValueError(f"expected a map with {', '.join(self.columns)}, got {payload!r:.100}")
        return tuple(_value(payload[name]) for name in self.columns)


def load_driver(driver: str) -> Any:
    """Returns a driver's module.

    Raises:
        SetupError: it is not installed, or is not a DB-API driver.
    """
    try:
        module: Any = importlib.import_module(driver)
    except ImportError as error:
        raise SetupError(f"jdbc needs the driver {driver}: {error}; install it on every machine") from error
    if getattr(module, "apilevel", None) != "2.0" or getattr(module, "paramstyle", None) not in SIGNS:
        styles = ", ".join(SIGNS)
        raise SetupError(f"jdbc: {driver} is not a driver of DB-API 2.0 with parameters of the style {styles}")
    return module


def driver_arguments(path: str) -> dict[str, Any]:
    """Returns the arguments in a file for a driver's `connect`.

    Raises:
        SetupError: other users can read the file, or it has no arguments.
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
    """Checks the name of a table.

    Raises:
        ValueError: it is not one.
    """
    if not re.fullmatch(rf"{WORD}(\.{WORD})?", text):
        raise ValueError(f"Expected the name of a table, such as orders or shop.orders, got {text!r:.100}")


def column_names(text: str) -> None:
    """Checks a list of columns.

    Raises:
        ValueError: it is not one.
    """
    names = [name.strip() for name in text.split(",")]
    if not all(re.fullmatch(WORD, name) for name in names) or len(set(names)) < len(names):
        raise ValueError(f"Expected names of columns, each once, separated by commas, got {text!r:.100}")


def a_driver(text: str) -> None:
    """Checks the name of a Python module.

    Raises:
        ValueError: it is not one.
    """
    if not re.fullmatch(rf"{WORD}(\.{WORD})*", text):
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
