"""Message ids of a `BatchSpout`: Arrow arrays, made from any sequence of ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa

from storm_on_spark.api.errors import CheckpointError, TupleError
from storm_on_spark.runtime.values.frozen import owned_array

_COLUMN = "message_id"


def as_array(ids: Any) -> pa.Array:
    """Returns message ids as an Arrow array.

    Raises:
        pyarrow.ArrowException, TypeError, ValueError: they have no common Arrow type, or are not a sequence.

    Example:
        >>> as_array(np.array([3, 4])).to_pylist(), as_array(["a", None]).null_count
        ([3, 4], 1)
    """
    # What is numpy's, or a view of it, may be written to again.
    if isinstance(ids, pa.Array):
        return owned_array(ids)
    if isinstance(ids, pa.ChunkedArray):
        return owned_array(pa.concat_arrays(ids.chunks)) if ids.num_chunks else pa.array([], ids.type)
    return pa.array(ids.copy() if isinstance(ids, np.ndarray) else list(ids))


def of_emit(batch: Any, ids: Any, kind: pa.DataType | None, who: str) -> pa.Array | None:
    """Returns the message ids of a batch that is emitted; None if there are none.

    Args:
        batch: what is emitted.
        ids: one for each row, in any form that `as_array` takes; or None.
        kind: the required type of ids, if known.
        who: the emitter, for error messages.

    Raises:
        TupleError: it isn't a record batch, or the ids don't match its rows or the type.
    """
    if not isinstance(batch, pa.RecordBatch):
        raise TupleError(f"{who} emitted a {type(batch).__qualname__}; emit a pyarrow.RecordBatch")
    if ids is None:
        return None
    try:
        given = as_array(ids)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise TupleError(
            f"{who} emitted message ids that can't be an Arrow array: {error} (given {ids!r:.100})"
        ) from None
    if len(given) != batch.num_rows:
        raise TupleError(f"{who} emitted {len(given)} message id(s) with a batch of {batch.num_rows} row(s)")
    if kind is not None and given.null_count < len(given) and given.type != kind:
        raise TupleError(
            f"{who} emitted message ids of type {given.type} after others of type {kind}; give all of them one type"
        )
    return given


def concatenated(arrays: Iterable[pa.Array]) -> Iterator[pa.Array]:
    """Yields one array for each run of arrays of the same type."""
    for _, group in groupby(arrays, key=lambda array: array.type):
        parts = list(group)
        yield parts[0] if len(parts) == 1 else pa.concat_arrays(parts)


def of_values(values: Iterable[Any]) -> Iterator[pa.Array]:
    """Yields single ids as arrays; those that are Arrow scalars have a type already."""
    return concatenated(
        pa.array([value.as_py()], value.type) if isinstance(value, pa.Scalar) else pa.array([value]) for value in values
    )


def encode(ids: pa.Array) -> bytes:
    """Returns an array as bytes."""
    batch, sink = pa.RecordBatch.from_arrays([ids], [_COLUMN]), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def decode(data: bytes) -> pa.Array:
    """Returns the array that `encode` wrote.

    Raises:
        CheckpointError: the bytes are not an array.
    """
    try:
        with pa.ipc.open_stream(data) as reader:
            return reader.read_next_batch().column(0)
    except (pa.ArrowException, StopIteration, OSError) as error:
        raise CheckpointError(f"message ids in a spout log can't be read: {error}") from error
