"""Windows that keep partial results: the connection of operations to the panes of windows."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from storm_on_spark.api.tuple import Tuple
from storm_on_spark.streams.graph.model import Operation
from storm_on_spark.streams.operations.aggregating import Folding
from storm_on_spark.streams.operations.processor import Partials
from storm_on_spark.windowing.aggregates.executor import AggregateExecutor
from storm_on_spark.windowing.aggregates.functions import Aggregate
from storm_on_spark.windowing.aggregates.manager import Entries
from storm_on_spark.windowing.aggregates.window import AggregateWindow
from storm_on_spark.windowing.definition import TimestampExtractor

_ATOMS: Final = (int, float, str, bytes, bool, type(None))


class Folds(Aggregate):
    """The aggregations of a bolt, combined. A partial result is the number of an aggregation and its accumulator.

    Args:
        operations: aggregations.
    """

    def __init__(self, operations: Sequence[Operation]) -> None:
        self._foldings = [_folding(operation) for operation in operations]
        self._functions: list[Callable[..., Any]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_foldings": self._foldings, "_functions": None}

    def add(self, partial: Any, tup: Any) -> Any:
        """Folds a value; `tup` is the number of the aggregation and the value."""
        if self._functions is None:
            self._functions = [folding.folder() for folding in self._foldings]
        number, value = tup
        fold = self._functions[number]
        return number, fold(value) if partial is None else fold(value, partial[1])

    def merge(self, one: Any, other: Any) -> Any:
        """Merges two accumulators of the same aggregation."""
        number, accumulator = one
        # The accumulator may be changed in place, but it is the partial result of a slide, which must stay.
        return number, self._foldings[number].merge(owned(accumulator), other[1])

    def inverse(self, total: Any, partial: Any) -> Any:
        """Removes a partial result from the total if the aggregation can do so."""
        number, accumulator = total
        left = self._foldings[number].inverse(accumulator, partial[1])
        return None if left is None else (number, left)


class PartialsExecutor(AggregateExecutor):
    """Executes the operations of a window that keeps partial results.

    Args:
        bolt: the operations.
        timestamp: as for `WindowExecutor`.
        idle_ms: as for `WindowExecutor`.
        operations: the aggregations.
    """

    def __init__(
        self,
        bolt: Any,
        timestamp: TimestampExtractor | str | None,
        idle_ms: int | None,
        operations: Sequence[Operation],
    ) -> None:
        layout = ", ".join(operation.processor.name for operation in operations)
        super().__init__(bolt, timestamp, idle_ms, {layout: Folds(operations)}, ())
        self.state_layout = f"windows of {layout}"

    def _entries(self, tup: Tuple) -> Entries:
        entries: Entries = self.bolt.expand(tup)  # type: ignore[attr-defined]
        return entries


class PartialsOfWindow(Partials):
    """The part of the window that belongs to one aggregation.

    Args:
        number: of the aggregation in its bolt.
        alone: whether it is the only one in the bolt.
        sliding: whether slides are in several windows.
    """

    def __init__(self, number: int, *, alone: bool, sliding: bool) -> None:
        self._number, self._alone, self._sliding = number, alone, sliding
        #: What the present tuple adds.
        self.entries: list[tuple[Any, Any]] = []
        #: The window that is evaluated.
        self.window: AggregateWindow | None = None

    def add(self, key: Any, value: Any) -> None:
        """Adds a value to the present slide."""
        # A key alone, because a micro-batch can look up such keys for all its tuples at once.
        self.entries.append((key if self._alone else (self._number, key), (self._number, value)))

    def totals(self) -> Iterator[tuple[Any, Any]]:
        """Yields the keys that have values in the evaluated window, with their accumulators."""
        assert self.window is not None, "totals are those of a window"
        for key, ((number, accumulator),) in self.window.totals():
            if number == self._number:
                # The receiver may change it, but a slide is also part of later windows.
                yield key if self._alone else key[1], owned(accumulator) if self._sliding else accumulator


def owned(accumulator: Any) -> Any:
    """Returns a copy of an accumulator, for changes in place."""
    return accumulator if isinstance(accumulator, _ATOMS) else copy.deepcopy(accumulator)


def _folding(operation: Operation) -> Folding:
    processor = operation.processor
    assert isinstance(processor, Folding)
    return processor
