"""The keys whose entries are newer than the pages, by part of the key space."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from storm_on_spark.runtime.state.keyvalue.directory import PARTS, WIDTH
from storm_on_spark.runtime.state.keyvalue.hashes import hashed, reordered

_AT_ONCE = 1 << 17
"""Keys that are handled at a time, so that a large micro-batch does not take memory in proportion."""


class Unmerged:
    """Keys that have been changed since their part was merged into pages, or may have been.

    Example:
        >>> unmerged = Unmerged()
        >>> unmerged.add(range(1000))
        >>> (taken,) = unmerged.take(990)
        >>> len(taken) + len(unmerged), len(unmerged) <= 990, taken[0] in unmerged
        (1000, True, False)
    """

    def __init__(self) -> None:
        #: All of them.
        self.keys: set[Any] = set()
        self._parts: list[list[Any]] = [[] for _ in range(PARTS)]

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.keys)

    def __contains__(self, key: object) -> bool:
        return key in self.keys

    def clear(self) -> None:
        """Removes all."""
        self.keys.clear()
        for part in self._parts:
            part.clear()

    def add(self, keys: Iterable[Any]) -> None:
        """Adds keys; those that change in every micro-batch are hashed once until they are merged."""
        rest = iter(keys)
        while some := set(islice(rest, _AT_ONCE)):
            if new := list(some.difference(self.keys)):
                self._add(new)

    def _add(self, new: list[Any]) -> None:
        hashes, numbers = hashed(new)
        parts = (hashes // np.uint32(WIDTH)).astype(np.uint8)
        order = np.argsort(parts, kind="stable")
        ends = np.searchsorted(parts[order], np.arange(PARTS), side="right").tolist()
        new, start = reordered(new, numbers, order), 0
        self.keys.update(new)
        for part, end in zip(self._parts, ends, strict=True):
            part += new[start:end]
            start = end

    def take(self, limit: int) -> Iterator[list[Any]]:
        """Removes the parts with most keys until no more than `limit` keys are left; yields those of some at a time."""
        left, largest = len(self.keys), iter(sorted(range(PARTS), key=lambda number: -len(self._parts[number])))
        while left > limit:
            chosen, many = [], 0
            while many < min(_AT_ONCE, left - limit):
                chosen.append(next(largest))
                many += len(self._parts[chosen[-1]])
            left -= many
            yield self.remove(chosen)

    def remove(self, parts: Iterable[int]) -> list[Any]:
        """Removes all keys of some parts; returns them."""
        removed: list[Any] = []
        for number in parts:
            removed += self._parts[number]
            self._parts[number] = []
        self.keys.difference_update(removed)
        return removed
