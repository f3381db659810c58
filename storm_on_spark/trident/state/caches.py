"""Backing maps over backing maps: what a batch has read, what was used last, and calls of a bounded size."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any, Generic, NamedTuple

from storm_on_spark.api.errors import ConfigError
from storm_on_spark.trident.state.interfaces import IBackingMap, Key, T


class Found(NamedTuple, Generic[T]):
    """What is stored for a key."""

    value: T | None
    cached: bool
    """Whether the batch itself has written it."""


class CachedBatchReadsMap(Generic[T]):
    """Knows what the batch under way has written; Storm's `CachedBatchReadsMap`.

    A second update of a key in one batch counts on from the first. Without this, it would be taken for a repetition.
    """

    def __init__(self, delegate: IBackingMap[T]) -> None:
        self.delegate = delegate
        self._written: dict[tuple[Any, ...], T] = {}

    def reset(self) -> None:
        """Forgets the batch."""
        self._written.clear()

    def multi_get(self, keys: Sequence[Key]) -> list[Found[T]]:
        """Returns what is stored for each key; only what the batch has not written is asked for."""
        found = [tuple(key) for key in keys]
        missing = list(dict.fromkeys(key for key in found if key not in self._written))
        stored = dict(zip(missing, self.delegate.multi_get(missing), strict=True)) if missing else {}
        written = self._written
        return [Found(written[key], True) if key in written else Found(stored[key], False) for key in found]

    def multi_put(self, keys: Sequence[Key], values: Sequence[T]) -> None:
        """Stores a value for each key."""
        self.delegate.multi_put(keys, values)
        self._written.update(zip(map(tuple, keys), values, strict=True))


class CachedMap(IBackingMap[T]):
    """Keeps what was used last in memory; Storm's `CachedMap`.

    It is right only if nobody else writes to the keys: group the stream by them.

    Args:
        delegate: the store.
        size: the most keys to keep, at least 1.

    Raises:
        ConfigError: `size` is less than 1.
    """

    def __init__(self, delegate: IBackingMap[T], size: int) -> None:
        if size < 1:
            raise ConfigError(f"a cache keeps at least 1 key (given {size})", key="size")
        self.delegate = delegate
        self._size = size
        self._cache: OrderedDict[tuple[Any, ...], T | None] = OrderedDict()

    def multi_get(self, keys: Sequence[Key]) -> list[T | None]:  # noqa: D102
        found = [tuple(key) for key in keys]
        known = {key: self._cache[key] for key in found if key in self._cache}
        missing = list(dict.fromkeys(key for key in found if key not in known))
        if missing:
            known.update(zip(missing, self.delegate.multi_get(missing), strict=True))
        for key in found:
            self._keep(key, known[key])
        return [known[key] for key in found]

    def multi_put(self, keys: Sequence[Key], values: Sequence[T]) -> None:  # noqa: D102
        # Until the store has them, it is not known which of the keys it has.
        for key in keys:
            self._cache.pop(tuple(key), None)
        self.delegate.multi_put(keys, values)
        for key, value in zip(keys, values, strict=True):
            self._keep(tuple(key), value)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_cache": OrderedDict()}

    def _keep(self, key: tuple[Any, ...], value: T | None) -> None:
        self._cache[key] = value
        self._cache.move_to_end(key)
        if len(self._cache) > self._size:
            self._cache.popitem(last=False)


class MicroBatchIBackingMap(IBackingMap[T]):
    """Divides calls into smaller ones; Storm's `MicroBatchIBackingMap`.

    Args:
        delegate: the store.
        max_multi_get: the most keys of one read; 0 for any number.
        max_multi_put: the most keys of one write; 0 for any number.

    Raises:
        ConfigError: a number is negative.
    """

    def __init__(self, delegate: IBackingMap[T], max_multi_get: int = 0, max_multi_put: int = 0) -> None:
        for key, value in (("max_multi_get", max_multi_get), ("max_multi_put", max_multi_put)):
            if value < 0:
                raise ConfigError(f"{key} is a number of keys, or 0 for any (given {value})", key=key)
        self.delegate = delegate
        self._get, self._put = max_multi_get, max_multi_put

    def multi_get(self, keys: Sequence[Key]) -> list[T | None]:  # noqa: D102
        return [value for part in _parts(keys, self._get) for value in self.delegate.multi_get(part)]

    def multi_put(self, keys: Sequence[Key], values: Sequence[T]) -> None:  # noqa: D102
        for part, stored in zip(_parts(keys, self._put), _parts(values, self._put), strict=True):
            self.delegate.multi_put(part, stored)


def _parts(items: Sequence[Any], most: int) -> Iterator[Sequence[Any]]:
    size = most or max(len(items), 1)
    for start in range(0, len(items), size):
        yield items[start : start + size]
