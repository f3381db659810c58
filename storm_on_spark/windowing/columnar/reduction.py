"""Aggregations of columns: the partial results of panes, and how they become the result of a window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.windowing.aggregates.functions import Aggregate, CountOf, MaxOf, MeanOf, MinOf, SumOf

_PLAIN: Final[dict[type, str]] = {SumOf: "sum", MinOf: "min", MaxOf: "max"}
_MERGED: Final = {"sum": "sum", "min": "min", "max": "max", "count": "sum", "count_all": "sum"}

_MOST: Final = (1 << 63) - (1 << 12)
"""Limit for sums of integers. It is below that of 64 bits by the error of floats of that size."""


class Reduction:
    """Reduces rows to one for each key.

    Args:
        by: the columns of the key.
        aggregates: the aggregations, by name.

    Raises:
        InvalidTopologyError: Arrow has no such aggregation.

    Example:
        >>> reduction = Reduction(["word"], {"number": CountOf(), "mean": MeanOf("size")})
        >>> parts = [pa.table({"word": ["to", "be", "to"], "size": [1, 2, 3]}), pa.table({"word": ["to"], "size": [8]})]
        >>> merged = reduction.merged(pa.concat_tables([reduction.partial(part) for part in parts]))
        >>> reduction.result(merged).to_pylist()
        [{'word': 'to', 'number': 3, 'mean': 4.0}, {'word': 'be', 'number': 1, 'mean': 2.0}]
    """

    def __init__(self, by: Sequence[str], aggregates: Mapping[str, Aggregate]) -> None:
        self._by = list(by)
        self._aggregates = dict(aggregates)
        #: For each partial result: the aggregated column ("" for none), and Arrow's function.
        self._steps: list[tuple[str, str]] = list(
            dict.fromkeys(step for name, aggregate in aggregates.items() for step in self._steps_of(name, aggregate))
        )

    def _steps_of(self, name: str, aggregate: Aggregate) -> list[tuple[str, str]]:
        if isinstance(aggregate, CountOf):
            return [("", "count_all")]
        if isinstance(aggregate, MeanOf):
            return [(aggregate.field, "sum"), (aggregate.field, "count")]
        function = _PLAIN.get(type(aggregate))
        if function is None or not isinstance(aggregate, (SumOf, MinOf, MaxOf)):
            known = ", ".join(cls.__name__ for cls in (CountOf, MeanOf, *_PLAIN))
            raise InvalidTopologyError(
                f"the aggregation {name!r} is a {type(aggregate).__name__}, which columns don't have; they have: "
                f"{known}"
            )
        return [(aggregate.field, function)]

    def partial(self, rows: pa.Table) -> pa.Table:
        """Returns the partial results of rows."""
        for column, function in self._steps:
            if function == "sum":
                self._check_sum(rows, column)
        steps: list[Any] = [(column or [], function) for column, function in self._steps]
        found = rows.group_by(self._by, use_threads=False).aggregate(steps)
        columns = [found["count_all" if not column else f"{column}_{function}"] for column, function in self._steps]
        return self._named(found, columns)

    def merged(self, partials: pa.Table) -> pa.Table:
        """Returns one row for each key."""
        for place, (_, function) in enumerate(self._steps):
            if function == "sum":
                self._check_sum(partials, str(place))
        steps = [(str(place), _MERGED[function]) for place, (_, function) in enumerate(self._steps)]
        found = partials.group_by(self._by, use_threads=False).aggregate(steps)
        return self._named(found, [found[f"{column}_{function}"] for column, function in steps])

    def _check_sum(self, rows: pa.Table, column: str) -> None:
        """Checks that sums of a column fit into 64 bits: Arrow would return wrong ones.

        Raises:
            OverflowError: a sum does not fit.
        """
        if not pa.types.is_integer(rows[column].type) or rows.num_rows == 0:
            return
        bounds = pc.min_max(rows[column]).as_py()
        largest = max(abs(bounds["min"] or 0), abs(bounds["max"] or 0))
        if largest * rows.num_rows < _MOST:
            return
        values = rows.select(self._by).append_column("value", pc.cast(rows[column], pa.float64(), safe=False))
        sums = values.group_by(self._by, use_threads=False).aggregate([("value", "sum")])["value_sum"]
        if pc.max(pc.abs(sums)).as_py() >= _MOST:
            raise OverflowError(
                "a sum of integers in a window over columns does not fit into 64 bits: sum up floats, or tuples one "
                "by one"
            )

    def _named(self, table: pa.Table, columns: list[Any]) -> pa.Table:
        names = [*self._by, *map(str, range(len(columns)))]
        return pa.Table.from_arrays([*(table[name] for name in self._by), *columns], names=names)

    def result(self, merged: pa.Table) -> pa.Table:
        """Returns keys and results, under their names."""
        columns = [merged[name] for name in self._by]
        for name, aggregate in self._aggregates.items():
            first, *number = (merged[str(self._steps.index(step))] for step in self._steps_of(name, aggregate))
            columns.append(pc.divide(pc.cast(first, pa.float64()), number[0]) if number else first)
        return pa.Table.from_arrays(columns, names=[*self._by, *self._aggregates])
