"""Record batches as rows of Python values, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from storm_on_spark.runtime.values.frozen import NestedRows, is_nested
from storm_on_spark.runtime.values.rows import Columns


def to_rows(batch: pa.RecordBatch) -> Columns | NestedRows:
    """Returns the rows of a record batch as Python values, for a bolt that executes tuples."""
    if any(map(is_nested, batch.schema.types)):
        return NestedRows(batch)
    return Columns([column.to_pylist() for column in batch.columns], batch.num_rows)


def to_batch(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    """Returns rows of values as a record batch, for a `BatchBolt`; types are inferred by Arrow.

    Raises:
        pyarrow.ArrowInvalid: the values of a column have no common Arrow type.
    """
    columns = Columns.of(rows).columns if rows else [[]] * len(names)
    return pa.RecordBatch.from_arrays([pa.array(column) for column in columns], names=list(names))
