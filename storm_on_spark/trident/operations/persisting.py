"""Operations with a state: writing a batch to it, and asking it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from storm_on_spark.streams.operations.processor import Bound, Place, Processor, Store
from storm_on_spark.trident.operations.functions import (
    CombinerAggregator,
    Emitter,
    ReducerAggregator,
    Row,
    View,
)
from storm_on_spark.trident.operations.task import task_of
from storm_on_spark.trident.state.interfaces import StoredStateFactory
from storm_on_spark.trident.state.updaters import CombinerValueUpdater, ReducerValueUpdater

if TYPE_CHECKING:
    from storm_on_spark.api.task.context import TopologyContext


@dataclass(frozen=True)
class UsesState(Processor, ABC):
    """An operation that has to be in the bolt of a state."""

    factory: Any
    """Makes the state: a `StateFactory`."""
    owner: int
    """The operation that has the state: the one that writes to it."""
    function: Any
    """What is done with it: a `StateUpdater` or a `QueryFunction`."""
    fields: tuple[str, ...]
    """Of the rows that come."""
    chosen: tuple[int, ...]
    """The positions of the fields that the function gets."""
    width: int
    """The number of fields that it emits."""
    stateful = True
    gathers = True

    @property
    def beside(self) -> int:  # noqa: D102
        return self.owner

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:  # noqa: D102
        prepare = getattr(self.function, "prepare", None)
        if prepare is not None:
            prepare(conf, context)

    def make_state(
        self, conf: Mapping[str, Any], context: TopologyContext, index: int, tasks: int, store: Store
    ) -> tuple[Any, bool]:
        """Returns the state of a task, and whether what it keeps is in `store` or in another system."""
        if isinstance(self.factory, StoredStateFactory):
            return self.factory.make_state_in(store, index, tasks), True
        made = self.factory.make_state(conf, context, index, tasks)
        return made, getattr(made, "keeps_elsewhere", False)

    def bind(self, place: Place) -> Bound:  # noqa: D102
        rows: list[Row] = place.held.setdefault("rows", [])

        def finish() -> None:
            taken = rows[:]
            rows.clear()
            self._apply(taken, place)

        return Bound([rows.append], finish)

    @abstractmethod
    def _apply(self, rows: list[Row], place: Place) -> None:
        """Uses the state for all rows of a batch."""


@dataclass(frozen=True)
class Persist(UsesState):
    """Writes the rows of a batch to the state, when the batch is committed."""

    name = "partition_persist"

    @property
    def writes_elsewhere(self) -> bool:
        """Whether the state is outside of the checkpoint."""
        return bool(getattr(self.factory, "writes_elsewhere", True))

    def _apply(self, rows: list[Row], place: Place) -> None:
        (forward,), task, view = place.forward, task_of(place), View(self.fields, self.chosen).of
        state, txid = task.kept(self.owner), place.batch.txid
        state.begin_commit(txid)
        if rows:
            collector = Emitter(forward, self.width, task.report)
            self.function.update_state(state, [view(row) for row in rows], collector)
        state.commit(txid)


@dataclass(frozen=True)
class Query(UsesState):
    """Each row, followed by what a function gives for the state's answer."""

    name = "state_query"

    def _apply(self, rows: list[Row], place: Place) -> None:
        if not rows:
            return
        (forward,), task, view = place.forward, task_of(place), View(self.fields, self.chosen).of
        collector = Emitter(forward, self.width, task.report)
        tuples = [view(row) for row in rows]
        answers = self.function.batch_retrieve(task.kept(self.owner), tuples)
        if len(answers) != len(rows):
            raise ValueError(
                f"{type(self.function).__qualname__}.batch_retrieve returned {len(answers)} answers for {len(rows)} "
                "tuples"
            )
        for row, tup, answer in zip(rows, tuples, answers, strict=True):
            collector.before = row
            self.function.execute(tup, answer, collector)


class AggregateMap:
    """Updates a `MapState` with the aggregate of each group; emits groups and their new values."""

    def __init__(
        self,
        aggregator: CombinerAggregator | ReducerAggregator,
        keys: int,
        fields: tuple[str, ...],
        inputs: tuple[int, ...],
    ) -> None:
        self._aggregator = aggregator
        #: How many fields at the beginning are the group.
        self._keys = keys
        self._fields = fields
        #: The positions of the fields that the aggregator gets.
        self._inputs = inputs

    def update_state(self, state: Any, tuples: list[Any], collector: Any) -> None:
        """Updates the values of all groups at once."""
        count, aggregator = self._keys, self._aggregator
        groups: dict[Row, list[Row]] = {}
        for tup in tuples:
            row = tuple(tup)
            groups.setdefault(row[:count], []).append(row)
        updaters: list[Any] = []
        if isinstance(aggregator, CombinerAggregator):
            combine = aggregator.combine
            updaters = [
                CombinerValueUpdater(aggregator, reduce(combine, [row[count] for row in rows]))
                for rows in groups.values()
            ]
        else:
            view = View(self._fields, self._inputs).of
            updaters = [ReducerValueUpdater(aggregator, [view(row) for row in rows]) for rows in groups.values()]
        values = state.multi_update([list(key) for key in groups], updaters)
        for key, value in zip(groups, values, strict=True):
            collector.emit([*key, value])


class AggregateValue:
    """Updates a `Snapshottable` with the aggregate of a batch; emits the new value."""

    def __init__(self, aggregator: CombinerAggregator | ReducerAggregator) -> None:
        self._aggregator = aggregator

    def update_state(self, state: Any, tuples: list[Any], collector: Any) -> None:
        """Updates the value."""
        aggregator = self._aggregator
        updater: Any
        if isinstance(aggregator, CombinerAggregator):
            updater = CombinerValueUpdater(aggregator, reduce(aggregator.combine, [tup[0] for tup in tuples]))
        else:
            updater = ReducerValueUpdater(aggregator, tuples)
        collector.emit([state.update(updater)])
