"""Operations on columns: many values at once, as Arrow record batches."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from storm_on_spark.api.text.wording import kind_of
from storm_on_spark.streams.operations.processor import Bound, Place, Processor

if TYPE_CHECKING:
    import numpy
    import pyarrow
    from pyarrow.compute import Expression

_ROW: Final = "__row"
"""The column with the number of the input row that a row comes from."""


@dataclass(frozen=True)
class ColumnProcessor(Processor):
    """An operation on record batches. It has no state."""

    fields: tuple[str, ...]
    """The columns of its results."""

    def bind(self, place: Place) -> Bound:
        """Not called: a bolt for record batches calls `apply`."""
        raise NotImplementedError(f"{self.name} works on record batches")

    @abstractmethod
    def apply(self, batch: pyarrow.RecordBatch) -> tuple[pyarrow.RecordBatch, numpy.ndarray[Any, Any] | None]:
        """Returns the results, and the row of the input that each comes from; None for the same rows."""


@dataclass(frozen=True)
class ColumnFilter(ColumnProcessor):
    """The rows for which an expression is true."""

    predicate: Expression
    name = "filter"

    def apply(self, batch: pyarrow.RecordBatch) -> tuple[pyarrow.RecordBatch, numpy.ndarray[Any, Any] | None]:  # noqa: D102
        import pyarrow.compute as pc

        return _scan(batch, {name: pc.field(name) for name in batch.schema.names}, self.predicate)


@dataclass(frozen=True)
class ColumnMap(ColumnProcessor):
    """A row of the values of some expressions for each row."""

    expressions: tuple[Expression, ...]
    name = "map"

    def apply(self, batch: pyarrow.RecordBatch) -> tuple[pyarrow.RecordBatch, numpy.ndarray[Any, Any] | None]:  # noqa: D102
        return _scan(batch, dict(zip(self.fields, self.expressions, strict=True)), None)[0], None


@dataclass(frozen=True)
class ColumnMapToPair(ColumnMap):
    """A key and a value for each row."""

    name = "map_to_pair"


@dataclass(frozen=True)
class MapBatches(ColumnProcessor):
    """The record batch that a function makes of each one."""

    function: Callable[[Any], Any]
    name = "map_batches"

    def apply(self, batch: pyarrow.RecordBatch) -> tuple[pyarrow.RecordBatch, numpy.ndarray[Any, Any] | None]:  # noqa: D102
        import numpy as np
        import pyarrow as pa

        result = self.function(batch)
        made, parents = result if isinstance(result, tuple) else (result, None)
        if not isinstance(made, pa.RecordBatch):
            raise TypeError(
                f"the function must return a record batch, or one and the rows it comes from, not {kind_of(made)}"
            )
        if tuple(made.schema.names) != self.fields:
            raise TypeError(f"the record batch must have the columns {list(self.fields)}, not {made.schema.names}")
        if parents is None and made.num_rows != batch.num_rows:
            raise TypeError(
                f"{made.num_rows} rows came out of {batch.num_rows}; return (batch, rows), with the row of the input "
                "that each comes from"
            )
        return made, None if parents is None else np.asarray(parents)


def _scan(
    batch: pyarrow.RecordBatch, columns: Mapping[str, Expression], predicate: Expression | None
) -> tuple[pyarrow.RecordBatch, numpy.ndarray[Any, Any]]:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow.dataset import InMemoryDataset

    numbered = batch.append_column(_ROW, pa.array(np.arange(batch.num_rows)))
    scanner = InMemoryDataset(numbered).scanner(
        columns={**columns, _ROW: pc.field(_ROW)}, filter=predicate, use_threads=False
    )
    table = scanner.to_table().combine_chunks()
    arrays = [table.column(name).combine_chunks() for name in columns]
    rows = table.column(_ROW).combine_chunks().to_numpy()
    return pa.record_batch(arrays, names=list(columns)), rows
