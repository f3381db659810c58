"""Columns: names and types of what goes from tuples into tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from storm_on_spark.api.errors import ConfigError
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.streams.types import DECIMAL, check_type

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
_FRACTIONAL: Final = (float, np.floating, Decimal)


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
        storm_on_spark.api.errors.ConfigError: column "word": "text" is not a type; one is string, binary, boolean, \
byte, short, int, long, float, double, date, timestamp, decimal(P,S) or array<TYPE>
    """

    def __init__(self, types: Mapping[str, str]) -> None:
        given: Any = types
        if not isinstance(given, Mapping) or not given:
            raise ConfigError(f"columns are a type for each of one or more names (given {given!r:.200})", key="columns")
        for name, kind in given.items():
            if not isinstance(name, str) or not name or "\0" in name:
                raise ConfigError(f"the name of a column is text (given {name!r:.100})", key="columns")
            check_type(name, kind)
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
        arrays = [_array(column, field.type) for column, field in zip(by_column, schema, strict=True)]
        return pa.Table.from_arrays(arrays, schema=schema)

    def of_batch(self, batch: pa.RecordBatch) -> pa.Table | None:
        """Returns columns of these names as a table, or None if one is missing or has another type."""
        import pyarrow as pa

        schema = self.schema()
        names = batch.schema.names
        if any(names.count(field.name) != 1 or batch.schema.field(field.name).type != field.type for field in schema):
            return None
        return pa.Table.from_arrays([batch.column(name) for name in schema.names], schema=schema)


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Returns values as an array; Arrow itself would cut a fraction off where whole numbers are wanted."""
    import pyarrow as pa

    nested = pa.types.is_list(kind)
    if pa.types.is_integer(kind.value_type if nested else kind):
        single = [value for part in values if part is not None for value in part] if nested else values
        fractional = {each for each in set(map(type, single)) if issubclass(each, _FRACTIONAL)}
        for value in single if fractional else ():
            if isinstance(value, _FRACTIONAL) and not (isfinite(value) and int(value) == value):
                raise ValueError(f"{value!r:.100} is not a whole number")
    return pa.array(values, kind)


def declared_columns(streams: Iterable[Fields]) -> Columns:
    """Returns the columns of tuples whose streams declare a type for each field.

    Raises:
        ConfigError: a field has no type, or two streams differ.

    Example:
        >>> declared_columns([Fields({"word": "string"})]).types
        {'word': 'string'}
    """
    found: dict[str, str] | None = None
    for fields in streams:
        untyped = [name for name in fields if name not in fields.types]
        if untyped:
            raise ConfigError(
                f'field "{untyped[0]}" has no type: declare it, as in Fields({{"{untyped[0]}": "string"}}), '
                "or give the bolt its columns",
                key="columns",
            )
        types = {name: fields.types[name] for name in fields}
        if found is not None and found != types:
            raise ConfigError(
                f"the streams of one bolt have the same fields and types (there are {found} and {types})",
                key="columns",
            )
        found = types
    return Columns(found or {})


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
        raise ConfigError(f"expected each column once (given {found!r:.200})", key=key)
    return found


def _arrow(kind: str) -> pa.DataType:
    import pyarrow as pa

    if kind.startswith("array<"):
        return pa.list_(_arrow(kind[6:-1]))
    if kind == "timestamp":
        return pa.timestamp("us", tz="UTC")
    decimal = DECIMAL.fullmatch(kind)
    if decimal is not None:
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    return getattr(pa, _PLAIN[kind].replace("bool", "bool_"))()
