"""Which errors of databases speak of a row, and which of the system."""

from __future__ import annotations

import sqlite3
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from storm_on_spark.connectors.jdbc.refusals import commits_by_itself, errors_of, refuses

ANSWERS = {True: lambda: True, False: lambda: False}


def psycopg(state: str) -> Any:
    """Returns an error as psycopg has it; its class follows the first two characters of SQLSTATE."""
    error = sqlite3.OperationalError("words")
    error.sqlstate = state  # type: ignore[attr-defined]
    return error


class Java(Exception):
    """An error of a driver of JDBC, as JPype raises it."""

    def __init__(self, state: str) -> None:
        self.getSQLState = lambda: state


@pytest.mark.parametrize(
    ("error", "answers", "expected"),
    [
        (sqlite3.IntegrityError("UNIQUE constraint failed"), False, True),
        (sqlite3.DataError("string or blob too big"), False, True),
        (sqlite3.OperationalError("database is locked"), True, False),
        (sqlite3.OperationalError("disk I/O error"), True, False),
        (sqlite3.ProgrammingError("type 'object' is not supported"), True, True),
        (sqlite3.ProgrammingError("Cannot operate on a closed database."), False, False),
        (sqlite3.DatabaseError("ORA-12899: value too large for column"), True, True),
        (sqlite3.DatabaseError("DPY-4011: the database closed the connection"), False, False),
        (sqlite3.OperationalError(3819, "Check constraint 'positive' is violated."), True, True),
        (sqlite3.OperationalError(4025, "CONSTRAINT `positive` failed"), True, True),
        (sqlite3.OperationalError(2006, "MySQL server has gone away"), True, False),
        (sqlite3.OperationalError(1213, "Deadlock found"), True, False),
        (OverflowError("Python int too large to convert to SQLite INTEGER"), True, True),
        (ValueError("A string literal cannot contain NUL (0x00) characters."), True, True),
        (ConnectionResetError(), True, False),
        (TimeoutError(), True, False),
        (MemoryError(), True, False),
        *((psycopg(state), False, True) for state in ("22P02", "23514", "44000", "P0001", "42804")),
        *((psycopg(state), True, False) for state in ("08006", "40001", "40P01", "42P01", "53300", "57P01", "55P03")),
        (sqlite3.DatabaseError("23000", "a row of SQL Server"), False, True),
        (sqlite3.DatabaseError("08S01", "the link of SQL Server"), True, False),
        (sqlite3.DatabaseError({"S": "ERROR", "C": "23514", "M": "a row of pg8000"}), False, True),
        (sqlite3.DatabaseError({"S": "ERROR", "C": "40001", "M": "a conflict of pg8000"}), True, False),
        (Java("23505"), False, True),
        (sqlite3.DatabaseError(Java("40001")), True, False),
    ],
)
def test_refusals_are_told_from_failures(error: Exception, answers: bool, expected: bool) -> None:
    assert refuses(sqlite3, error, ANSWERS[answers]) is expected


@pytest.mark.parametrize(
    ("statement", "values", "expected"),
    [
        ("INSERT INTO t VALUES (?)", (-1,), True),
        ("INSERT INTO t VALUES (?)", (2**70,), True),
        ("INSERT INTO t VALUES (?)", (object(),), True),
        ("INSERT INTO t VALUES (?)", ("\ud800",), True),
        ("INSERT INTO checked VALUES (?)", ("no JSON",), True),
        ("INSERT INTO missing VALUES (?)", (1,), False),
    ],
)
def test_sqlite_says_which_it_is(statement: str, values: tuple[Any, ...], expected: bool) -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (n INTEGER CHECK (n > 0))")
    connection.execute("CREATE TABLE checked (n TEXT CHECK (json_extract(n, '$.a') > 0))")
    table = statement.split()[2]

    def answers() -> bool:
        try:
            connection.execute(f"SELECT * FROM {table} WHERE 1 = 0")
        except sqlite3.Error:
            return False
        return True

    with pytest.raises(Exception) as raised:
        connection.execute(statement, values)
    assert refuses(sqlite3, raised.value, answers) is expected  # type: ignore[arg-type]
    connection.close()


def test_a_connection_that_commits_by_itself() -> None:
    for level, expected in ((None, True), ("DEFERRED", False)):
        connection = sqlite3.connect(":memory:", isolation_level=level)  # type: ignore[arg-type]
        assert commits_by_itself(connection) is expected
        connection.close()
    assert commits_by_itself(SimpleNamespace(autocommit=True))
    assert not commits_by_itself(SimpleNamespace(autocommit=False))
    assert not commits_by_itself(SimpleNamespace(autocommit=lambda on: None)), "a method that sets it"


def test_errors_are_those_of_the_driver_where_its_connection_has_not_all_of_them() -> None:
    class Connection(sqlite3.Connection):
        pass

    Connection.__module__ = "sqlite3.dbapi2"
    connection = Connection(":memory:")
    assert errors_of(connection) is sys.modules["sqlite3.dbapi2"]
    connection.close()
    assert errors_of(SimpleNamespace(Error=sqlite3.Error, InternalError=sqlite3.InternalError)) is None
