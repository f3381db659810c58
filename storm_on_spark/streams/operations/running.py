"""Aggregations of columns outside of windows: a result for each value, of all values so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from storm_on_spark.streams.operations.aggregating import AggregateByKey
from storm_on_spark.streams.operations.aggregators import Count, Sum
from storm_on_spark.streams.operations.column_aggregates import VALUE, is_of_columns
from storm_on_spark.streams.operations.columns import ColumnProcessor
from storm_on_spark.streams.operations.processor import Store

if TYPE_CHECKING:
    import numpy
    import pyarrow

    from storm_on_spark.streams.operations.processor import Processor

    Codes = numpy.ndarray[Any, numpy.dtype[numpy.int64]]

_NONE: Final = object()
"""Stands for no accumulator so far."""
_MOST: Final = (1 << 63) - 1


@dataclass(frozen=True)
class RunningAggregate(ColumnProcessor):
    """The aggregate of all values so far, or of those of a key, for each value.

    What it keeps is what the same aggregation of single values keeps. Numbers, and sums of integers, are worked out for
    all rows at once, and others row by row, which still costs a fraction of what tuples would. Nulls are not added.
    """

    processor: AggregateByKey
    stateful = True
    gathers = True

    @property
    def name(self) -> str:  # type: ignore[override]
        """As the user calls it."""
        return self.processor.name

    @property
    def by_key(self) -> bool:  # type: ignore[override]
        """Whether one task has to get all pairs with one key."""
        return self.processor.by_key

    def apply(self, batch: pyarrow.RecordBatch) -> tuple[pyarrow.RecordBatch, numpy.ndarray[Any, Any] | None]:
        """Not called: it needs what it keeps."""
        raise NotImplementedError(f"{self.name} has a state")

    def apply_to(self, batch: pyarrow.RecordBatch, store: Store) -> pyarrow.RecordBatch:
        """Returns a result for each row of a batch, and writes what it keeps of the keys that are in it."""
        import numpy as np
        import pyarrow as pa

        if not batch.num_rows:
            empty = pa.array([], pa.int64())
            return pa.record_batch([empty] * len(self.fields), names=list(self.fields))
        if self.by_key:
            codes, keys = _encoded(batch.column("key"))
        else:
            codes, keys = np.zeros(batch.num_rows, np.int64), [None]
        before = [store.get(key, _NONE) for key in keys]
        aggregator = self.processor.aggregator
        found = None
        if type(aggregator) is Count:
            found = _sums(codes, np.ones(batch.num_rows, np.int64), before)
        elif type(aggregator) is Sum:
            values = batch.column(VALUE)
            if pa.types.is_signed_integer(values.type) and not values.null_count:
                found = _sums(codes, values.to_numpy(zero_copy_only=False).astype(np.int64), before)
        results, after = found or self._one_by_one(codes, batch.column(VALUE).to_pylist(), before)
        for key, accumulator in zip(keys, after, strict=True):
            if accumulator is not _NONE:
                store.put(key, accumulator)
        columns = [batch.column("key"), results] if self.by_key else [results]
        return pa.record_batch(columns, names=list(self.fields))

    def _one_by_one(self, codes: Codes, values: list[Any], before: list[Any]) -> tuple[pyarrow.Array, list[Any]]:
        import pyarrow as pa

        aggregator, accumulators, results = self.processor.aggregator, list(before), []
        for code, value in zip(codes.tolist(), values, strict=True):
            accumulator = accumulators[code]
            if value is not None:
                accumulator = aggregator.apply(aggregator.init() if accumulator is _NONE else accumulator, value)
                accumulators[code] = accumulator
            results.append(None if accumulator is _NONE else aggregator.result(accumulator))
        return pa.array(results), accumulators


def running(processor: Processor, columns: tuple[str, ...]) -> RunningAggregate | None:
    """Returns an aggregation outside of windows as one of columns; None if it can't be.

    Args:
        processor: the aggregation.
        columns: of its input.
    """
    if not isinstance(processor, AggregateByKey) or not is_of_columns(processor, columns):
        return None
    return RunningAggregate(("key", VALUE) if processor.by_key else (VALUE,), processor)


def _encoded(column: pyarrow.Array) -> tuple[Codes, list[Any]]:
    """Returns the number of each row's key, and the keys."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        encoded = pc.dictionary_encode(column, null_encoding="encode")
    except pa.ArrowNotImplementedError:
        numbers: dict[Any, int] = {}
        found = [numbers.setdefault(key, len(numbers)) for key in column.to_pylist()]
        return np.array(found, np.int64), list(numbers)
    return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_pylist()


def _sums(codes: Codes, values: Codes, before: list[Any]) -> tuple[pyarrow.Array, list[Any]] | None:
    """Returns the sum so far at each row, and at the end; None if they may not fit, or not all are integers."""
    import numpy as np
    import pyarrow as pa

    starts = [0 if kept is _NONE else kept for kept in before]
    if not all(type(start) is int for start in starts):
        return None
    most = int(np.abs(values.astype(float)).max() * 1.001) + 1
    if most * len(values) + max(map(abs, starts)) > _MOST:
        return None
    order = np.argsort(codes, kind="stable")
    sums, grouped = np.cumsum(values[order]), codes[order]
    firsts = np.flatnonzero(np.diff(grouped, prepend=-1))
    # What was summed up before the rows of each key.
    others = np.zeros(len(starts), np.int64)
    others[grouped[firsts]] = sums[firsts] - values[order][firsts]
    found = np.empty(len(values), np.int64)
    found[order] = sums - others[grouped] + np.array(starts, np.int64)[grouped]
    lasts = np.append(firsts[1:], len(values)) - 1
    after = dict(zip(grouped[lasts].tolist(), found[order[lasts]].tolist(), strict=True))
    return pa.array(found), [after[code] for code in range(len(starts))]
