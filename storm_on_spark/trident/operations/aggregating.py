"""Aggregations of the rows of a batch, or of each group of them."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from storm_on_spark.api.tuple import Tuple
from storm_on_spark.streams.operations.processor import Bound, Place, Processor
from storm_on_spark.trident.operations.functions import (
    Aggregator,
    CombinerAggregator,
    Emitter,
    ReducerAggregator,
    Row,
    TridentCollector,
    View,
)
from storm_on_spark.trident.operations.task import task_of

if TYPE_CHECKING:
    from storm_on_spark.api.task.context import TopologyContext


class Folding(ABC):
    """Storm's three kinds of aggregators as one."""

    @abstractmethod
    def start(self, batch: Any, collector: TridentCollector) -> Any:
        """Returns the accumulator before the first tuple."""

    @abstractmethod
    def add(self, accumulator: Any, tup: Tuple, collector: TridentCollector) -> Any:
        """Returns the accumulator after a tuple."""

    @abstractmethod
    def end(self, accumulator: Any, collector: TridentCollector) -> None:
        """Emits the results."""


@dataclass(frozen=True)
class ByAggregator(Folding):
    """Calls an `Aggregator`."""

    aggregator: Aggregator

    def start(self, batch: Any, collector: TridentCollector) -> Any:  # noqa: D102
        return self.aggregator.init(batch, collector)

    def add(self, accumulator: Any, tup: Tuple, collector: TridentCollector) -> Any:  # noqa: D102
        self.aggregator.aggregate(accumulator, tup, collector)
        return accumulator

    def end(self, accumulator: Any, collector: TridentCollector) -> None:  # noqa: D102
        self.aggregator.complete(accumulator, collector)


@dataclass(frozen=True)
class ByReducer(Folding):
    """Calls a `ReducerAggregator`."""

    aggregator: ReducerAggregator

    def start(self, batch: Any, collector: TridentCollector) -> Any:  # noqa: D102
        return self.aggregator.init()

    def add(self, accumulator: Any, tup: Tuple, collector: TridentCollector) -> Any:  # noqa: D102
        return self.aggregator.reduce(accumulator, tup)

    def end(self, accumulator: Any, collector: TridentCollector) -> None:  # noqa: D102
        collector.emit([accumulator])


@dataclass(frozen=True)
class ByCombiner(Folding):
    """Calls a `CombinerAggregator`, for tuples or for what was combined of tuples elsewhere."""

    aggregator: CombinerAggregator
    partial: bool
    """Whether tuples hold what was combined before."""

    def start(self, batch: Any, collector: TridentCollector) -> Any:
        """Returns the accumulator of no tuples: the zero is asked for only if there is none."""
        return ()

    def add(self, accumulator: Any, tup: Tuple, collector: TridentCollector) -> Any:  # noqa: D102
        value = tup[0] if self.partial else self.aggregator.init(tup)
        return (self.aggregator.combine(accumulator[0], value) if accumulator else value,)

    def end(self, accumulator: Any, collector: TridentCollector) -> None:  # noqa: D102
        collector.emit([accumulator[0] if accumulator else self.aggregator.zero()])


@dataclass(frozen=True)
class Column:
    """One aggregation of several in a chain."""

    folding: Folding
    chosen: tuple[int, ...]
    """The positions of its input fields."""
    width: int
    """The number of fields that it emits."""


@dataclass(frozen=True)
class Aggregate(Processor):
    """The results of each group: the values that they are grouped by, then those of each aggregation.

    Where there are several aggregations, each result of one is joined with each of the others.
    """

    fields: tuple[str, ...]
    """Of the rows that come."""
    keys: tuple[int, ...]
    """The positions of the fields that rows are grouped by; none for all rows of the batch in this task."""
    columns: tuple[Column, ...]
    once: bool = False
    """Whether no rows at all are a result of only one task, as this is about the batch and not about a task's part."""
    name: ClassVar[str] = "aggregate"
    gathers: ClassVar[bool] = True

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:  # noqa: D102
        for column in self.columns:
            prepare = getattr(getattr(column.folding, "aggregator", None), "prepare", None)
            if prepare is not None:
                prepare(conf, context)

    def bind(self, place: Place) -> Bound:  # noqa: D102
        (forward,), task, held, keys = place.forward, task_of(place), place.held, self.keys
        results: list[list[Row]] = [[] for _ in self.columns]
        alone = len(self.columns) == 1
        emitters = [
            Emitter(forward if alone else found.append, column.width, task.report)
            for column, found in zip(self.columns, results, strict=True)
        ]
        steps = [
            (number, column.folding.add, View(self.fields, column.chosen).of, emitters[number])
            for number, column in enumerate(self.columns)
        ]

        def opened(key: Row) -> list[Any]:
            if key not in held:
                # What is emitted before the end of the batch is kept beside the accumulators.
                held[key] = [
                    [column.folding.start(place.batch, emitters[number]) for number, column in enumerate(self.columns)],
                    [],
                ]
            group: list[Any] = held[key]
            return group

        def take(row: Row) -> None:
            key = tuple([row[position] for position in keys])
            self._direct(emitters, key, alone)
            group = opened(key)
            accumulators = group[0]
            for number, add, view, emitter in steps:
                accumulators[number] = add(accumulators[number], view(row), emitter)
            if not alone:
                _keep(group, results)

        def finish() -> None:
            if not keys and not held:
                if self.once and place.batch.txid % task.tasks != task.index:
                    return
                opened(())
            for key in list(held):
                group = held.pop(key)
                self._direct(emitters, key, alone)
                for number, column in enumerate(self.columns):
                    column.folding.end(group[0][number], emitters[number])
                if not alone:
                    _keep(group, results)
                    for rows in itertools.product(*group[1]):
                        forward(key + tuple(itertools.chain.from_iterable(rows)))

        return Bound([take], finish)

    def _direct(self, emitters: Sequence[Emitter], key: Row, alone: bool) -> None:
        if alone:
            emitters[0].before = key


def _keep(group: list[Any], results: list[list[Row]]) -> None:
    """Moves what was emitted to what is kept of a group."""
    kept = group[1]
    if not kept:
        kept += [[] for _ in results]
    for rows, found in zip(kept, results, strict=True):
        rows += found
        found.clear()
