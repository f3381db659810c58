"""Filejdbc: a step that inserts the rows of CSV files into a table, by Python's DB-API."""

from __future__ import annotations

import contextlib
import csv
import glob
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from storm_on_spark.connectors.jdbc.table import SIGNS
from storm_on_spark.xd.modules.declaration import ModuleDeclaration, Option, OptionError
from storm_on_spark.xd.modules.jobs.checks import a_path
from storm_on_spark.xd.modules.jobs.context import StepContext
from storm_on_spark.xd.modules.outside.jdbc import (
    a_driver,
    a_table,
    column_names,
    driver_arguments,
    load_driver,
)

_ROWS: Final = 1_000
_SQLITE: Final = "sqlite3"


def filejdbc(
    context: StepContext,
    resources: str,
    table_name: str,
    names: str,
    delimiter: str,
    driver: str,
    database: str,
    connection: str,
) -> None:
    """Inserts all rows in one transaction: a failed step leaves none.

    Raises:
        OptionError: there is no file, a row has another number of columns, or options contradict each other.
        SetupError: the driver, or the file of its arguments, can't be used.
        Exception: the database reports an error.
    """
    if (driver == _SQLITE) != bool(database) or (driver == _SQLITE) == bool(connection):
        option = "database" if driver == _SQLITE else "connection"
        raise OptionError(f"Expected --{option}, and not the other, for the driver {driver}")
    files = sorted(glob.glob(resources, recursive=True))  # noqa: PTH207 # an absolute pattern
    if not files:
        raise OptionError(f"Expected files, but none matches {resources}")
    columns = [name.strip() for name in names.split(",")]
    module: Any = load_driver(driver)
    signs = ", ".join([SIGNS[module.paramstyle]] * len(columns))
    insert = f"INSERT INTO {table_name} ({', '.join(columns)}) VALUES ({signs})"  # noqa: S608 # checked names
    given = {"database": database} if database else driver_arguments(connection)
    count = 0
    with contextlib.closing(module.connect(**given)) as connected:
        # Closing the connection discards uncommitted rows.
        with contextlib.closing(connected.cursor()) as cursor:
            rows = _rows(files, delimiter, len(columns))
            while some := list(islice(rows, _ROWS)):
                cursor.executemany(insert, some)
                count += len(some)
        connected.commit()
    print(f"{count} rows of {len(files)} files are in {table_name}")  # noqa: T201 # the log of the step


def _rows(files: list[str], delimiter: str, count: int) -> Iterator[list[str]]:
    for path in files:
        with open(path, encoding="utf-8", newline="") as file:  # noqa: PTH123 # a text, of glob
            for number, row in enumerate(csv.reader(file, delimiter=delimiter, strict=True), 1):
                if len(row) != count:
                    raise OptionError(f"{path}, row {number}: expected {count} values, got {len(row)}")
                yield row


def _a_sign(text: str) -> None:
    if len(text) != 1 or text in '\r\n"':
        raise ValueError(f"Expected one character, got {text!r:.20}")


JOB: Final = ModuleDeclaration(
    "job",
    "filejdbc",
    "Inserts the rows of CSV files into a table, all of them or none, by a driver of Python's DB-API.",
    filejdbc,
    (
        Option("resources", "text", None, "The files, as a pattern such as /data/*.csv.", check=a_path),
        Option("tableName", "text", "${xd.stream.name}", "The table; it must be there.", check=a_table),
        Option("names", "text", None, "The columns, in the order of a file.", check=column_names),
        Option("delimiter", "text", ",", "The character between two values.", check=_a_sign),
        Option("driver", "text", _SQLITE, "A module of Python's DB-API 2.", check=a_driver),
        Option("database", "text", "", "The file of sqlite3."),
        Option("connection", "text", "", "A file with a JSON object of arguments, for other drivers."),
    ),
)
