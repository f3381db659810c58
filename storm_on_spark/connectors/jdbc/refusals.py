"""Errors of databases: whether a row was refused, or the system failed."""

from __future__ import annotations

import re
import sqlite3
import sys
from collections.abc import Callable
from typing import Any, Final

_STATE: Final = re.compile("[0-9A-Z]{5}")
_STATES: Final = ("22", "23", "44", "45", "54", "P0")
"""Classes of SQLSTATE that speak of a row: of data, of constraints, of views, of triggers, of limits, of PL/pgSQL."""
_ERRORS: Final = ("Error", "DataError", "IntegrityError", "OperationalError", "InternalError")
_WRONG_TYPE: Final = "42804"
"""The SQLSTATE of a value whose type is not the column's."""
_MYSQL: Final = frozenset({1153, 1292, 1366, 1644, 3140, 3819, 4025})
"""Errors that drivers of MySQL and MariaDB call operational, and that speak of a row: packets that are too large, wrong
values, SIGNAL of a trigger, JSON that is none, checks."""
_SQLITE_ERROR: Final = 1
"""What SQLite says of a function that a check calls, and of a table that is missing."""


def commits_by_itself(connection: Any) -> bool:
    """Returns whether a connection of DB-API commits each statement, so that a part can't be taken back."""
    return getattr(connection, "autocommit", False) is True or (
        isinstance(connection, sqlite3.Connection) and connection.isolation_level is None
    )


def errors_of(connection: Any) -> Any:
    """Returns what has all of DB-API's classes of errors: a module of the driver, or else the connection."""
    parts = type(connection).__module__.split(".")
    modules = (sys.modules.get(".".join(parts[:end])) for end in range(len(parts), 0, -1))
    # Modules first: some connections warn where they are asked for these, and some have not all of them.
    return next((each for each in (*modules, connection) if all(hasattr(each, name) for name in _ERRORS)), None)


def refuses(module: Any, error: Exception, still_answers: Callable[[], bool]) -> bool:
    """Returns whether a database refused rows: others may be written. Otherwise the system failed.

    Args:
        module: what has the classes of errors: the driver, a module of DB-API 2, or see `errors_of`.
        error: what a statement or the commit raised; the transaction was rolled back.
        still_answers: asks the table for nothing over the same connection; called if the error itself doesn't tell.

    Example:
        >>> refuses(sqlite3, sqlite3.IntegrityError("CHECK constraint failed"), lambda: True)
        True
        >>> refuses(sqlite3, sqlite3.OperationalError("database is locked"), lambda: True)
        False
    """
    if isinstance(error, (OSError, MemoryError)):
        return False
    first = error.args[0] if error.args else None
    state = sqlstate(error)
    if state is not None:
        return state.startswith(_STATES) or state == _WRONG_TYPE
    if not isinstance(error, module.Error):
        return still_answers()  # a value that the driver can't convert: it raises what Python has for that
    if isinstance(error, (module.DataError, module.IntegrityError)):
        return True
    if isinstance(error, (module.OperationalError, module.InternalError)):
        if getattr(error, "errno", first) in _MYSQL:
            return True
        return getattr(error, "sqlite_errorcode", None) == _SQLITE_ERROR and still_answers()
    return still_answers()


def sqlstate(error: Exception) -> str | None:
    """Returns the SQLSTATE of an error, or of its first argument; None if it has none that says anything."""
    state = _state(error) or _state(error.args[0] if error.args else None)
    return state if isinstance(state, str) and _STATE.fullmatch(state) and state != "HY000" else None


def _state(of: Any) -> Any:
    """Returns the SQLSTATE that an error has, or its first argument."""
    if isinstance(of, str):
        return of
    if isinstance(of, dict):
        return of.get("C")  # pg8000 has what PostgreSQL sends, by its letters
    if callable(getattr(of, "getSQLState", None)):
        return str(of.getSQLState())  # of Java, through JayDeBeApi
    return getattr(of, "sqlstate", None) or getattr(of, "pgcode", None)
