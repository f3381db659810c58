"""Query functions that come with Trident."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from storm_on_spark.api.tuple import Tuple
from storm_on_spark.trident.state.interfaces import (
    Collects,
    ITupleCollection,
    QueryFunction,
    ReadOnlyMapState,
    ReadOnlySnapshottable,
)


class MapGet(QueryFunction[ReadOnlyMapState[Any]]):
    """The value of the key that the input fields are; None if there is none."""

    def batch_retrieve(self, state: ReadOnlyMapState[Any], tuples: Sequence[Tuple]) -> Sequence[Any]:  # noqa: D102
        return state.multi_get([list(tup) for tup in tuples])

    def execute(self, tup: Tuple, result: Any, collector: Collects) -> None:  # noqa: D102
        collector.emit([result])


class SnapshotGet(QueryFunction[ReadOnlySnapshottable[Any]]):
    """The value of a state that has one."""

    def batch_retrieve(self, state: ReadOnlySnapshottable[Any], tuples: Sequence[Tuple]) -> Sequence[Any]:  # noqa: D102
        return [state.get()] * len(tuples)

    def execute(self, tup: Tuple, result: Any, collector: Collects) -> None:  # noqa: D102
        collector.emit([result])


class TupleCollectionGet(QueryFunction[ITupleCollection]):
    """All entries of a state, for each tuple: the values of the key, then the value."""

    def batch_retrieve(self, state: ITupleCollection, tuples: Sequence[Tuple]) -> Sequence[Any]:  # noqa: D102
        entries = list(state.get_tuples())
        return [entries] * len(tuples)

    def execute(self, tup: Tuple, result: Any, collector: Collects) -> None:  # noqa: D102
        for entry in result:
            collector.emit(entry)
