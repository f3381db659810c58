"""Columns of texts, packed.

Most values that topologies send are texts. Pickle remembers each object that it has seen, which takes most of its
time; to pack texts joined into one needs less. Where a column has few objects, each again and again, as a stream that
is grouped by its texts has, what pickle remembers saves it time: such a column stays as it is, and the reader gets as
few objects.
docs/decisions/optimisations.md says what this buys.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from storm_on_spark.runtime.values.frozen import Frozen, FrozenColumn, pack_frozen, unpack_frozen

_BETWEEN = "\0"
_SAMPLE = 1024
"""The number of texts by which a column is judged."""
Packed = list[Any] | bytes | FrozenColumn
"""A column as it is pickled: its values, joined texts, or values of which some are frozen."""


def pack_column(column: list[Any]) -> Packed:
    r"""Returns a column of different texts as bytes, any other as it is.

    Example:
        >>> pack_column(["storm", "spark"]), pack_column([1, "spark"])
        (b'storm\x00spark', [1, 'spark'])
    """
    types = set(map(type, column))
    if types != {str}:
        return pack_frozen(column) if Frozen in types else column
    sample = column[:_SAMPLE]
    if 2 * len(set(map(id, sample))) <= len(sample):
        return column
    joined = _BETWEEN.join(column)
    if joined.count(_BETWEEN) != len(column) - 1:
        return column
    return joined.encode("utf-8", "surrogatepass")


def unpack_column(packed: Packed) -> list[Any]:
    """Returns the values of a column."""
    if isinstance(packed, list):
        return packed
    if isinstance(packed, bytes):
        return packed.decode("utf-8", "surrogatepass").split(_BETWEEN)
    return unpack_frozen(packed)


def unpack_to_arrow(packed: Packed) -> pa.Array:
    """Returns the values of a column as an Arrow array; of joined texts without an object for each.

    Raises:
        pyarrow.ArrowInvalid: they have no common Arrow type.
    """
    if isinstance(packed, list):
        return pa.array(packed)
    assert isinstance(packed, bytes), "frozen values are thawed by row"
    try:
        packed.decode("utf-8")
    except UnicodeDecodeError:  # half of a pair of surrogates
        return pa.array(unpack_column(packed))
    return _arrow_texts(packed)


def _arrow_texts(joined: bytes) -> pa.StringArray:
    ends = np.flatnonzero(np.frombuffer(joined, np.uint8) == 0)
    offsets = np.empty(len(ends) + 2, np.int32)
    offsets[0] = 0
    offsets[1:-1] = ends - np.arange(len(ends))
    offsets[-1] = len(joined) - len(ends)
    data = joined.replace(_BETWEEN.encode(), b"")
    return pa.StringArray.from_buffers(len(ends) + 1, pa.py_buffer(offsets), pa.py_buffer(data))
