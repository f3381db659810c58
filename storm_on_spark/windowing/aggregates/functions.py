"""Aggregations: the partial results of slides, and how they become the result of a window."""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from typing import Any, Final

from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.api.text.wording import kind_of
from storm_on_spark.api.tuple import Tuple


class Aggregate(ABC):
    """An aggregation of your own. Partial results must be picklable, and are not changed in place.

    Example:
        >>> class Longest(Aggregate):
        ...     def add(self, partial, tup):
        ...         return tup["word"] if partial is None else max(partial, tup["word"], key=len)
        ...     def merge(self, one, other):
        ...         return max(one, other, key=len)
        >>> from storm_on_spark.testing import make_tuple
        >>> Longest().merge("to", Longest().add(None, make_tuple(["beer"], ["word"])))
        'beer'
    """

    @abstractmethod
    def add(self, partial: Any, tup: Tuple) -> Any:
        """Returns a partial result with one more tuple; `partial` is None for the first one."""

    @abstractmethod
    def merge(self, one: Any, other: Any) -> Any:
        """Returns the combined partial result of both."""

    def inverse(self, total: Any, partial: Any) -> Any:
        """Returns `total` without `partial`, which was merged into it before; None if that is impossible.

        With it, a window costs two steps for each change; without it, one for each slide of the window.
        """
        return None

    def result(self, partial: Any) -> Any:
        """Returns the result that the window shows for a partial result."""
        return partial


class CountOf(Aggregate):
    """The number of tuples."""

    def add(self, partial: Any, tup: Tuple) -> Any:
        """Counts a tuple."""
        return 1 if partial is None else partial + 1

    def merge(self, one: Any, other: Any) -> Any:
        """Adds up."""
        return one + other

    def inverse(self, total: Any, partial: Any) -> Any:
        """Subtracts."""
        return total - partial


class _OfField(Aggregate):
    """An aggregation of the values of a field.

    Args:
        field: its name.
    """

    def __init__(self, field: str) -> None:
        if not isinstance(field, str):
            raise InvalidTopologyError(f"{type(self).__name__} takes the name of a field, not {kind_of(field)}")
        self.field = field

    def add(self, partial: Any, tup: Tuple) -> Any:
        """Adds a tuple's value."""
        value = self.of(tup[self.field])
        return value if partial is None else self.merge(partial, value)

    def of(self, value: Any) -> Any:
        """Returns the partial result of one value."""
        return value


class SumOf(_OfField):
    """The sum of a field. Integers are exact; for floats, the sums of slides are added again for each window."""

    def merge(self, one: Any, other: Any) -> Any:
        """Adds up."""
        return one + other

    def inverse(self, total: Any, partial: Any) -> Any:
        """Subtracts what is exact."""
        return total - partial if isinstance(total, int) and isinstance(partial, int) else None


class MinOf(_OfField):
    """The minimum of a field."""

    def merge(self, one: Any, other: Any) -> Any:
        """Returns the lesser one."""
        return one if one <= other else other


class MaxOf(_OfField):
    """The maximum of a field."""

    def merge(self, one: Any, other: Any) -> Any:
        """Returns the greater one."""
        return one if one >= other else other


class MeanOf(_OfField):
    """The mean of a field."""

    def of(self, value: Any) -> Any:
        """Returns sum and number."""
        return value, 1

    def merge(self, one: Any, other: Any) -> Any:
        """Adds up both."""
        return one[0] + other[0], one[1] + other[1]

    def inverse(self, total: Any, partial: Any) -> Any:
        """Subtracts what is exact."""
        if isinstance(total[0], int) and isinstance(partial[0], int):
            return total[0] - partial[0], total[1] - partial[1]
        return None

    def result(self, partial: Any) -> Any:
        """Divides."""
        return partial[0] / partial[1]


_BITS: Final = 12
_REGISTERS: Final = 1 << _BITS


class DistinctOf(_OfField):
    """The number of different values of a field, estimated: within 1.6 per cent, as a rule.

    A sketch (HyperLogLog: Flajolet, Fusy, Gandouet, Meunier, 2007) of at most 4,096 registers. Values are the same if
    their `repr` is.
    """

    def of(self, value: Any) -> Any:
        """Returns the register of a value."""
        number = int.from_bytes(hashlib.blake2b(repr(value).encode(), digest_size=8).digest(), "big")
        return {number >> (64 - _BITS): 64 - _BITS - (number & ((1 << (64 - _BITS)) - 1)).bit_length() + 1}

    def merge(self, one: Any, other: Any) -> Any:
        """Returns the maximum of each register."""
        large, small = (one, other) if len(one) >= len(other) else (other, one)
        merged = dict(large)
        for register, rank in small.items():
            if rank > merged.get(register, 0):
                merged[register] = rank
        return merged

    def result(self, partial: Any) -> Any:
        """Returns the estimate."""
        empty = _REGISTERS - len(partial)
        if empty > _REGISTERS * 0.08:
            return round(_REGISTERS * math.log(_REGISTERS / empty))
        total = sum(2.0**-rank for rank in partial.values()) + empty
        return round(0.7213 / (1 + 1.079 / _REGISTERS) * _REGISTERS**2 / total)
