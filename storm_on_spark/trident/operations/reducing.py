"""Operations on the rows of several streams in a batch: multi-reduction and joins."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from storm_on_spark.api.tuple import Tuple
from storm_on_spark.streams.operations.processor import Bound, Consume, Place, Processor
from storm_on_spark.trident.operations.functions import Emitter, MultiReducer, Row, TridentCollector, View
from storm_on_spark.trident.operations.task import task_of

if TYPE_CHECKING:
    from storm_on_spark.api.task.context import TopologyContext


@dataclass(frozen=True)
class Input:
    """The rows of one stream."""

    fields: tuple[str, ...]
    chosen: tuple[int, ...]
    """The positions of the fields that the reducer gets."""
    keys: tuple[int, ...] = ()
    """The positions of the fields that rows are grouped by."""


@dataclass(frozen=True)
class MultiReduce(Processor):
    """The results of a reducer for the rows of several streams, or for each group: the group's values before them."""

    reducer: MultiReducer
    inputs: tuple[Input, ...]
    width: int
    """The number of fields that the reducer emits."""
    with_keys: bool = True
    """Whether results begin with the group's values."""
    name: ClassVar[str] = "multi_reduce"
    gathers: ClassVar[bool] = True

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:  # noqa: D102
        self.reducer.prepare(conf, context)

    def bind(self, place: Place) -> Bound:  # noqa: D102
        (forward,), held, reducer = place.forward, place.held, self.reducer
        collector = Emitter(forward, self.width, task_of(place).report)
        grouped, with_keys = bool(self.inputs[0].keys), self.with_keys

        def taker(number: int, given: Input) -> Consume:
            view, keys = View(given.fields, given.chosen).of, given.keys

            def take(row: Row) -> None:
                key = tuple([row[position] for position in keys])
                collector.before = key if with_keys else ()
                if key not in held:
                    held[key] = reducer.init(collector)
                reducer.execute(held[key], number, view(row), collector)

            return take

        def finish() -> None:
            if not grouped and not held:
                held[()] = reducer.init(collector)
            for key in list(held):
                collector.before = key if with_keys else ()
                reducer.complete(held.pop(key), collector)

        return Bound([taker(number, given) for number, given in enumerate(self.inputs)], finish)


@dataclass(frozen=True)
class JoinReducer(MultiReducer):
    """The combinations of the tuples of all streams in a group; None stands for those of a stream that has none.

    A stream that is joined inner has to have a tuple, or the group has no result. Storm's `JoinerMultiReducer`.
    """

    widths: tuple[int, ...]
    """How many values each stream contributes."""
    outer: tuple[bool, ...]
    """Whether each stream may have no tuple."""

    def init(self, collector: TridentCollector) -> list[list[Row]]:  # noqa: D102
        return [[] for _ in self.widths]

    def execute(self, accumulator: Any, stream: int, tup: Tuple, collector: TridentCollector) -> None:  # noqa: D102
        accumulator[stream].append(tuple(tup))

    def complete(self, accumulator: Any, collector: TridentCollector) -> None:  # noqa: D102
        sides: list[Sequence[Row]] = []
        for rows, width, outer in zip(accumulator, self.widths, self.outer, strict=True):
            if not rows and not outer:
                return
            sides.append(rows or [(None,) * width])
        for rows in itertools.product(*sides):
            collector.emit(list(itertools.chain.from_iterable(rows)))
