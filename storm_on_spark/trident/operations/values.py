"""Operations on single rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from storm_on_spark.api.tuple import Tuple
from storm_on_spark.streams.operations.processor import Bound, Place, Processor
from storm_on_spark.trident.operations.functions import BaseFilter, BaseFunction, Emitter, Row, View, row_of, rows_of
from storm_on_spark.trident.operations.task import task_of

if TYPE_CHECKING:
    from storm_on_spark.api.task.context import TopologyContext


@dataclass(frozen=True)
class _OnRows(Processor):
    """An operation with a function or an object of the user's."""

    function: Any
    fields: tuple[str, ...]
    """Of the rows that come."""
    chosen: tuple[int, ...]
    """The positions of the fields that the function gets."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Prepares the user's object."""
        prepare = getattr(self.function, "prepare", None)
        if prepare is not None:
            prepare(conf, context)

    def _view(self) -> Callable[[Row], Tuple]:
        return View(self.fields, self.chosen).of


@dataclass(frozen=True)
class Each(_OnRows):
    """Each row, followed by what a function gives for it: one row for each result."""

    width: int
    """The number of new fields."""
    name = "each"

    def bind(self, place: Place) -> Bound:  # noqa: D102
        (forward,), function, width, view = place.forward, self.function, self.width, self._view()
        if isinstance(function, BaseFunction):
            collector = Emitter(forward, width, task_of(place).report)

            def execute(row: Row) -> None:
                collector.before = row
                function.execute(view(row), collector)

            return Bound([execute])

        def take(row: Row) -> None:
            for new in rows_of(function(view(row)), width):
                forward(row + new)

        return Bound([take])


@dataclass(frozen=True)
class Map(_OnRows):
    """One row for each row."""

    width: int
    name = "map"

    def bind(self, place: Place) -> Bound:  # noqa: D102
        (forward,), function, width, view = place.forward, self.function, self.width, self._view()
        return Bound([lambda row: forward(row_of(function(view(row)), width))])


@dataclass(frozen=True)
class FlatMap(_OnRows):
    """Any number of rows for each row."""

    width: int
    name = "flat_map"

    def bind(self, place: Place) -> Bound:  # noqa: D102
        (forward,), function, width, view = place.forward, self.function, self.width, self._view()

        def take(row: Row) -> None:
            for new in rows_of(function(view(row)), width):
                forward(new)

        return Bound([take])


@dataclass(frozen=True)
class Filter(_OnRows):
    """The rows that a filter keeps."""

    name = "filter"

    def bind(self, place: Place) -> Bound:  # noqa: D102
        (forward,), view = place.forward, self._view()
        keep = self.function.is_keep if isinstance(self.function, BaseFilter) else self.function

        def take(row: Row) -> None:
            if keep(view(row)):
                forward(row)

        return Bound([take])


@dataclass(frozen=True)
class Peek(_OnRows):
    """The same rows, each after the call of a function."""

    name = "peek"

    def bind(self, place: Place) -> Bound:  # noqa: D102
        (forward,), function, view = place.forward, self.function, self._view()

        def take(row: Row) -> None:
            function(view(row))
            forward(row)

        return Bound([take])


@dataclass(frozen=True)
class Project(Processor):
    """Some fields of each row."""

    chosen: tuple[int, ...]
    name = "project"

    def bind(self, place: Place) -> Bound:  # noqa: D102
        (forward,), chosen = place.forward, self.chosen
        return Bound([lambda row: forward(tuple([row[position] for position in chosen]))])
