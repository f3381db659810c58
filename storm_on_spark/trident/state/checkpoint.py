"""States in the topology's checkpoint: exact with it, without a system beside it."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from typing import Any, Final

from storm_on_spark.trident.state.interfaces import (
    IBackingMap,
    ITupleCollection,
    Key,
    RemovableMapState,
    State,
    Store,
    StoredStateFactory,
    T,
)
from storm_on_spark.trident.state.maps import SnapshottableMap, map_of
from storm_on_spark.trident.state.updaters import ReplaceUpdater
from storm_on_spark.trident.state.values import OpaqueValue, StateType, TransactionalValue

SNAPSHOT_KEY: Final = ("$snapshot",)
"""The key of the value of a state that has one only."""
BATCH_KEY: Final = "$batch"
"""The key of the batch that was written last, with its keys. It is not a tuple, as those of values are."""
REMOVED_KEY: Final = "$removed"
"""The key of the batch that removed keys last, with these keys."""


class StoreBackingMap(IBackingMap[T], ITupleCollection):
    """A backing map in key-value state.

    Args:
        store: the state, or a dict for tests.
    """

    def __init__(self, store: Store | MutableMapping[Any, Any]) -> None:
        self.store = store

    def multi_get(self, keys: Sequence[Key]) -> list[T | None]:  # noqa: D102
        return [self.store.get(tuple(key)) for key in keys]

    def multi_put(self, keys: Sequence[Key], values: Sequence[T]) -> None:  # noqa: D102
        for key, value in zip(keys, values, strict=True):
            self._put(tuple(key), value)

    def multi_remove(self, keys: Sequence[Key]) -> None:
        """Removes keys; one that is not there is left alone."""
        for key in keys:
            self._remove(tuple(key))

    def get_tuples(self) -> Iterator[list[Any]]:  # noqa: D102
        for key, stored in self.store.items():
            if key not in (SNAPSHOT_KEY, BATCH_KEY, REMOVED_KEY):
                yield [*key, value_of(stored)]

    def note(self, key: str, value: Any) -> None:
        """Sets what is kept beside the values under a name; None removes it."""
        if value is None:
            self._remove(key)
        else:
            self._put(key, value)

    def _put(self, key: Any, value: Any) -> None:
        if isinstance(self.store, MutableMapping):
            self.store[key] = value
        else:
            self.store.put(key, value)

    def _remove(self, key: Any) -> None:
        if isinstance(self.store, MutableMapping):
            self.store.pop(key, None)
        else:
            self.store.delete(key)


class _Removals:
    """The keys that a batch has removed, in the store: their entries go when the next batch begins."""

    def __init__(self, entries: StoreBackingMap[Any]) -> None:
        self._entries = entries

    def add(self, txid: int | None, keys: Sequence[Key]) -> None:
        """Notes that a batch has removed keys."""
        _, before = self._noted()
        self._entries.note(REMOVED_KEY, (txid, list(dict.fromkeys([*before, *map(tuple, keys)]))))

    def settle(self, txid: int | None) -> None:
        """Removes the entries that an earlier batch has removed and that have no value since."""
        noted, keys = self._noted()
        if keys and (txid is None or txid != noted):
            stored = zip(keys, self._entries.multi_get(keys), strict=True)
            self._entries.multi_remove([key for key, value in stored if value_of(value) is None])
            self._entries.note(REMOVED_KEY, None)

    def _noted(self) -> tuple[int | None, list[Key]]:
        return self._entries.store.get(REMOVED_KEY) or (None, [])


class _BatchEntries(StoreBackingMap[Any]):
    """Entries of opaque values: what an earlier attempt of a batch has written is taken back when it comes again."""

    def __init__(self, store: Store | MutableMapping[Any, Any]) -> None:
        super().__init__(store)
        #: The keys that the batch under way has written, in their order; None outside of batches.
        self._written: dict[tuple[Any, ...], None] | None = None
        self._txid = 0

    def begin(self, txid: int) -> None:
        """Begins a batch."""
        before, keys = self.store.get(BATCH_KEY) or (0, [])
        if before == txid:
            found = zip(keys, self.multi_get(keys), strict=True)
            known = {key: value.without(txid) for key, value in found if value is not None}
            super().multi_put(list(known), list(known.values()))
        self._txid, self._written = txid, dict.fromkeys(keys if before == txid else ())

    def multi_put(self, keys: Sequence[Key], values: Sequence[Any]) -> None:
        if self._written is not None:
            self._written.update(dict.fromkeys(map(tuple, keys)))
            self.note(BATCH_KEY, (self._txid, list(self._written)))
        super().multi_put(keys, values)


def value_of(stored: Any) -> Any:
    """Returns the value in what is stored, whatever the kind of state."""
    if isinstance(stored, OpaqueValue):
        return stored.curr
    return stored.value if isinstance(stored, TransactionalValue) else stored


class CheckpointMapState(SnapshottableMap[T], RemovableMapState, ITupleCollection):
    """A map, and one value beside it, in the checkpoint.

    A batch that comes again finds opaque values as they were before it, also those of keys that it doesn't have any
    more. A removed key has None until the next batch; it may come again until then, so the entry goes only with that.

    Args:
        store: the task's key-value state.
        kind: the kind of state. The checkpoint makes crashes exact, whatever the kind; that decides what becomes of a
            batch that failed and comes again.
    """

    def __init__(self, store: Store | MutableMapping[Any, Any], kind: StateType = StateType.OPAQUE) -> None:
        self._entries = _BatchEntries(store)
        super().__init__(map_of(kind, self._entries), SNAPSHOT_KEY)
        self._opaque = kind is StateType.OPAQUE
        self._removals = _Removals(self._entries)
        self._txid: int | None = None

    def begin_commit(self, txid: int | None) -> None:  # noqa: D102
        super().begin_commit(txid)
        if self._opaque and txid is not None:
            self._entries.begin(txid)
        self._removals.settle(txid)
        self._txid = txid

    def multi_remove(self, keys: Sequence[Key]) -> None:  # noqa: D102
        self.multi_update(keys, [ReplaceUpdater(None)] * len(keys))
        self._removals.add(self._txid, keys)

    def get_tuples(self) -> Iterator[list[Any]]:  # noqa: D102
        return self._entries.get_tuples()


class CheckpointMapStateFactory(StoredStateFactory):
    """Makes states in the topology's checkpoint.

    Example:
        >>> state = CheckpointMapStateFactory().make_state_in({}, 0, 1)
        >>> state.begin_commit(1)
        >>> state.multi_put([["storm"]], [3])
        >>> state.multi_get([["storm"], ["spark"]])
        [3, None]
    """

    def __init__(self, kind: StateType = StateType.OPAQUE) -> None:
        self.kind = kind

    def make_state_in(  # noqa: D102
        self, store: Store | MutableMapping[Any, Any], partition_index: int, num_partitions: int
    ) -> State:
        return CheckpointMapState(store, self.kind)


class MemoryMapState(CheckpointMapState[T]):
    """Storm's `MemoryMapState`, which there is lost with its worker; here it is in the checkpoint.

    Example:
        >>> MemoryMapState.Factory().kind
        <StateType.OPAQUE: 'opaque'>
    """

    Factory = CheckpointMapStateFactory
    """Makes such states; `MemoryMapState.Factory()`, as in Storm."""
