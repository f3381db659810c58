"""States of values by key over a backing map, one for each kind of state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from storm_on_spark.trident.state.caches import CachedBatchReadsMap
from storm_on_spark.trident.state.interfaces import (
    IBackingMap,
    Key,
    MapState,
    Snapshottable,
    T,
    ValueUpdater,
)
from storm_on_spark.trident.state.updaters import ReplaceUpdater
from storm_on_spark.trident.state.values import (
    OpaqueValue,
    StateType,
    TransactionalValue,
    opaque_update,
    transactional_update,
)

V = TypeVar("V")
M = TypeVar("M", bound="_WithTxid[Any, Any]")


class _WithTxid(MapState[T], Generic[T, V]):
    """What is stored beside a value has the batch that wrote it."""

    def __init__(self, backing: IBackingMap[V]) -> None:
        self._backing: CachedBatchReadsMap[V] = CachedBatchReadsMap(backing)
        self._txid: int | None = None

    @classmethod
    def build(cls: type[M], backing: IBackingMap[V]) -> M:
        """Returns the state over a backing map."""
        return cls(backing)

    def begin_commit(self, txid: int | None) -> None:
        self._txid = txid
        self._backing.reset()

    def commit(self, txid: int | None) -> None:
        self.begin_commit(None)


class OpaqueMap(_WithTxid[T, OpaqueValue]):
    """Exact also if a batch comes again with other tuples; Storm's `OpaqueMap`.

    Example:
        >>> from storm_on_spark.trident.state import FunctionUpdater, OpaqueMap
        >>> from storm_on_spark.trident.state.checkpoint import StoreBackingMap
        >>> from storm_on_spark.runtime.state.keyvalue.state import StoredState
        >>> counts = OpaqueMap.build(StoreBackingMap(StoredState()))
        >>> for tuples in (3, 5):  # the same batch twice
        ...     counts.begin_commit(1)
        ...     new = counts.multi_update([["storm"]], [FunctionUpdater(lambda count: (count or 0) + tuples)])
        ...     counts.commit(1)
        >>> new
        [5]
    """

    def multi_get(self, keys: Sequence[Key]) -> list[T | None]:  # noqa: D102
        return [
            None if stored is None else stored.curr if cached else stored.get(self._txid)
            for stored, cached in self._backing.multi_get(keys)
        ]

    def multi_update(self, keys: Sequence[Key], updaters: Sequence[ValueUpdater[T]]) -> list[T]:  # noqa: D102
        changed = []
        for (stored, cached), updater in zip(self._backing.multi_get(keys), updaters, strict=True):
            if cached and stored is not None:
                # This batch has written it: its value counts on, and what was before the batch stays.
                changed.append(OpaqueValue(self._txid, updater.update(stored.curr), _before(stored, self._txid)))
            else:
                changed.append(opaque_update(stored, self._txid, updater.update))
        self._backing.multi_put(keys, changed)
        return [value.curr for value in changed]

    def multi_put(self, keys: Sequence[Key], values: Sequence[T]) -> None:  # noqa: D102
        self.multi_update(keys, [ReplaceUpdater(value) for value in values])


def _before(stored: OpaqueValue, txid: int | None) -> Any:
    """Returns the value before batch `txid`; without a batch, the last value."""
    return stored.curr if txid is None else stored.prev


class TransactionalMap(_WithTxid[T, TransactionalValue]):
    """Exact if a batch that comes again has the same tuples; Storm's `TransactionalMap`."""

    def multi_get(self, keys: Sequence[Key]) -> list[T | None]:  # noqa: D102
        return [None if stored is None else stored.value for stored, _ in self._backing.multi_get(keys)]

    def multi_update(self, keys: Sequence[Key], updaters: Sequence[ValueUpdater[T]]) -> list[T]:  # noqa: D102
        results, changed = [], {}
        for key, (stored, cached), updater in zip(keys, self._backing.multi_get(keys), updaters, strict=True):
            if cached and stored is not None:
                value = TransactionalValue(self._txid, updater.update(stored.value))
            else:
                value = transactional_update(stored, self._txid, updater.update)
            results.append(value.value)
            if value is not stored:
                changed[tuple(key)] = value
        if changed:
            self._backing.multi_put(list(changed), list(changed.values()))
        return results

    def multi_put(self, keys: Sequence[Key], values: Sequence[T]) -> None:  # noqa: D102
        self._backing.multi_put(keys, [TransactionalValue(self._txid, value) for value in values])


