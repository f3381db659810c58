"""Message ids of a `BatchSpout`: Arrow arrays, in any form that people have them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa

from storm_on_spark.api.errors import CheckpointError

_COLUMN = "message_id"


def as_array(ids: Any) -> pa.Array:
    """Returns message ids as an Arrow array.

    Raises:
        pyarrow.ArrowException, TypeError, ValueError: they have no common Arrow type, or are no sequence.

    Example:
        >>> as_array(np.array([3, 4])).to_pylist(), as_array(["a", None]).null_count
        ([3, 4], 1)
    """
    if isinstance(ids, pa.Array):
        return ids
    if isinstance(ids, pa.ChunkedArray):
        return pa.concat_arrays(ids.chunks) if ids.num_chunks else pa.array([], ids.type)
    # What is numpy's may be written to again.
    return pa.array(ids.copy() if isinstance(ids, np.ndarray) else list(ids))


def joined(arrays: Iterable[pa.Array]) -> Iterator[pa.Array]:
    """Yields neighbours of the same type as one array each."""
    for _, group in groupby(arrays, key=lambda array: array.type):
        parts = list(group)
        yield parts[0] if len(parts) == 1 else pa.concat_arrays(parts)


def of_values(values: Iterable[Any]) -> Iterator[pa.Array]:
    """Yields single ids as arrays; those that are Arrow scalars have a type already."""
    return joined(
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
        CheckpointError: the bytes are none.
    """
    try:
        with pa.ipc.open_stream(data) as reader:
            return reader.read_next_batch().column(0)
    except (pa.ArrowException, StopIteration, OSError) as error:
        raise CheckpointError(f"message ids in a spout log can't be read: {error}") from error
