"""Aggregators: they combine values, or partial results, into one result."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from storm_on_spark.windowing.aggregates.functions import DistinctOf


class CombinerAggregator:
    """Turns any number of values into one result; Storm's `CombinerAggregator`.

    Subclass it for an aggregation of your own, or use `of`. An accumulator may be changed in place. With a method
    `merge`, a sliding window keeps accumulators instead of values, one for each key and slide. Then `init` must be
    neutral: merging it leaves an accumulator unchanged.

    Example:
        >>> class Longest(CombinerAggregator):
        ...     def init(self):
        ...         return ""
        ...     def apply(self, accumulator, value):
        ...         return max(accumulator, value, key=len)
        >>> longest = Longest()
        >>> longest.result(longest.apply(longest.apply(longest.init(), "on"), "storm"))
        'storm'
    """

    @staticmethod
    def of(
        initial: Any, accumulate: Callable[[Any, Any], Any], combine: Callable[[Any, Any], Any] | None = None
    ) -> CombinerAggregator:
        """Returns an aggregator of functions.

        Args:
            initial: the accumulator before the first value; every key gets a copy. Or a type or function that returns
                it.
            accumulate: called with accumulator and value; returns the new accumulator.
            combine: called with two accumulators; returns one for the values of both. With it, `initial` must be
                neutral, as 0 is for a sum.
        """
        return _Functions(initial, accumulate, combine)

    def init(self) -> Any:
        """Returns the accumulator before the first value."""
        return None

    def apply(self, accumulator: Any, value: Any) -> Any:
        """Returns the accumulator after a value."""
        raise NotImplementedError(f"{type(self).__qualname__} has no method apply(accumulator, value)")

    def merge(self, first: Any, second: Any) -> Any:
        """Returns the accumulator for the values of two."""
        raise NotImplementedError(f"{type(self).__qualname__} has no method merge(first, second)")

    @property
    def merges(self) -> bool:
        """Whether it has a method `merge`."""
        return type(self).merge is not CombinerAggregator.merge

    def inverse(self, total: Any, gone: Any) -> Any:
        """Returns `total` without the values of `gone`, which was merged into it; None if that is impossible.

        A sliding window calls it for slides that have left it. Without it, all slides of the window are merged again.
        """
        return None

    def result(self, accumulator: Any) -> Any:
        """Returns the result for an accumulator."""
        return accumulator


class Count(CombinerAggregator):
    """The number of values."""

    def init(self) -> int:  # noqa: D102
        return 0

    def apply(self, accumulator: int, value: Any) -> int:  # noqa: D102
        return accumulator + 1

    def merge(self, first: int, second: int) -> int:  # noqa: D102
        return first + second

    def inverse(self, total: int, gone: int) -> int:  # noqa: D102
        return total - gone


class Sum(CombinerAggregator):
    """The sum of values; Storm's `LongSum`, for any numbers."""

    def init(self) -> Any:  # noqa: D102
        return 0

    def apply(self, accumulator: Any, value: Any) -> Any:  # noqa: D102
        return accumulator + value

    def merge(self, first: Any, second: Any) -> Any:  # noqa: D102
        return first + second

    def inverse(self, total: Any, gone: Any) -> Any:
        """Subtracts integers; floats would lose digits."""
        return total - gone if isinstance(total, int) and isinstance(gone, int) else None


LongSum = Sum
"""Storm's name."""


class Min(CombinerAggregator):
    """The least value."""

    def apply(self, accumulator: Any, value: Any) -> Any:  # noqa: D102
        return value if accumulator is None else min(accumulator, value)

    def merge(self, first: Any, second: Any) -> Any:  # noqa: D102
        return first if second is None else self.apply(first, second)


class Max(CombinerAggregator):
    """The greatest value."""

    def apply(self, accumulator: Any, value: Any) -> Any:  # noqa: D102
        return value if accumulator is None else max(accumulator, value)

    def merge(self, first: Any, second: Any) -> Any:  # noqa: D102
        return first if second is None else self.apply(first, second)


class Mean(CombinerAggregator):
    """The mean of numbers."""

    def init(self) -> Any:  # noqa: D102
        return 0, 0

    def apply(self, accumulator: Any, value: Any) -> Any:  # noqa: D102
        return accumulator[0] + value, accumulator[1] + 1

    def merge(self, first: Any, second: Any) -> Any:  # noqa: D102
        return first[0] + second[0], first[1] + second[1]

    def inverse(self, total: Any, gone: Any) -> Any:
        """Subtracts integers; floats would lose digits."""
        if isinstance(total[0], int) and isinstance(gone[0], int):
            return total[0] - gone[0], total[1] - gone[1]
        return None

    def result(self, accumulator: Any) -> Any:
        """Divides."""
        return accumulator[0] / accumulator[1]


_SKETCH = DistinctOf("value")


class Distinct(CombinerAggregator):
    """The number of different values, estimated: within 1.6 per cent, as a rule. See `DistinctOf`."""

    def init(self) -> Any:  # noqa: D102
        return {}

    def apply(self, accumulator: Any, value: Any) -> Any:  # noqa: D102
        return _SKETCH.merge(accumulator, _SKETCH.of(value))

    def merge(self, first: Any, second: Any) -> Any:  # noqa: D102
        return _SKETCH.merge(first, second)

    def result(self, accumulator: Any) -> Any:
        """Returns the estimate."""
        return _SKETCH.result(accumulator)


class _Functions(CombinerAggregator):
    def __init__(
        self, initial: Any, accumulate: Callable[[Any, Any], Any], combine: Callable[[Any, Any], Any] | None
    ) -> None:
        self._initial, self._accumulate, self._combine = initial, accumulate, combine

    def init(self) -> Any:
        return self._initial() if callable(self._initial) else copy.deepcopy(self._initial)

    def apply(self, accumulator: Any, value: Any) -> Any:
        return self._accumulate(accumulator, value)

    @property
    def merges(self) -> bool:
        return self._combine is not None

    def merge(self, first: Any, second: Any) -> Any:
        if self._combine is None:
            return super().merge(first, second)
        return self._combine(first, second)


class Collect(CombinerAggregator):
    """All values, as a list in the order of their arrival."""

    def init(self) -> list[Any]:  # noqa: D102
        return []

    def apply(self, accumulator: list[Any], value: Any) -> list[Any]:  # noqa: D102
        accumulator.append(value)
        return accumulator

    @property
    def merges(self) -> bool:
        """Returns None, since subtracting would save nothing: the accumulator has all values."""
        return False

    def merge(self, first: list[Any], second: list[Any]) -> list[Any]:  # noqa: D102
        return [*first, *second]

    def result(self, accumulator: list[Any]) -> list[Any]:
        """Returns a copy, because the accumulator keeps growing."""
        return list(accumulator)
