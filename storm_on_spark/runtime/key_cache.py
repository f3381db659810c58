"""What was looked up for keys, as much as is worth keeping."""

from __future__ import annotations

from typing import Any

LIMIT = 1 << 16
"""Keys that a cache holds. Who can work a value out in less time than to look in vain need not ask a full one."""
_REST = 8 * LIMIT
"""Keys that a full cache turns away before it starts anew: by then others may be the frequent ones."""
_LOOK, _LOOK_EVERY = 1 << 10, 1 << 14
"""Of so many keys that are turned away, the first so many are looked at. If half of them come again among these, keys
repeat, but others than those in the cache."""


class KeyCache(dict[Any, Any]):
    """Values by key, 65,536 at most.

    Where there are more keys than it holds, and each is as frequent, to store a key takes longer than it saves: a full
    cache stays as it is for a while. Where keys move on, as times and running numbers do, that would be the end of all
    use: so it looks whether what it turns away comes again, and starts anew if it does.

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
        """Stores a value, if there is room."""
        if len(self) < LIMIT:
            self[key] = value
            return
        self._refused += 1
        place = self._refused % _LOOK_EVERY
        if place < _LOOK:
            self._seen.add(key)
        elif place == _LOOK:
            if 2 * len(self._seen) < _LOOK:
                self._begin_anew()
            self._seen.clear()
        if self._refused == _REST:
            self._begin_anew()

    def _begin_anew(self) -> None:
        self.clear()
        self._refused = 0
