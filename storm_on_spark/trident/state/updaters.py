"""Updaters of values: by an aggregator, and by a value that replaces what was there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from storm_on_spark.trident.state.interfaces import ValueUpdater


class Combines(Protocol):
    """What is needed of a `CombinerAggregator`."""

    def combine(self, first: Any, second: Any) -> Any:
        """Returns the value of two values."""


class Reduces(Protocol):
    """What is needed of a `ReducerAggregator`."""

    def init(self) -> Any:
        """Returns the value before the first tuple."""

    def reduce(self, current: Any, tup: Any) -> Any:
        """Returns the value after a tuple."""


class CombinerValueUpdater(ValueUpdater[Any]):
    """Combines a stored value with that of a batch."""

    def __init__(self, aggregator: Combines, argument: Any) -> None:
        self.aggregator = aggregator
        self.argument = argument

    def update(self, stored: Any) -> Any:  # noqa: D102
        return self.argument if stored is None else self.aggregator.combine(stored, self.argument)


class ReducerValueUpdater(ValueUpdater[Any]):
    """Reduces the tuples of a batch into a stored value."""

    def __init__(self, aggregator: Reduces, tuples: Sequence[Any]) -> None:
        self.aggregator = aggregator
        self.tuples = tuples

    def update(self, stored: Any) -> Any:  # noqa: D102
        value = self.aggregator.init() if stored is None else stored
        for tup in self.tuples:
            value = self.aggregator.reduce(value, tup)
        return value


class ReplaceUpdater(ValueUpdater[Any]):
    """Replaces a stored value."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def update(self, stored: Any) -> Any:  # noqa: D102
        return self.value


class FunctionUpdater(ValueUpdater[Any]):
    """Changes a stored value by a function.

    Example:
        >>> FunctionUpdater(lambda count: (count or 0) + 1).update(None)
        1
    """

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def update(self, stored: Any) -> Any:  # noqa: D102
        return self.function(stored)
