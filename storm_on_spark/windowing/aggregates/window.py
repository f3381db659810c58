"""The window that a bolt with aggregations evaluates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from storm_on_spark.windowing.aggregates.panes import Panes, Partials


class AggregateWindow:
    """The results of a window, by key. It is valid while the bolt evaluates it.

    Args:
        panes: with the results.
        changed: the keys whose results may differ from the previous window.
        start: the time after which the window begins.
        end: the time up to which it lasts.

    Example:
        >>> from storm_on_spark.testing import BoltTester, make_tuple
        >>> from storm_on_spark.windowing import BaseWindowedBolt, Count, CountOf
        >>> class Show(BaseWindowedBolt):
        ...     def execute(self, window):
        ...         print(dict(window.changed), len(window))
        >>> bolt = Show().with_window(Count(4), Count(2)).with_aggregate(by="word", number=CountOf())
        >>> tester = BoltTester(bolt)
        >>> tester.execute(*(make_tuple([word], ["word"]) for word in "to be or to be to".split()))
        {'to': {'number': 1}, 'be': {'number': 1}} 2
        {'or': {'number': 1}, 'to': {'number': 2}} 3
        {'to': {'number': 2}, 'be': {'number': 1}} 3
    """

    def __init__(
        self, panes: Panes, changed: Mapping[Any, Partials | None], start: int | None = None, end: int | None = None
    ) -> None:
        self._panes, self._changed = panes, changed
        self.start = start
        self.end = end

    @property
    def changed(self) -> Iterator[tuple[Any, dict[str, Any] | None]]:
        """The keys that have gained or lost contents since the previous window, with results; None for nothing left."""
        for key, totals in self._changed.items():
            yield key, None if totals is None else self._panes.results(totals)

    def __iter__(self) -> Iterator[tuple[Any, dict[str, Any]]]:
        """Yields all keys with their results; the cost is proportional to the number of keys."""
        return self._panes.all()

    def totals(self) -> Iterator[tuple[Any, Partials]]:
        """Yields all keys with their partial results, in the order of the aggregations."""
        return self._panes.held()

    def get(self, key: Any) -> dict[str, Any] | None:
        """Returns the results of a key; None if it has nothing in the window."""
        return self._panes.of(key)

    @property
    def result(self) -> dict[str, Any]:
        """The results of a window that is not divided by keys."""
        return self._panes.of(None) or {}

    def __len__(self) -> int:
        """Returns the number of stored keys; some may belong only to later windows."""
        return self._panes.keys

    def get_start_timestamp(self) -> int | None:
        """Returns `start`."""
        return self.start

    def get_end_timestamp(self) -> int | None:
        """Returns `end`."""
        return self.end
