"""Joining two streams within an interval around each tuple: a state machine over a key-value state, without a clock.

Two tuples belong together if their keys are equal and `left - before <= right <= left + after` holds for their times. A
tuple is kept until the watermark shows that no partner can come any more. So the state is bounded by what arrives
within the interval. Tuples are kept in buckets by time: a micro-batch writes and removes buckets, not single tuples.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from storm_on_spark.api.state import KeyValueState

Row = TypeVar("Row")
Pair = tuple[Any, Any]
"""A tuple of each stream, or None for one that has no partner."""

_BUCKETS: Final = 8
"""Number of buckets of the interval. More buckets make writes smaller, and reads more frequent."""
_CHUNK: Final = 256
"""Keys of a bucket that are listed in one entry of the state."""


@dataclass(frozen=True)
class Interval:
    """How far apart the times of partners may be, in ms, and which tuples without a partner are results."""

    before: int
    """How much earlier the right tuple may be."""
    after: int
    """How much later the right tuple may be."""
    keeps: tuple[bool, bool] = (False, False)

    @property
    def width(self) -> int:
        """The time that a bucket holds, in ms."""
        return max(1, (self.before + self.after) // _BUCKETS)

    def around(self, side: int, time: int) -> tuple[int, int]:
        """Returns the first and the last time of partners of a tuple."""
        return (time - self.before, time + self.after) if side == 0 else (time - self.after, time + self.before)


class IntervalJoin:
    """The join of one task.

    Args:
        interval: which tuples belong together.
        state: where tuples are kept.

    Example:
        >>> from storm_on_spark.runtime.state.keyvalue.state import StoredState
        >>> join = IntervalJoin(Interval(0, 10, (True, False)), StoredState())
        >>> join.add(0, "ad", 100, "shown"), join.add(1, "ad", 105, "clicked"), join.add(0, "other", 100, "shown")
        ([], [('shown', 'clicked')], [])
        >>> list(join.expire(200)), len(join)
        ([('shown', None)], 0)
    """

    def __init__(self, interval: Interval, state: KeyValueState) -> None:
        self._interval, self._state = interval, state

    def add(self, side: int, key: Hashable, time: int, row: Any) -> list[Pair]:
        """Adds a tuple, and returns the pairs that it makes.

        Args:
            side: 0 for the left stream, 1 for the right one.
            key: what partners have in common.
            time: in ms.
            row: the tuple.
        """
        first, last = self._interval.around(side, time)
        pairs: list[Pair] = []
        for bucket in self._buckets(1 - side, first, last):
            place = ("rows", 1 - side, bucket, key)
            kept = self._state.get(place)
            found = [entry for entry in kept or () if first <= entry[0] <= last]
            pairs += [(row, entry[1]) if side == 0 else (entry[1], row) for entry in found]
            if found and self._interval.keeps[1 - side]:
                for entry in found:
                    entry[2] = True
                self._state.put(place, kept)
        self._keep(side, key, time, [time, row, bool(pairs)])
        return pairs

    def expire(self, watermark: int) -> Iterator[Pair]:
        """Removes the tuples that can find no partner after a watermark; yields those without one that are results."""
        width = self._interval.width
        for side in (0, 1):
            buckets: list[int] = self._state.get(("buckets", side), [])
            gone = [
                bucket for bucket in buckets if self._interval.around(side, (bucket + 1) * width - 1)[1] < watermark
            ]
            for bucket in gone:
                yield from self._forget(side, bucket)
            if gone:
                self._state.put(("buckets", side), [bucket for bucket in buckets if bucket not in gone])

    def __len__(self) -> int:
        return sum(len(value) for place, value in self._state.items() if place[0] == "rows")

    def _buckets(self, side: int, first: int, last: int) -> Iterable[int]:
        width = self._interval.width
        return [
            bucket for bucket in self._state.get(("buckets", side), []) if first // width <= bucket <= last // width
        ]

    def _keep(self, side: int, key: Hashable, time: int, entry: list[Any]) -> None:
        state, bucket = self._state, time // self._interval.width
        place = ("rows", side, bucket, key)
        rows = state.get(place)
        if rows is None:
            count = state.get(("keys", side, bucket), 0)
            if not count:
                state.put(("buckets", side), sorted([*state.get(("buckets", side), []), bucket]))
            chunk = ("keys", side, bucket, count // _CHUNK)
            state.put(chunk, [*state.get(chunk, []), key])
            state.put(("keys", side, bucket), count + 1)
        state.put(place, [*(rows or ()), entry])

    def _forget(self, side: int, bucket: int) -> Iterator[Pair]:
        count = self._state.delete(("keys", side, bucket))
        numbers = range((count - 1) // _CHUNK + 1)
        keys = (key for number in numbers for key in self._state.delete(("keys", side, bucket, number)))
        for place in self._state.ahead(("rows", side, bucket, key) for key in keys):
            for _, row, matched in self._state.delete(place):
                if self._interval.keeps[side] and not matched:
                    yield (row, None) if side == 0 else (None, row)
