"""Operations on single values. They have no state, so they run in the same call as the operation before them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from storm_on_spark.streams.operations.processor import Bound, Place, Processor


@dataclass(frozen=True)
class Map(Processor):
    """One result for each value."""

    function: Callable[[Any], Any]
    name = "map"

    def bind(self, place: Place) -> Bound:  # noqa: D102
        (forward,), function = place.forward, self.function
        return Bound([lambda value: forward(function(value))])


@dataclass(frozen=True)
class MapToPair(Map):
    """One pair of key and value for each value."""

    name = "map_to_pair"

    def bind(self, place: Place) -> Bound:  # noqa: D102
        (forward,), function = place.forward, self.function
        return Bound([lambda value: forward(checked_pair(function(value)))])


@dataclass(frozen=True)
class FlatMap(Map):
    """Any number of results for each value."""

    name = "flat_map"

    def bind(self, place: Place) -> Bound:  # noqa: D102
        (forward,), function = place.forward, self.function

        def take(value: Any) -> None:
            for result in function(value):
                forward(result)

        return Bound([take])


@dataclass(frozen=True)
class FlatMapToPair(Map):
    """Any number of pairs for each value."""

    name = "flat_map_to_pair"

    def bind(self, place: Place) -> Bound:  # noqa: D102
        (forward,), function = place.forward, self.function

        def take(value: Any) -> None:
            for result in function(value):
                forward(checked_pair(result))

        return Bound([take])


@dataclass(frozen=True)
class MapValues(Map):
    """A pair with the same key and another value for each pair."""

    name = "map_values"

    def bind(self, place: Place) -> Bound:  # noqa: D102
        (forward,), function = place.forward, self.function
        return Bound([lambda pair: forward((pair[0], function(pair[1])))])


@dataclass(frozen=True)
class FlatMapValues(Map):
    """Any number of pairs with the same key for each pair."""

    name = "flat_map_values"

    def bind(self, place: Place) -> Bound:  # noqa: D102
        (forward,), function = place.forward, self.function

        def take(pair: Any) -> None:
            key = pair[0]
            for result in function(pair[1]):
                forward((key, result))

        return Bound([take])


@dataclass(frozen=True)
class Filter(Map):
    """The values for which a function returns a true value."""

    name = "filter"

    def bind(self, place: Place) -> Bound:  # noqa: D102
        (forward,), function = place.forward, self.function

        def take(value: Any) -> None:
            if function(value):
                forward(value)

        return Bound([take])


@dataclass(frozen=True)
class Peek(Map):
    """The same values, each after the call of a function."""

    name = "peek"
    acts = True

    def bind(self, place: Place) -> Bound:  # noqa: D102
        (forward,), function = place.forward, self.function

        def take(value: Any) -> None:
            function(value)
            forward(value)

        return Bound([take])


@dataclass(frozen=True)
class ForEach(Map):
    """Nothing, after the call of a function for each value."""

    name = "for_each"
    acts = True

    @property
    def outputs(self) -> int:  # noqa: D102
        return 0

    def bind(self, place: Place) -> Bound:  # noqa: D102
        return Bound([self.function])


@dataclass(frozen=True)
class Print(ForEach):
    """Nothing, after printing each value."""

    function: Callable[[Any], Any] = print
    name = "print"


@dataclass(frozen=True)
class Branch(Processor):
    """Each value at the output of the first function that returns a true value, or at none."""

    predicates: tuple[Callable[[Any], Any], ...]
    name = "branch"

    @property
    def outputs(self) -> int:  # noqa: D102
        return len(self.predicates)

    def bind(self, place: Place) -> Bound:  # noqa: D102
        ways = list(zip(self.predicates, place.forward, strict=True))

        def take(value: Any) -> None:
            for predicate, forward in ways:
                if predicate(value):
                    forward(value)
                    return

        return Bound([take])


@dataclass(frozen=True)
class Union(Processor):
    """The values of several streams."""

    inputs: int
    name = "union"

    def bind(self, place: Place) -> Bound:  # noqa: D102
        (forward,) = place.forward
        return Bound([forward] * self.inputs)


_PAIR: Final = 2


def checked_pair(result: Any) -> Any:
    """Returns a pair of key and value.

    Raises:
        TypeError: the value is not a pair.
    """
    if isinstance(result, (tuple, list)) and len(result) == _PAIR:
        return result
    raise TypeError(f"a pair is a tuple (key, value), not {result!r:.100} ({type(result).__name__})")
