"""A bounded cache of results by key."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

LIMIT = 1 << 16
"""The most keys of a cache. Callers that compute a result faster than a failed look-up don't look in a full cache."""
REST = 8 * LIMIT
"""Keys that a full cache rejects before it is emptied: by then other keys may be the frequent ones."""
LOOK, LOOK_EVERY = 1 << 10, 1 << 14
"""Of each `LOOK_EVERY` rejected keys the first `LOOK` are remembered. If half of them occur again among the rejected
keys, the frequent keys are not those in the cache."""


LONGEST = 256
"""The most characters of a cached key, all its fields together. Results of longer keys are computed each time, so that
the cache's memory is bounded."""


def _weight(key: Any) -> int:
    """Returns the size of a key in characters or bytes, all of its parts together."""
    kind = type(key)
    if kind is str or kind is bytes:
        return len(key)
    if kind is int:
        return int(key.bit_length()) >> 3
    if isinstance(key, (tuple, frozenset)):
        return len(key) + sum(map(_weight, key))
    if dataclasses.is_dataclass(key):
        return sum(_weight(getattr(key, field.name)) for field in dataclasses.fields(key))
    return sys.getsizeof(key)


class KeyCache(dict[Any, Any]):
    """Results by key, 65,536 at most.

    With more keys than that, all equally frequent, storing a key takes longer than it saves. So a full cache is not
    changed for a while. If the frequent keys change, as times and running numbers do, such a cache would be useless:
    it checks whether rejected keys occur again, and is emptied if they do.

    Example:
        >>> cache = KeyCache()
        >>> for day in range(100_000):
        ...     for _ in range(3):
        ...         if day not in cache:
        ...             cache.keep(day, "Sunday")
        >>> 99_999 in cache, 0 in cache
        (True, False)
    """

    def __init__(self) -> None:
        super().__init__()
        self._refused = 0
        self._seen: set[Any] = set()

    def keep(self, key: Any, value: Any) -> None:
        """Stores a value, if there is room and the key is not large."""
        if len(self) < LIMIT:
            if _weight(key) <= LONGEST:
                self[key] = value
            return
        self._refused += 1
        place = self._refused % LOOK_EVERY
        if place < LOOK:
            if _weight(key) <= LONGEST:
                self._seen.add(key)
        elif place == LOOK:
            if 2 * len(self._seen) < LOOK:
                self._begin_anew()
            self._seen.clear()
        if self._refused == REST:
            self._begin_anew()

    def _begin_anew(self) -> None:
        self.clear()
        self._refused = 0
