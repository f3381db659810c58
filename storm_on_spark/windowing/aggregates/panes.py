"""Partial results by key and pane, in the bolt's key-value state.

A pane is the greatest span that divides both length and slide of a window. A key has one record: its total in the last
window, and the partial results of its panes. The keys of each pane are in separate lists that only grow. So the cost of
a window depends on what has come or left since the previous one, not on the number of keys.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple

from storm_on_spark.api.state import KeyValueState
from storm_on_spark.windowing.aggregates.functions import Aggregate
from storm_on_spark.windowing.aggregates.numbers import PaneNumbers
from storm_on_spark.windowing.content.queue import OWN

_LIST = 256
"""Keys of a pane that are written together."""

_PANE: Final = itemgetter(0)

Partials = list[Any]
"""Of each aggregation."""


class Record(NamedTuple):
    """The record of a key."""

    totals: Partials
    """The total in the last window; None if it must be computed from the panes."""
    panes: list[tuple[int, Partials]]
    """The panes with contents, in order."""


class Panes:
    """The partial results of one task.

    Args:
        aggregates: the aggregations, by name.
    """

    def __init__(self, aggregates: Mapping[str, Aggregate]) -> None:
        self._aggregates = list(aggregates.values())
        self._names = list(aggregates)
        #: For each pane with contents: how many lists of keys are written, and the keys that are not written yet.
        self._lists: dict[int, int] = {}
        self._open: dict[int, list[Any]] = {}
        #: The keys of `_lists`.
        self._panes = PaneNumbers()
        #: Keys of evaluated panes that have received more since.
        self._late: list[Any] = []
        #: The pane after the last window, and the one at its beginning.
        self._end = self._start = -(1 << 62)
        #: The number of keys.
        self.keys = 0

    def attach(self, state: KeyValueState, aggregates: Mapping[str, Aggregate]) -> None:
        """Connects the state with the records, and the user's code, which is not part of the state."""
        self._state = state
        self._aggregates = list(aggregates.values())
        self._panes = PaneNumbers(self._lists)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_state", "_aggregates", "_panes")}

    @property
    def names(self) -> list[str]:
        """The names of the aggregations."""
        return self._names

    def add(self, key: Any, pane: int, tup: Any) -> None:
        """Adds a tuple, or other input of the aggregations."""
        record: Record | None = self._state.get(key)
        if record is None:
            self.keys += 1
            record = Record([None] * len(self._aggregates), [])
        panes = record.panes
        at = len(panes)
        while at and panes[at - 1][0] >= pane:
            at -= 1
        if at < len(panes) and panes[at][0] == pane:
            partials = panes[at][1]
            for place, aggregate in enumerate(self._aggregates):
                partials[place] = aggregate.add(partials[place], tup)
        else:
            panes.insert(at, (pane, [aggregate.add(None, tup) for aggregate in self._aggregates]))
            self._note(pane, key)
        if pane < self._end:
            record.totals[:] = [None] * len(self._aggregates)
            self._late.append(key)
        self._state.put(key, record)

    def _note(self, pane: int, key: Any) -> None:
        keys = self._open.get(pane)
        if keys is None:
            keys = self._open[pane] = []
            if pane not in self._lists:
                self._lists[pane] = 0
                self._panes.add(pane)
        keys.append(key)
        if len(keys) >= _LIST:
            self._close_list(pane)

    def _close_list(self, pane: int) -> None:
        number = self._lists[pane]
        self._state.put((OWN, "keys", pane, number), self._open.pop(pane))
        self._lists[pane] = number + 1

    def settle(self) -> None:
        """Prepares for being written, at the end of a micro-batch."""
        for pane, keys in list(self._open.items()):
            if len(keys) >= _LIST // 8:
                self._close_list(pane)

    def _keys_of(self, pane: int) -> Iterator[Any]:
        for number in range(self._lists[pane]):
            yield from self._state.get((OWN, "keys", pane, number))
        yield from self._open.get(pane, ())

    def earliest(self, start: int, end: int) -> int | None:
        """Returns the first pane with contents from `start` to before `end`, or None."""
        return self._panes.earliest(start, end)

    def __len__(self) -> int:
        return len(self._lists)

    # --- windows ---------------------------------------------------------------------------------------------------

    def advance(self, start: int, end: int) -> dict[Any, Partials | None]:
        """Moves the window to the panes from `start` to before `end`.

        Returns: The totals of each key that has gained or lost contents; None for a key that has nothing left.
        """
        gone, fresh = self._panes.drop_before(start), self._panes.between(max(start, self._end), end)
        changed = dict.fromkeys(self._late)
        for pane in (*gone, *fresh):
            changed.update(dict.fromkeys(self._keys_of(pane)))
        for key in self._state.ahead(changed):
            changed[key] = self._moved(key, start, end)
        for pane in gone:
            for number in range(self._lists.pop(pane)):
                self._state.delete((OWN, "keys", pane, number))
            self._open.pop(pane, None)
        self._late = []
        self._start, self._end = start, end
        return changed

    def carry_over(self, changed: Mapping[Any, Partials | None]) -> None:
        """Keeps changed keys for the next window, because this one is empty and is not evaluated."""
        self._late += changed

    def _moved(self, key: Any, start: int, end: int) -> Partials | None:
        record: Record | None = self._state.get(key)
        if record is None:
            return None
        panes = record.panes
        first = bisect_left(panes, start, key=_PANE)
        if first == len(panes):
            self._state.delete(key)
            self.keys -= 1
            return None
        after = bisect_left(panes, end, first, key=_PANE)
        fresh = bisect_left(panes, self._end, first, after, key=_PANE)
        gone = [partials for pane, partials in panes[:first] if pane < self._end]
        added = [partials for _, partials in panes[fresh:after]]
        totals = record.totals
        if first + len(added) < after - first:
            totals = [self._stepped(place, total, gone, added) for place, total in enumerate(totals)]
        else:
            totals = [None] * len(totals)
        totals = self._completed(totals, panes, first, after)
        del panes[:first]
        self._state.put(key, Record(totals, panes))
        return totals if after > first else None

    def _stepped(self, place: int, total: Any, gone: list[Partials], added: list[Partials]) -> Any:
        """Returns a total with what has come, and without what has left; None if that can't be."""
        if total is None:
            return None
        aggregate = self._aggregates[place]
        for partials in added:
            total = aggregate.merge(total, partials[place])
        for partials in gone:
            total = None if total is None else aggregate.inverse(total, partials[place])
        return total

    def _completed(self, totals: Partials, panes: list[tuple[int, Partials]], first: int, after: int) -> Partials:
        """Returns totals, of which those that are missing are worked out from the panes from `first` to `after`."""
        if all(total is not None for total in totals):
            return totals
        found = list(totals)
        for place, aggregate in enumerate(self._aggregates):
            if found[place] is None:
                for _, partials in panes[first:after]:
                    total = found[place]
                    found[place] = partials[place] if total is None else aggregate.merge(total, partials[place])
        return found

    def results(self, totals: Sequence[Any]) -> dict[str, Any]:
        """Returns results by name."""
        return {
            name: aggregate.result(total)
            for name, aggregate, total in zip(self._names, self._aggregates, totals, strict=True)
        }

    def of(self, key: Any) -> dict[str, Any] | None:
        """Returns the results of a key in the last window; None if it has nothing there."""
        record = self._state.get(key)
        totals = None if record is None else self._totals_in(record)
        return None if totals is None else self.results(totals)

    def _totals_in(self, record: Record) -> Partials | None:
        first = bisect_left(record.panes, self._start, key=_PANE)
        after = bisect_left(record.panes, self._end, first, key=_PANE)
        return self._completed(record.totals, record.panes, first, after) if after > first else None

    def held(self) -> Iterator[tuple[Any, Partials]]:
        """Yields the keys of the last window with their totals.

        Keys of a single pane come in the order of their arrival, if the state fits in memory.
        """
        panes = self._panes.between(self._start, self._end)
        # A key may be in the list of each pane, so reading all records is less work.
        records = (
            self._records()
            if len(panes) != 1
            else ((key, self._state.get(key)) for key in self._state.ahead(self._keys_of(panes[0])))
        )
        for key, record in records:
            if record is not None and (totals := self._totals_in(record)) is not None:
                yield key, totals

    def all(self) -> Iterator[tuple[Any, dict[str, Any]]]:
        """Yields the keys of the last window with their results."""
        for key, record in self._records():
            if (totals := self._totals_in(record)) is not None:
                yield key, self.results(totals)

    def _records(self) -> Iterator[tuple[Any, Record]]:
        return ((key, value) for key, value in self._state.items() if isinstance(value, Record))