class NonTransactionalMap(MapState[T]):
    """Stores values alone: what a batch did before it came again is in them twice; Storm's `NonTransactionalMap`."""

    def __init__(self, backing: IBackingMap[Any]) -> None:
        self._backing = backing

    @classmethod
    def build(cls, backing: IBackingMap[Any]) -> NonTransactionalMap[T]:
        """Returns the state over a backing map."""
        return cls(backing)

    def begin_commit(self, txid: int | None) -> None:  # noqa: D102
        pass

    def commit(self, txid: int | None) -> None:  # noqa: D102
        pass

    def multi_get(self, keys: Sequence[Key]) -> list[T | None]:  # noqa: D102
        return self._backing.multi_get(keys)

    def multi_update(self, keys: Sequence[Key], updaters: Sequence[ValueUpdater[T]]) -> list[T]:  # noqa: D102
        found = zip(self._backing.multi_get(keys), updaters, strict=True)
        results = [updater.update(stored) for stored, updater in found]
        self._backing.multi_put(keys, results)
        return results

    def multi_put(self, keys: Sequence[Key], values: Sequence[T]) -> None:  # noqa: D102
        self._backing.multi_put(keys, values)


class SnapshottableMap(MapState[T], Snapshottable[T]):
    """A map that is also a state of one value, under a separate key; Storm's `SnapshottableMap`."""

    def __init__(self, delegate: MapState[T], snapshot_key: Key) -> None:
        self.delegate = delegate
        self._keys = [snapshot_key]

    def begin_commit(self, txid: int | None) -> None:  # noqa: D102
        self.delegate.begin_commit(txid)

    def commit(self, txid: int | None) -> None:  # noqa: D102
        self.delegate.commit(txid)

    def multi_get(self, keys: Sequence[Key]) -> list[T | None]:  # noqa: D102
        return self.delegate.multi_get(keys)

    def multi_update(self, keys: Sequence[Key], updaters: Sequence[ValueUpdater[T]]) -> list[T]:  # noqa: D102
        return self.delegate.multi_update(keys, updaters)

    def multi_put(self, keys: Sequence[Key], values: Sequence[T]) -> None:  # noqa: D102
        self.delegate.multi_put(keys, values)

    def get(self) -> T | None:  # noqa: D102
        return self.multi_get(self._keys)[0]

    def update(self, updater: ValueUpdater[T]) -> T:  # noqa: D102
        return self.multi_update(self._keys, [updater])[0]

    def set(self, value: T) -> None:  # noqa: D102
        self.multi_put(self._keys, [value])


def map_of(kind: StateType, backing: IBackingMap[Any]) -> MapState[Any]:
    """Returns the state of a kind over a backing map.

    Example:
        >>> from storm_on_spark.trident.state.checkpoint import StoreBackingMap
        >>> type(map_of(StateType.OPAQUE, StoreBackingMap({}))).__name__
        'OpaqueMap'
    """
    maps: dict[StateType, type[OpaqueMap[Any] | TransactionalMap[Any] | NonTransactionalMap[Any]]] = {
        StateType.OPAQUE: OpaqueMap,
        StateType.TRANSACTIONAL: TransactionalMap,
        StateType.NON_TRANSACTIONAL: NonTransactionalMap,
    }
    return maps[kind](backing)
