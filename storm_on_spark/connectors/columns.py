"""Columns: names and types of what goes from tuples into tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from storm_on_spark.api.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa

_PLAIN: Final[Mapping[str, str]] = {
    "string": "string",
    "binary": "binary",
    "boolean": "bool",
    "byte": "int8",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "float": "float32",
    "double": "float64",
    "date": "date32",
}
"""Names of Spark SQL's types, and Arrow's for the same."""
_DECIMAL: Final = re.compile(r"decimal\((\d{1,2}),\s*(\d{1,2})\)")
_MOST_DIGITS: Final = 38


class Columns:
    """Names and types of columns, in order.

    Types are named as in Spark SQL: string, binary, boolean, byte, short, int, long, float, double, date, timestamp
    (aware, or naive for UTC), `decimal(P,S)`, and `array<…>` of one of them. Every value may be None.

    Args:
        types: by name.

    Raises:
        ConfigError: a name or a type makes no sense.

    Example:
        >>> columns = Columns({"word": "string", "count": "long"})
        >>> columns.names
        ('word', 'count')
        >>> columns.table([("storm", 2), ("spark", None)]).to_pylist()
        [{'word': 'storm', 'count': 2}, {'word': 'spark', 'count': None}]
        >>> Columns({"word": "text"})
        Traceback (most recent call last):
        ...
        storm_on_spark.api.errors.ConfigError: column "word": "text" is no type; one is string, binary, boolean, byte, \
short, int, long, float, double, date, timestamp, decimal(P,S) or array<TYPE>
    """

    def __init__(self, types: Mapping[str, str]) -> None:
        given: Any = types
        if not isinstance(given, Mapping) or not given:
            raise ConfigError(f"columns are a type for each of one or more names (given {given!r:.200})", key="columns")
        for name, kind in given.items():
            if not isinstance(name, str) or not name or "\0" in name:
                raise ConfigError(f"the name of a column is text (given {name!r:.100})", key="columns")
            _check(name, kind)
        if len({name.lower() for name in given}) < len(given):
            # Spark and Delta don't tell them apart.
            raise ConfigError(f"names of columns differ by more than case (given {', '.join(given)})", key="columns")
        self.types: dict[str, str] = dict(given)

    @property
    def names(self) -> tuple[str, ...]:
        """The names."""
        return tuple(self.types)

    def schema(self) -> pa.Schema:
        """Returns them as a schema of Arrow."""
        import pyarrow as pa

        return pa.schema([pa.field(name, _arrow(kind)) for name, kind in self.types.items()])

    def table(self, rows: Sequence[Sequence[Any]]) -> pa.Table:
        """Returns rows as a table.

        Raises:
            pyarrow.ArrowException, TypeError, ValueError, OverflowError: a value does not fit in its column.
        """
        import pyarrow as pa

        schema = self.schema()
        by_column = zip(*rows, strict=True) if rows else [()] * len(schema)
        arrays = [pa.array(column, field.type) for column, field in zip(by_column, schema, strict=True)]
        return pa.Table.from_arrays(arrays, schema=schema)


def single_valued(names: Iterable[str], columns: Columns, key: str) -> tuple[str, ...]:
    """Returns names that must be among the columns, and none of them of arrays.

    Raises:
        ConfigError: they are not.
    """
    found: tuple[Any, ...] = (names,) if isinstance(names, str) else tuple(names)
    for name in found:
        if name not in columns.types:
            raise ConfigError(f"{name!r:.100} is none of the columns {', '.join(columns.names)}", key=key)
        if columns.types[name].startswith("array<"):
            raise ConfigError(f'column "{name}" is {columns.types[name]}, not a single value', key=key)
    if len(set(found)) < len(found):
        raise ConfigError(f"each column once (given {found!r:.200})", key=key)
    return found


def _check(name: str, kind: Any) -> None:
    inner = kind[6:-1] if isinstance(kind, str) and kind.startswith("array<") and kind.endswith(">") else kind
    if inner in _PLAIN or inner == "timestamp":
        return
    decimal = _DECIMAL.fullmatch(inner) if isinstance(inner, str) else None
    if decimal is not None and 1 <= int(decimal[1]) <= _MOST_DIGITS and int(decimal[2]) <= int(decimal[1]):
        return
    given = f'"{kind}"' if isinstance(kind, str) else f"{kind!r:.100}"
    allowed = ", ".join([*_PLAIN, "timestamp", "decimal(P,S)"])
    raise ConfigError(f'column "{name}": {given} is no type; one is {allowed} or array<TYPE>', key="columns")


def _arrow(kind: str) -> pa.DataType:
    import pyarrow as pa

    if kind.startswith("array<"):
        return pa.list_(_arrow(kind[6:-1]))
    if kind == "timestamp":
        return pa.timestamp("us", tz="UTC")
    decimal = _DECIMAL.fullmatch(kind)
    if decimal is not None:
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    return getattr(pa, _PLAIN[kind].replace("bool", "bool_"))()
