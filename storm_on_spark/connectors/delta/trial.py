"""A Delta table to try rows on: whether another table, of the same schema and constraints, would take them."""

from __future__ import annotations

import contextlib
import operator
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

_CONSTRAINT: Final = "delta.constraints."


@contextlib.contextmanager
def trial_of(target: DeltaTable, rows: pa.Table, keys: Sequence[str]) -> Iterator[DeltaTable]:
    """Makes a table on the driver's disk, and removes it afterwards.

    Args:
        target: the table that it is like.
        rows: that will be tried.
        keys: columns by which they are merged; none where they are appended. The trial then has the target's rows with
            the same keys, as a constraint may speak of columns that are not among those of `rows`.
    """
    from deltalake import DeltaTable, write_deltalake

    with tempfile.TemporaryDirectory(prefix="storm-trial-") as folder:
        trial = DeltaTable.create(folder, target.schema(), partition_by=target.metadata().partition_columns)
        if keys and set(rows.schema.names) < {field.name for field in target.schema().fields}:
            write_deltalake(trial, _with_keys(target, rows, keys), mode="append")
        if constraints := constraints_of(target):
            trial.alter.add_constraint(constraints)
        yield trial


def constraints_of(table: DeltaTable) -> dict[str, str]:
    """Returns the expressions of a table's constraints, by their names."""
    found = table.metadata().configuration
    return {
        name.removeprefix(_CONSTRAINT): text for name, text in found.items() if name.startswith(_CONSTRAINT) and text
    }


def taking(trial: DeltaTable, put: Callable[[DeltaTable, pa.Table], None]) -> Callable[[pa.Table], Exception | None]:
    """Returns a function that tries rows, and returns why they are refused.

    Args:
        trial: see `trial_of`.
        put: writes rows to a table.
    """

    def write(part: pa.Table) -> Exception | None:
        try:
            put(trial, part)
        except Exception as error:
            if not refuses(error):
                raise
            return error
        return None

    return write


def refuses(error: Exception) -> bool:
    """Returns whether a table refused rows: others may be written. Otherwise the table or its store failed.

    `deltalake` has no class of errors for that: constraints are told by their words, and values that it can't cast by
    errors that are not its own.
    """
    from deltalake.exceptions import DeltaError

    if isinstance(error, DeltaError):
        return "Invalid data found" in str(error)
    return not isinstance(error, (OSError, MemoryError))


def reason(table: DeltaTable, row: dict[str, object], error: Exception) -> str:
    """Returns why a table refuses a row. Delta's own words don't name a constraint."""
    empty = [field.name for field in table.schema().fields if not field.nullable and row.get(field.name) is None]
    if empty:
        return f"no value for {', '.join(empty)}"
    lines = [line for line in str(error).splitlines() if line.strip()]
    found = [f"{name} ({text})" for name, text in constraints_of(table).items()]
    if "Invalid data found" in str(error) and found:
        return f"constraint {found[0]}" if len(found) == 1 else f"one of the constraints {', '.join(found)}"
    return f"{type(error).__name__}: {lines[0] if lines else ''}"


def _with_keys(target: DeltaTable, rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    import pyarrow.dataset as ds

    data = target.to_pyarrow_dataset()
    same = (ds.field(key).isin(rows[key].cast(data.schema.field(key).type).unique()) for key in keys)
    return data.to_table(filter=reduce(operator.and_, same))
