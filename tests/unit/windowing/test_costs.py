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


class Counting(MemoryStore):
    """Counts the bytes that are put."""

    written = 0

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
