"""What users give to an aggregation, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.api.text.wording import kind_of
from storm_on_spark.streams.building.functions import caller
from storm_on_spark.streams.graph.model import Window
from storm_on_spark.trident.building.draft import Names, names_of, positions
from storm_on_spark.trident.operations.aggregating import ByAggregator, ByCombiner, ByReducer, Column, Folding
from storm_on_spark.trident.operations.functions import Aggregator, CombinerAggregator, ReducerAggregator
from storm_on_spark.windowing.definition import Duration


@dataclass(frozen=True)
class Given:
    """An aggregation as the user gave it."""

    inputs: tuple[str, ...] | None
    """None for all fields."""
    aggregator: Any
    outputs: tuple[str, ...]
    what: str

    @property
    def combines(self) -> bool:
        """Whether tasks combine their tuples first."""
        return isinstance(self.aggregator, CombinerAggregator)

    def inputs_of(self, fields: tuple[str, ...]) -> tuple[str, ...]:
        """Returns the input fields, of a stream with some fields."""
        return fields if self.inputs is None else self.inputs

    def column(self, fields: tuple[str, ...], partial: bool) -> Column:
        """Returns the aggregation of rows with some fields.

        Args:
            fields: of the rows.
            partial: whether the rows hold what was combined before, in the field of the result.
        """
        chosen = positions(fields, self.outputs if partial else self.inputs_of(fields), self.what)
        folding: Folding
        if isinstance(self.aggregator, CombinerAggregator):
            folding = ByCombiner(self.aggregator, partial)
        elif isinstance(self.aggregator, ReducerAggregator):
            folding = ByReducer(self.aggregator)
        else:
            folding = ByAggregator(self.aggregator)
        return Column(folding, chosen, len(self.outputs))


def given(inputs: Any, aggregator: Any, fields: Names | None, what: str) -> Given:
    """Returns an aggregation; its input fields may be left out.

    Raises:
        InvalidTopologyError: there is no aggregator, or it has not one field for one result.
    """
    kinds = (Aggregator, CombinerAggregator, ReducerAggregator)
    if isinstance(inputs, kinds):
        if fields is not None:
            raise InvalidTopologyError(f"{what} ({caller()}) takes (inputs, aggregator, fields), or no inputs")
        inputs, aggregator, fields = None, inputs, aggregator
    if not isinstance(aggregator, kinds):
        raise InvalidTopologyError(
            f"{what} ({caller()}) takes an Aggregator, a ReducerAggregator or a CombinerAggregator, "
            f"not {kind_of(aggregator)}"
        )
    outputs = names_of(fields)
    if not isinstance(aggregator, Aggregator) and len(outputs) != 1:
        raise InvalidTopologyError(f"{what} ({caller()}): the aggregate is one value, so it needs one field")
    return Given(None if inputs is None else names_of(inputs), aggregator, outputs, what)


def checked_kept(found: Given) -> Given:
    """Returns an aggregation whose result can be kept in a state.

    Raises:
        InvalidTopologyError: it may have any number of results.
    """
    if isinstance(found.aggregator, Aggregator):
        raise InvalidTopologyError(
            f"{found.what} ({caller()}) takes a CombinerAggregator or a ReducerAggregator, not an Aggregator: what is "
            "kept is one value"
        )
    return found


def by_time(window: Any, what: str) -> bool:
    """Returns whether a window goes by time, and not by the number of tuples.

    Raises:
        InvalidTopologyError: batches have no such windows.
    """
    if not isinstance(window, Window):
        raise InvalidTopologyError(
            f"{what} ({caller()}) takes SlidingWindows.of(...) or TumblingWindows.of(...), not {kind_of(window)}"
        )
    if window.timestamp_field is not None:
        raise InvalidTopologyError(
            f"{what} ({caller()}): windows over batches go by the time at which a batch is committed; "
            "use the Streams API for the time of events"
        )
    if type(window.length) is not type(window.slide):
        raise InvalidTopologyError(f"{what} ({caller()}): length and slide are both a Count, or both a Duration")
    return isinstance(window.length, Duration)
