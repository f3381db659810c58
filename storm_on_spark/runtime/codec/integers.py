"""Columns of integers as few bytes.

Pickle takes 3 or 5 bytes for an integer that is not small, and every byte into the state store passes the JVM and is
written to disk. So a column is a first value and the distances from it, or from each value to the next, in the smallest
integers that hold them all. See docs/decisions/optimisations.md for what this buys.
"""

from __future__ import annotations

import numpy as np

from storm_on_spark.api.errors import CheckpointError

_LEAST = 1024
"""A shorter column is pickled, because numpy has a fixed cost per column."""
_WIDTHS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}

PackedInts = tuple[int, int, int, bytes]
"""Form, first value, step, data. Form 0: the values are `first`, `first + step`, ...; form w: those of the data, w
bytes each, added to `first`; form -w: each is the one before, and `step`, and one of the data."""


def pack_ints(column: list[int]) -> PackedInts | None:
    """Returns a column of `int` and of nothing else as bytes; None where pickle does as well.

    Example:
        >>> pack_ints(list(range(7, 2007)))
        (0, 7, 1, b'')
        >>> width, least, _, data = pack_ints([5000, 5001, 5255] * 1000)
        >>> width, least, len(data), unpack_ints((width, least, 0, data), 3000)[:3]
        (1, 5000, 3000, [5000, 5001, 5255])
    """
    if len(column) < _LEAST:
        return None
    try:
        values = np.array(column, np.int64)
    except OverflowError:
        return None
    low, high = int(values.min()), int(values.max())
    width = _width(high - low)
    if high - low < 1 << 63:  # else differences leave the range of int64
        steps = np.diff(values)
        least, most = int(steps.min()), int(steps.max())
        if least == most:
            return 0, int(values[0]), least, b""
        if (narrow := _width(most - least)) < width:
            return -narrow, int(values[0]), least, (steps - least).astype(_WIDTHS[narrow]).tobytes()
    # Modulo 2**64, as the addition that undoes it.
    return width, low, 0, (values.view(np.uint64) - np.uint64(low % (1 << 64))).astype(_WIDTHS[width]).tobytes()


def _width(most: int) -> int:
    return next(width for width in _WIDTHS if most < 1 << 8 * width)


def unpack_ints(packed: PackedInts, size: int) -> list[int]:
    """Returns `size` integers that `pack_ints` packed.

    Raises:
        CheckpointError: the column is damaged.
    """
    form, first, step, data = packed
    width, count = abs(form), size - (form < 0)
    if size < 1 or (width and width not in _WIDTHS) or len(data) != width * count:
        raise CheckpointError(f"a column of {size} integers in form {form} has {len(data)} bytes")
    if form == 0:
        values = np.arange(size, dtype=np.uint64) * np.uint64(step % (1 << 64))
    elif form > 0:
        values = np.frombuffer(data, _WIDTHS[width]).astype(np.uint64)
    else:
        values = np.zeros(size, np.uint64)
        steps = np.frombuffer(data, _WIDTHS[width]).astype(np.uint64)
        np.cumsum(steps + np.uint64(step % (1 << 64)), out=values[1:])
    values += np.uint64(first % (1 << 64))
    unpacked: list[int] = values.view(np.int64).tolist()
    return unpacked
