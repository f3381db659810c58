"""States over backing maps: what a batch reads and writes, and what their caches keep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from storm_on_spark.api.errors import ConfigError
from storm_on_spark.runtime.state.keyvalue.state import StoredState
from storm_on_spark.testing import make_tuple
from storm_on_spark.trident import Count, Sum
from storm_on_spark.trident.state import (
    CachedBatchReadsMap,
    CachedMap,
    CheckpointMapState,
    CombinerValueUpdater,
    FunctionUpdater,
    IBackingMap,
    MapGet,
    MemoryMapState,
    MicroBatchIBackingMap,
    NonTransactionalMap,
    OpaqueMap,
    OpaqueValue,
    QueryFunction,
    ReadOnlyState,
    ReducerValueUpdater,
    SnapshotGet,
    SnapshottableMap,
    StaleBatchError,
    StateType,
    StoreBackingMap,
    TransactionalMap,
    TransactionalValue,
    TupleCollectionGet,
    map_of,
)


class Watched(IBackingMap[Any]):
    """A backing map that writes down its calls."""

    def __init__(self) -> None:
        self.stored: dict[tuple[Any, ...], Any] = {}
        self.calls: list[tuple[str, list[tuple[Any, ...]]]] = []
        self.broken = False

    def multi_get(self, keys: Sequence[Sequence[Any]]) -> list[Any]:
        self.calls.append(("get", [tuple(key) for key in keys]))
        return [self.stored.get(tuple(key)) for key in keys]

    def multi_put(self, keys: Sequence[Sequence[Any]], values: Sequence[Any]) -> None:
        self.calls.append(("put", [tuple(key) for key in keys]))
        if self.broken:
            raise OSError("away")
        self.stored.update(zip(map(tuple, keys), values, strict=True))


def adding(number: int) -> FunctionUpdater:
    return FunctionUpdater(lambda stored: (stored or 0) + number)


def test_an_opaque_map_stores_opaque_values() -> None:
    store = Watched()
    state = OpaqueMap[int].build(store)
    for txid, number in ((1, 3), (2, 4), (2, 5)):
        state.begin_commit(txid)
        assert state.multi_update([["a"]], [adding(number)])
        state.commit(txid)
    assert store.stored == {("a",): OpaqueValue(2, 8, 3)}
    assert state.multi_get([["a"], ["b"]]) == [8, None]


def test_an_opaque_map_refuses_an_earlier_batch_and_writes_nothing() -> None:
    store = Watched()
    store.stored = {("a",): OpaqueValue(5, 8, 3)}
    state = OpaqueMap[int].build(store)
    state.begin_commit(4)
    with pytest.raises(StaleBatchError):
        state.multi_update([["b"], ["a"]], [adding(1), adding(1)])
    assert store.stored == {("a",): OpaqueValue(5, 8, 3)}


@pytest.mark.parametrize(
    ("kind", "expected"),
    [(StateType.OPAQUE, 22), (StateType.TRANSACTIONAL, 22), (StateType.NON_TRANSACTIONAL, 33)],
)
def test_two_updates_of_a_key_in_one_batch_both_count(kind: StateType, expected: int) -> None:
    state = map_of(kind, StoreBackingMap({}))
    for txid in (1, 2, 2):
        state.begin_commit(txid)
        state.multi_update([["a"]], [adding(1)])
        state.multi_update([["a"]], [adding(10)])
        state.commit(txid)
    assert state.multi_get([["a"]]) == [expected]


def test_a_batch_reads_what_it_has_written_and_else_what_was_there_before_it() -> None:
    state = OpaqueMap[int].build(StoreBackingMap({("a",): OpaqueValue(2, 8, 3), ("b",): OpaqueValue(2, 9, 4)}))
    state.begin_commit(2)
    assert state.multi_get([["a"], ["b"]]) == [3, 4]
    state.multi_put([["a"]], [7])
    assert state.multi_get([["a"], ["b"]]) == [7, 4]
    state.commit(2)
    assert state.multi_get([["a"], ["b"]]) == [7, 9]


def test_a_transactional_map_writes_only_what_changes() -> None:
    store = Watched()
    store.stored = {("a",): TransactionalValue(2, 7)}
    state = TransactionalMap[int].build(store)
    state.begin_commit(2)
    assert state.multi_update([["a"], ["b"]], [adding(1), adding(1)]) == [7, 1]
    assert store.calls[-1] == ("put", [("b",)])
    state.begin_commit(2)
    assert state.multi_update([["a"]], [adding(1)]) == [7]
    assert store.calls[-1] == ("get", [("a",)])


def test_a_transactional_map_puts_values_whatever_was_there() -> None:
    store = Watched()
    store.stored = {("a",): TransactionalValue(2, 7)}
    state = TransactionalMap[int].build(store)
    state.begin_commit(2)
    state.multi_put([["a"]], [1])
    assert store.stored == {("a",): TransactionalValue(2, 1)}


def test_a_non_transactional_map_counts_a_batch_twice() -> None:
    state = NonTransactionalMap[int].build(StoreBackingMap({}))
    for _ in range(2):
        state.begin_commit(1)
        state.multi_update([["a"]], [adding(3)])
        state.commit(1)
    assert state.multi_get([["a"]]) == [6]


def test_reads_of_a_batch_ask_the_store_only_for_what_it_has_not_written() -> None:
    store = Watched()
    reads = CachedBatchReadsMap(store)
    reads.multi_put([["a"]], [1])
    assert reads.multi_get([["a"], ["b"]]) == [(1, True), (None, False)]
    assert reads.multi_get([["a"]]) == [(1, True)]
    assert store.calls == [("put", [("a",)]), ("get", [("b",)])]
    reads.reset()
    assert reads.multi_get([["a"]]) == [(1, False)]


def test_a_cache_keeps_what_was_used_last_and_no_more() -> None:
    store = Watched()
    cache = CachedMap(store, 2)
    cache.multi_put([["a"], ["b"]], [1, 2])
    cache.multi_get([["a"]])
    cache.multi_put([["c"]], [3])
    store.calls.clear()
    assert cache.multi_get([["a"], ["c"], ["b"], ["d"]]) == [1, 3, 2, None]
    assert store.calls == [("get", [("b",), ("d",)])]
    store.calls.clear()
    assert cache.multi_get([["d"]]) == [None]
    assert store.calls == []


def test_a_cache_answers_for_more_keys_than_it_keeps() -> None:
    store = Watched()
    store.stored = {(number,): number for number in range(9)}
    assert CachedMap(store, 2).multi_get([[number] for number in range(9)]) == list(range(9))


def test_a_cache_does_not_believe_a_write_that_failed() -> None:
    store = Watched()
    cache = CachedMap(store, 9)
    cache.multi_put([["a"]], [1])
    store.broken = True
    with pytest.raises(OSError, match="away"):
        cache.multi_put([["a"]], [2])
    assert cache.multi_get([["a"]]) == [1]


@pytest.mark.parametrize("make", [lambda: CachedMap(Watched(), 0), lambda: MicroBatchIBackingMap(Watched(), -1)])
def test_sizes_make_sense(make: Any) -> None:
    with pytest.raises(ConfigError, match="given"):
        make()


def test_large_calls_are_divided() -> None:
    store = Watched()
    parts = MicroBatchIBackingMap(store, 2, 3)
    keys = [[number] for number in range(5)]
    parts.multi_put(keys, range(5))
    assert parts.multi_get(keys) == list(range(5))
    assert [(what, len(keys)) for what, keys in store.calls] == [
        ("put", 3), ("put", 2), ("get", 2), ("get", 2), ("get", 1)
    ]  # fmt: skip


def test_one_value_lies_beside_a_map() -> None:
    state = SnapshottableMap(OpaqueMap[int].build(StoreBackingMap({})), ["$all"])
    state.begin_commit(1)
    assert state.update(adding(3)) == 3
    state.set(5)
    state.commit(1)
    assert state.get() == 5
    state.begin_commit(1)
    assert state.update(adding(4)) == 4
    state.commit(1)
    assert (state.get(), state.multi_get([["$all"], ["a"]])) == (4, [4, None])


@pytest.mark.parametrize("store", [{}, StoredState()])
def test_the_state_in_the_checkpoint_lists_and_removes_entries(store: Any) -> None:
    state: CheckpointMapState[int] = MemoryMapState(store)
    state.begin_commit(1)
    state.multi_put([["a", 1], ["b", 2]], [3, 4])
    state.set(9)
    state.commit(1)
    assert sorted(state.get_tuples()) == [["a", 1, 3], ["b", 2, 4]]
    state.begin_commit(2)
    state.multi_remove([["a", 1], ["b", 2]])
    state.commit(2)
    assert state.multi_get([["a", 1]]) == [None]
    state.begin_commit(3)
    state.commit(3)
    assert (list(state.get_tuples()), len(store), state.get()) == ([], 2, 9), "the value, and the last batch"


def test_a_removal_that_comes_again_without_it_is_taken_back() -> None:
    state: CheckpointMapState[int] = MemoryMapState({})
    state.begin_commit(1)
    state.multi_put([["a"]], [3])
    state.commit(1)
    state.begin_commit(2)
    state.multi_remove([["a"]])
    state.commit(2)
    state.begin_commit(2)
    state.multi_put([["a"]], [4])
    state.commit(2)
    state.begin_commit(3)
    state.commit(3)
    assert state.multi_get([["a"]]) == [4]


@pytest.mark.parametrize("make", [dict, StoredState])
@pytest.mark.parametrize("kind", StateType)
def test_a_removal_is_finished_by_another_process_than_the_one_that_began_it(make: Any, kind: StateType) -> None:
    store = make()

    def state() -> CheckpointMapState[int]:
        """As it is after a crash: nothing but the store is there."""
        return CheckpointMapState(store, kind)

    first = state()
    first.begin_commit(1)
    first.multi_put([["a"], ["b"]], [3, 4])
    first.commit(1)
    for key in ("a", "b"):
        again = state()
        again.begin_commit(2)
        again.multi_remove([[key]])
        again.commit(2)
    assert state().multi_get([["a"], ["b"]]) == [3 if kind is StateType.OPAQUE else None, None]
    last = state()
    last.begin_commit(3)
    last.commit(3)
    left = [["a", 3]] if kind is StateType.OPAQUE else []
    assert list(state().get_tuples()) == left
    assert len(store) == len(left) + (kind is StateType.OPAQUE), "nothing else but the last batch's keys"


@pytest.mark.parametrize("kind", StateType)
def test_a_removed_key_that_has_a_value_again_stays(kind: StateType) -> None:
    store: dict[Any, Any] = {}
    for txid, change in ((1, "put"), (2, "remove"), (2, "put"), (3, "nothing")):
        state: CheckpointMapState[int] = CheckpointMapState(store, kind)
        state.begin_commit(txid)
        if change == "put":
            state.multi_put([["a"]], [txid])
        elif change == "remove":
            state.multi_remove([["a"]])
        state.commit(txid)
    assert list(CheckpointMapState[int](store, kind).get_tuples()) == [["a", 2]]


def test_a_store_that_goes_back_takes_removals_with_it() -> None:
    store: dict[Any, Any] = {}
    state: CheckpointMapState[int] = MemoryMapState(store)
    state.begin_commit(1)
    state.multi_put([["a"]], [3])
    state.commit(1)
    before = dict(store)
    state.begin_commit(2)
    state.multi_remove([["a"]])
    store.clear()
    store.update(before)
    state.begin_commit(2)
    state.commit(2)
    state.begin_commit(3)
    state.commit(3)
    assert list(state.get_tuples()) == [["a", 3]]


@pytest.mark.parametrize("make", [dict, StoredState])
def test_a_batch_that_comes_again_without_a_key_takes_back_what_it_did_to_it(make: Any) -> None:
    store = make()

    def add(txid: int, **counts: int) -> list[int]:
        state: CheckpointMapState[int] = MemoryMapState(store)
        state.begin_commit(txid)
        results = state.multi_update([[key] for key in counts], [adding(count) for count in counts.values()])
        state.commit(txid)
        return results

    add(1, a=1)
    add(2, a=5, b=5, c=5)
    assert add(2, c=7) == [7]
    assert MemoryMapState[int](store).multi_get([["a"], ["b"], ["c"]]) == [1, None, 7]
    assert add(2, a=3) == [4]
    assert add(3, a=1, b=1, c=1) == [5, 1, 1]
    assert len(list(MemoryMapState[int](store).get_tuples())) == 3


def test_updaters_by_aggregators() -> None:
    class Total:
        def init(self) -> int:
            return 100

        def reduce(self, current: int, tup: Any) -> int:
            return int(current + tup[0])

    assert [CombinerValueUpdater(Count(), 2).update(stored) for stored in (None, 5)] == [2, 7]
    assert CombinerValueUpdater(Sum(), 2).update(0) == 2
    tuples = [make_tuple([1], ["number"]), make_tuple([2], ["number"])]
    assert [ReducerValueUpdater(Total(), tuples).update(stored) for stored in (None, 5)] == [103, 8]


def test_a_read_only_state_refuses_batches() -> None:
    with pytest.raises(TypeError, match="ReadOnlyState is read-only"):
        ReadOnlyState().begin_commit(1)
    with pytest.raises(TypeError, match="read-only"):
        ReadOnlyState().commit(1)


class Emitted:
    def __init__(self) -> None:
        self.rows: list[list[Any]] = []

    def emit(self, values: Sequence[Any]) -> None:
        self.rows.append(list(values))

    def report_error(self, error: BaseException) -> None:
        raise error


@pytest.mark.parametrize(
    ("query", "expected"),
    [(MapGet(), [[3], [None]]), (SnapshotGet(), [[9], [9]]), (TupleCollectionGet(), [["a", 3], ["a", 3]])],
)
def test_queries_of_a_state(query: QueryFunction[Any], expected: list[list[Any]]) -> None:
    state: CheckpointMapState[int] = MemoryMapState({})
    state.begin_commit(1)
    state.multi_put([["a"]], [3])
    state.set(9)
    state.commit(1)
    collector, tuples = Emitted(), [make_tuple(["a"], ["key"]), make_tuple(["b"], ["key"])]
    for tup, answer in zip(tuples, query.batch_retrieve(state, tuples), strict=True):
        query.execute(tup, answer, collector)
    assert collector.rows == expected
