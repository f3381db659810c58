"""Mappers from a spout's tuples to the values of a stream, with Storm's names. A plain function works too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from storm_on_spark.api.tuple import Tuple


@dataclass(frozen=True)
class ValueMapper:
    """The value of one field.

    Args:
        field: its name, or its position from 0.

    Example:
        >>> from storm_on_spark.testing import make_tuple
        >>> ValueMapper(0)(make_tuple(["storm", 3], ["word", "count"]))
        'storm'
    """

    field: str | int = 0

    def __call__(self, tup: Tuple) -> Any:  # noqa: D102
        return tup[self.field]


class ValuesMapper:
    """A list of the values of some fields.

    Args:
        fields: their names or positions.

    Example:
        >>> from storm_on_spark.testing import make_tuple
        >>> ValuesMapper("count", "word")(make_tuple(["storm", 3], ["word", "count"]))
        [3, 'storm']
    """

    def __init__(self, *fields: str | int) -> None:
        self.fields = fields

    def __call__(self, tup: Tuple) -> list[Any]:  # noqa: D102
        return [tup[field] for field in self.fields]


class TupleValueMapper:
    """A Python tuple of the values of some fields; what Storm's `TupleValueMappers.of` returns.

    Args:
        fields: their names or positions.

    Example:
        >>> from storm_on_spark.testing import make_tuple
        >>> TupleValueMappers.of(0, 1)(make_tuple(["storm", 3], ["word", "count"]))
        ('storm', 3)
    """

    def __init__(self, *fields: str | int) -> None:
        self.fields = fields

    def __call__(self, tup: Tuple) -> tuple[Any, ...]:  # noqa: D102
        return tuple(tup[field] for field in self.fields)


class TupleValueMappers:
    """Storm's name for the factory of `TupleValueMapper`."""

    @staticmethod
    def of(*fields: str | int) -> TupleValueMapper:
        """Returns a mapper to a tuple of the values of `fields`."""
        return TupleValueMapper(*fields)


@dataclass(frozen=True)
class PairValueMapper:
    """A pair of key and value: `new_stream` makes a `PairStream` with it.

    Args:
        key: name or position of the key's field.
        value: name or position of the value's field.

    Example:
        >>> from storm_on_spark.testing import make_tuple
        >>> PairValueMapper(0, 1)(make_tuple(["storm", 3], ["word", "count"]))
        ('storm', 3)
    """

    key: str | int = 0
    value: str | int = 1

    @staticmethod
    def of(key: str | int, value: str | int) -> PairValueMapper:
        """Returns a mapper; Storm's spelling."""
        return PairValueMapper(key, value)

    def __call__(self, tup: Tuple) -> tuple[Any, Any]:  # noqa: D102
        return tup[self.key], tup[self.value]
