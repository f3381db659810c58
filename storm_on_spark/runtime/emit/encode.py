"""Boxes as chunks."""

from __future__ import annotations

import pyarrow as pa

from storm_on_spark.api.errors import TupleError
from storm_on_spark.plan.model import EdgeKind
from storm_on_spark.runtime.codec import chunk
from storm_on_spark.runtime.codec.chunk import Chunk
from storm_on_spark.runtime.emit.output import Sealed
from storm_on_spark.runtime.values import pickling
from storm_on_spark.runtime.values.frozen import FrozenRows


def encode_sealed(sealed: Sealed, component: str, task: int, sequence: int) -> tuple[Chunk, int]:
    """Returns a box as a chunk, and its receipt.

    Raises:
        TupleError: a value can't be pickled; the message names its field.
    """
    box = sealed.box
    flags = chunk.CARRIED | chunk.REPORTED if box.kind is EdgeKind.CARRIED else 0
    head = {"target": box.target, "source": task, "sequence": sequence, "stream": box.stream.number, "flags": flags}
    try:
        if isinstance(sealed.values, pa.RecordBatch):
            return chunk.encode_arrow(sealed.values, sealed.roots, sealed.edges, **head)
        return chunk.encode_tuples(sealed.values, sealed.roots, sealed.edges, **head)
    except Exception as error:  # whatever the values' own methods raise
        rows = sealed.values.kept if isinstance(sealed.values, FrozenRows) else sealed.values
        for values in () if isinstance(rows, pa.RecordBatch) else rows:
            for field, value in zip(box.stream.fields, values, strict=True):
                try:
                    pickling.dumps(value)
                except Exception as reason:
                    raise TupleError(
                        f'"{component}" (task {task}) emitted a value for field "{field}" of stream '
                        f'"{box.stream.stream}" that can\'t be pickled: {reason} (given {value!r:.100})'
                    ) from error
        raise
