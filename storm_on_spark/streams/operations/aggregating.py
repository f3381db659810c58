"""Aggregations of all values of a stream, or of those with equal keys.

Outside of windows each value gives the result of all values so far. In a window there is one result, at its end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from storm_on_spark.streams.operations.aggregators import Collect, CombinerAggregator, Count
from storm_on_spark.streams.operations.processor import Bound, Place, Processor

_NONE: Final = object()
"""Stands for no value so far. None can't, because a reduction may give None."""


_Steps = tuple[Callable[[Any, Any], Any], "Callable[[Any], Any] | None"]


@dataclass(frozen=True)
class Folding(Processor):
    """Folds values into accumulators by key."""

    stateful = True
    gathers = True
    by_key = True

    def _steps(self) -> _Steps:
        """Returns two functions: one folds a value into an accumulator, or into `_NONE`; the other makes the result."""
        raise NotImplementedError

    @property
    def folds(self) -> bool:
        """Always."""
        return True

    def folder(self) -> Callable[..., Any]:
        """Returns a function of a value, and of an accumulator if there is one; it returns an accumulator."""
        fold = self._steps()[0]
        return lambda value, accumulator=_NONE: fold(accumulator, value)

    def merge(self, first: Any, second: Any) -> Any:
        """Returns one accumulator for the values of two."""
        raise NotImplementedError(f"{self.name} can't merge what it has of two parts of a window")

    def inverse(self, total: Any, gone: Any) -> Any:
        """Returns an accumulator without the values of another; None if that is impossible."""
        return None

    def bind(self, place: Place) -> Bound:
        """Returns the aggregation of single values, of the values of windows, or of partial results in windows."""
        (forward,), (fold, result), by_key = place.forward, self._steps(), self.by_key
        if not place.windowed:
            get, put = place.store.get, place.store.put

            def take_pair(pair: Any) -> None:
                key, value = pair
                accumulator = fold(get(key, _NONE), value)
                put(key, accumulator)
                forward((key, accumulator if result is None else result(accumulator)))

            def take(value: Any) -> None:
                accumulator = fold(get(None, _NONE), value)
                put(None, accumulator)
                forward(accumulator if result is None else result(accumulator))

            return Bound([take_pair if by_key else take])
        if place.partials is not None:
            add, totals = place.partials.add, place.partials.totals

            def tell() -> None:
                for key, accumulator in totals():
                    made = accumulator if result is None else result(accumulator)
                    forward((key, made) if by_key else made)

            return Bound([(lambda pair: add(*pair)) if by_key else (lambda value: add(None, value))], tell)
        folded = place.held

        def gather(given: Any) -> None:
            key, value = given if by_key else (None, given)
            folded[key] = fold(folded.get(key, _NONE), value)

        def finish() -> None:
            found = list(folded.items())
            folded.clear()
            for key, accumulator in found:
                made = accumulator if result is None else result(accumulator)
                forward((key, made) if by_key else made)

        return Bound([gather], finish)


@dataclass(frozen=True)
class AggregateByKey(Folding):
    """The aggregated values of each key."""

    aggregator: CombinerAggregator
    name = "aggregate_by_key"

    def _steps(self) -> _Steps:
        init, apply = self.aggregator.init, self.aggregator.apply

        def fold(accumulator: Any, value: Any) -> Any:
            return apply(init() if accumulator is _NONE else accumulator, value)

        result = getattr(self.aggregator, "result", None)
        # The accumulator itself, unless the aggregator defines the method.
        return fold, None if getattr(result, "__func__", None) is CombinerAggregator.result else result

    @property
    def merges(self) -> bool:
        """If the aggregator has a method `merge`."""
        known = getattr(self.aggregator, "merges", None)
        return callable(getattr(self.aggregator, "merge", None)) if known is None else bool(known)

    def merge(self, first: Any, second: Any) -> Any:
        """Calls the aggregator's method."""
        return self.aggregator.merge(first, second)

    def inverse(self, total: Any, gone: Any) -> Any:
        """Calls the aggregator's method, if it has one."""
        inverse = getattr(self.aggregator, "inverse", None)
        return None if inverse is None else inverse(total, gone)


@dataclass(frozen=True)
class CountByKey(AggregateByKey):
    """The number of values of each key."""

    aggregator: CombinerAggregator = field(default_factory=Count)
    name = "count_by_key"


@dataclass(frozen=True)
class GroupByKey(AggregateByKey):
    """The list of values of each key."""

    aggregator: CombinerAggregator = field(default_factory=Collect)
    name = "group_by_key"

    @property
    def folds(self) -> bool:
        """Returns None: there is nothing smaller than all values."""
        return False


@dataclass(frozen=True)
class ReduceByKey(Folding):
    """The values of each key, reduced to one by a function of two."""

    function: Callable[[Any, Any], Any]
    name = "reduce_by_key"

    def _steps(self) -> _Steps:
        function = self.function

        def fold(accumulator: Any, value: Any) -> Any:
            return value if accumulator is _NONE else function(accumulator, value)

        return fold, None


@dataclass(frozen=True)
class Aggregate(AggregateByKey):
    """The aggregate of all values."""

    name = "aggregate"
    by_key = False


@dataclass(frozen=True)
class CountAll(Aggregate):
    """The number of all values."""

    aggregator: CombinerAggregator = field(default_factory=Count)
    name = "count"


@dataclass(frozen=True)
class Reduce(ReduceByKey):
    """All values, reduced to one."""

    name = "reduce"
    by_key = False


@dataclass(frozen=True)
class UpdateStateByKey(Processor):
    """The state of each key, updated with each value; `state_query` reads it."""

    updater: CombinerAggregator
    name = "update_state_by_key"
    stateful = True
    by_key = True
    ends_window = True

    def bind(self, place: Place) -> Bound:  # noqa: D102
        (forward,), store = place.forward, place.store
        updater = self.updater

        def take(pair: Any) -> None:
            key, value = pair
            state = store.get(key, _NONE)
            state = updater.apply(updater.init() if state is _NONE else state, value)
            store.put(key, state)
            forward((key, state))

        return Bound([take])


@dataclass(frozen=True)
class StateQuery(Processor):
    """Each value as a key, with the state that another operation has for it; None if it has none."""

    state: int
    """The operation whose state is read."""
    name = "state_query"
    stateful = True
    ends_window = True

    @property
    def beside(self) -> int:  # noqa: D102
        return self.state

    def bind(self, place: Place) -> Bound:  # noqa: D102
        (forward,), get = place.forward, place.store.get
        return Bound([lambda key: forward((key, get(key)))])
