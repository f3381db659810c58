"""A micro-batch writes what has changed in windows, and not what they hold."""

from __future__ import annotations

from statistics import median
from typing import Any

import pyarrow as pa
import pytest

from storm_on_spark import BaseWindowedBolt, Duration
from storm_on_spark.runtime.state.keyvalue.state import StoredState
from storm_on_spark.runtime.state.keyvalue.store import MemoryStore
from storm_on_spark.testing import BoltTester, make_tuple
from storm_on_spark.windowing import BatchWindowedBolt, CountOf

NEW, MEASURED = 100, 7


class Nothing(BaseWindowedBolt):
    """Looks at nothing."""

    def execute(self, window):
        """Does nothing."""


class NothingOfColumns(BatchWindowedBolt):
    """Looks at nothing."""

    def execute_window(self, window, collector):
        """Does nothing."""


class Totals(BaseWindowedBolt):
    """Keeps the numbers of the changed keys, and of all, of each window."""

    def prepare(self, conf, context, collector):
        """Nothing has come."""
        self.changed, self.held = [], []

    def execute(self, window):
        """Looks at all."""
        self.changed.append({key: results and results["number"] for key, results in window.changed})
        self.held.append({key: number for key, (number,) in window.totals()})


class Counting(MemoryStore):
    """Counts the bytes that are put, and the reads."""

    written = reads = 0

    def get(self, name: str, index: int = 0) -> bytes | None:
        self.reads += name == "pages"
        return super().get(name, index)

    def put(self, name: str, value: bytes, index: int = 0) -> None:
        self.written += len(value)
        super().put(name, value, index)


def tuples(keys: range) -> list[Any]:
    return [make_tuple([key], ["key"]) for key in keys]


def rows(keys: range) -> list[Any]:
    return [pa.record_batch({"key": list(keys)})]


def written_when_it_holds(held: int, bolt: Any, make: Any) -> float:
    """Returns how many bytes a micro-batch with a hundred new tuples writes."""
    tester = BoltTester(bolt.with_window(Duration.seconds(20), Duration.seconds(1)))
    state, store, entries = StoredState(), Counting({}), 0
    tester.bolt.init_state(state)

    def micro_batch(keys: range) -> int:
        nonlocal entries
        state.attach(store)
        before = store.written
        tester.execute(*make(keys))
        tester.advance(seconds=0.01)
        written = state.commit(store, entries)
        entries = entries if written is None else written.entries
        return store.written - before

    for first in range(0, held, 1000):
        micro_batch(range(first, first + 1000))
    return median(micro_batch(range(at * NEW, (at + 1) * NEW)) for at in range(MEASURED))


@pytest.mark.parametrize(
    ("bolt", "make"),
    [(Nothing(), tuples), (Nothing().with_aggregate(by="key", number=CountOf()), tuples), (NothingOfColumns(), rows)],
    ids=["tuples", "results", "columns"],
)
def test_a_micro_batch_writes_what_is_new_however_much_a_window_holds(bolt: Any, make: Any) -> None:
    few, many = (written_when_it_holds(held, bolt, make) for held in (1000, 10_000))
    assert 0 < many < 1.5 * few


def test_a_window_larger_than_memory_goes_on_in_another_worker_and_is_evaluated_by_the_page() -> None:
    bolt = Totals().with_tumbling_window(Duration.seconds(10)).with_aggregate(by="key", number=CountOf())
    store, entries, keys = Counting({}), 0, 5_000

    def started() -> tuple[BoltTester, StoredState]:
        tester, state = BoltTester(bolt), StoredState(memory=100_000)
        state.load(store, entries)
        state.attach(store)
        tester.bolt.init_state(state)
        return tester, state

    def commit() -> None:
        nonlocal entries
        written = state.commit(store, entries)
        entries = entries if written is None else written.entries
        state.attach(store)

    tester, state = started()
    for first in range(10):
        # Neighbours come at different times.
        tester.execute(*tuples(range(first, keys, 10)))
        commit()
    assert state.usage().keys < keys // 4, "it fits in memory"
    tester, state = started()
    tester.execute(*tuples(range(100)))
    commit()
    tester, state = started()
    pages = sum(name == "pages" for name, _ in store.values)
    before = store.reads
    tester.advance(seconds=11)
    commit()
    expected = {key: 1 + (key < 100) for key in range(keys)}
    assert tester.bolt.bolt.changed == tester.bolt.bolt.held == [expected]
    # For the totals, for all of them again, and for what is written.
    assert 0 < store.reads - before < 5 * pages + keys // 100
    tester.execute(*tuples(range(1)))
    tester.advance(seconds=11)
    assert tester.bolt.bolt.changed[1:] == [{0: 1} | dict.fromkeys(range(1, keys))]
    assert tester.bolt.bolt.held[1:] == [{0: 1}]


def test_what_a_window_has_taken_in_stays_while_the_rest_of_the_micro_batch_is_read_ahead() -> None:
    bolt = Totals().with_tumbling_window(Duration.seconds(10)).with_aggregate(by="key", number=CountOf())
    store, entries, keys, part = MemoryStore({}), 0, 5_000, 100
    tester, state = BoltTester(bolt), StoredState(memory=100_000)
    state.attach(store)
    tester.bolt.init_state(state)
    for first in range(0, keys, 5 * part):
        for start in range(first, first + 5 * part, part):
            coming = range(start, start + part)
            if state.looks_ahead:
                state.look_ahead(set(coming))
            for tup in tuples(coming):
                tester.bolt.execute(tup)
        tester.bolt.finish_micro_batch()
        written = state.commit(store, entries)
        entries = entries if written is None else written.entries
        state.attach(store)
    assert state.looks_ahead, "it fits in memory"
    tester.advance(seconds=11)
    assert tester.bolt.bolt.changed == [dict.fromkeys(range(keys), 1)]
