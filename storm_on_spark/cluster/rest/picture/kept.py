"""Values worked out from records, kept for all readers until the records are others."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Generic, TypeVar

T = TypeVar("T")

_MOST: Final = 1000


class Kept(Generic[T]):
    """The last value for each key, as long as what it was made of is still the same objects.

    Records never change: a new heartbeat or configuration is a new object. So a value is never older than the records
    that a reader has in hand. Any thread may call it. Two that ask at once may both work a value out.

    Args:
        most: values that are kept; the one that was asked for longest ago goes first.

    Example:
        >>> kept, words = Kept[int](), ["a", "b"]
        >>> kept.of("count", (words,), lambda: len(words)), kept.of("count", (words,), lambda: 0)
        (2, 2)
        >>> kept.of("count", (["c"],), lambda: 1)
        1
    """

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._lock = threading.Lock()
        #: Key -> what the value was made of, and the value. What was asked for last is the last.
        self._values: OrderedDict[str, tuple[tuple[object, ...], T]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def of(self, key: str, made_of: tuple[object, ...], make: Callable[[], T]) -> T:
        """Returns the value for a key.

        Args:
            key: names it.
            made_of: what `make` reads; compared by identity, because comparing large records takes long, too.
            make: works it out.
        """
        with self._lock:
            found = self._values.get(key)
            if found is not None and _same(found[0], made_of):
                self._values.move_to_end(key)
                return found[1]
        value = make()
        with self._lock:
            self._values[key] = made_of, value
            self._values.move_to_end(key)
            while len(self._values) > self._most:
                self._values.popitem(last=False)
        return value


def _same(these: tuple[object, ...], those: tuple[object, ...]) -> bool:
    return len(these) == len(those) and all(one is other for one, other in zip(these, those, strict=True))
