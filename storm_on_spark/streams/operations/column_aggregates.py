"""Aggregations of columns in windows, computed by Arrow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from storm_on_spark.streams.operations.aggregating import AggregateByKey
from storm_on_spark.streams.operations.aggregators import Count, Max, Mean, Min, Sum
from storm_on_spark.streams.operations.columns import ColumnProcessor
from storm_on_spark.windowing.aggregates.functions import Aggregate, CountOf, MaxOf, MeanOf, MinOf, SumOf

if TYPE_CHECKING:
    import numpy
    import pyarrow

    from storm_on_spark.streams.operations.processor import Processor

VALUE: Final = "value"
"""The column that is aggregated."""
_OF_COLUMNS: Final[dict[type, Aggregate]] = {
    Count: CountOf(),
    Sum: SumOf(VALUE),
    Min: MinOf(VALUE),
    Max: MaxOf(VALUE),
    Mean: MeanOf(VALUE),
}


@dataclass(frozen=True)
class ColumnAggregate(ColumnProcessor):
    """The aggregated values of a window, or of each key in it."""

    aggregate: Aggregate
    called: str
    """Its name, as the user calls it."""
    keyed: bool
    """Whether it has a result for each key."""
    gathers = True

    @property
    def name(self) -> str:  # type: ignore[override]
        """The user's name for it."""
        return self.called

    @property
    def by_key(self) -> bool:  # type: ignore[override]
        """Whether one task has to get all pairs with one key."""
        return self.keyed

    def apply(self, batch: pyarrow.RecordBatch) -> tuple[pyarrow.RecordBatch, numpy.ndarray[Any, Any] | None]:
        """Not called: a windowed bolt computes the results."""
        raise NotImplementedError(f"{self.name} works on windows")


def is_of_columns(processor: AggregateByKey, columns: tuple[str, ...]) -> bool:
    """Returns whether columns can be aggregated so.

    Args:
        processor: the aggregation.
        columns: of its input.
    """
    kind = type(processor.aggregator)
    return kind in _OF_COLUMNS and (kind is Count or VALUE in columns)


def on_columns(processor: Processor, columns: tuple[str, ...]) -> ColumnAggregate | None:
    """Returns an aggregation as one of columns; None if Arrow has no equal one.

    Args:
        processor: the aggregation.
        columns: of its input.
    """
    if not isinstance(processor, AggregateByKey) or not is_of_columns(processor, columns):
        return None
    keyed = processor.by_key
    fields = ("key", VALUE) if keyed else (VALUE,)
    return ColumnAggregate(fields, _OF_COLUMNS[type(processor.aggregator)], processor.name, keyed)
