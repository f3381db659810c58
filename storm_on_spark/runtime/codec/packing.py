"""Arrays of ids and marks, packed.

Every byte between two stages passes the JVM, which takes some 6 ns for it, more than it takes here to save it. Roots in
a chunk ascend, most by one; marks are mostly equal. So an array is its first value and the differences, in the smallest
integers that hold them all, or a single difference.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.runtime.tracking.ids import U64Array
from storm_on_spark.runtime.tracking.runs import Runs

U8Array = NDArray[np.uint8]

_HEAD = struct.Struct("<BQ")
_STEP = struct.Struct("<Q")
_WIDTHS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_EQUAL, _EACH = 0, 1
_MOST = (1 << 64) - 1
STEADY_BYTES = _HEAD.size + _STEP.size
"""What ids take that have all the same difference."""


def pack_ids(ids: U64Array) -> bytes:
    """Returns an array of uint64 as bytes: about one an id if they ascend by less than 256, at most eight and a head.

    Example:
        >>> ids = np.array([7, 8, 8, 9], np.uint64)
        >>> len(pack_ids(ids)), unpack_ids(memoryview(pack_ids(ids)), 4)[0].tolist()
        (12, [7, 8, 8, 9])
    """
    if len(ids) == 0:
        return b""
    first = int(ids[0])
    if len(ids) == 1:
        return _HEAD.pack(0, first) + _STEP.pack(0)
    steps = np.diff(ids)  # modulo 2**64
    if (steps == steps[0]).all():
        return _HEAD.pack(0, first) + _STEP.pack(int(steps[0]))
    most = int(steps.max())
    width = next(width for width in _WIDTHS if most < 1 << 8 * width)
    return _HEAD.pack(width, first) + steps.astype(_WIDTHS[width]).tobytes()


def pack_steady(ids: Sequence[Any]) -> bytes | None:
    """Returns a few ids as `pack_ids` packs them if all have the same difference; None otherwise, or for tuples of ids.

    Example:
        >>> pack_steady([7, 8, 9]) == pack_ids(np.array([7, 8, 9], np.uint64)), pack_steady([7, 8, 8])
        (True, None)
    """
    first = ids[0]
    if len(ids) == 1:
        return _HEAD.pack(0, first) + _STEP.pack(0) if first.__class__ is int else None
    try:
        step = ids[1] - first
        for one, other in pairwise(ids):
            if other - one != step:
                return None
    except TypeError:
        return None
    return _HEAD.pack(0, first) + _STEP.pack(step & _MOST)


def pack_range(ids: range) -> bytes:
    """Returns a range of ids as `pack_ids` packs them."""
    return _HEAD.pack(0, ids[0]) + _STEP.pack(ids.step if len(ids) > 1 else 0) if ids else b""


def unpack_steady(view: memoryview, count: int) -> list[int] | None:
    """Returns ids that `pack_ids` packed as a list, if all have the same difference, or else None.

    Raises:
        CheckpointError: the bytes are cut short.
    """
    width, first = _HEAD.unpack_from(_at_least(view, _HEAD.size))
    if width:
        return None
    if count == 1:
        return [first]
    (step,) = _STEP.unpack_from(_at_least(view, _HEAD.size + _STEP.size), _HEAD.size)
    return [(first + place * step) & _MOST for place in range(count)]


def unpack_ids(view: memoryview, count: int) -> tuple[U64Array, memoryview]:
    """Returns `count` ids that `pack_ids` packed, and the bytes after them.

    Raises:
        CheckpointError: the bytes are cut short or damaged.
    """
    if count == 0:
        return np.empty(0, np.uint64), view
    width, first = _HEAD.unpack_from(_at_least(view, _HEAD.size))
    view = view[_HEAD.size :]
    if width == 0:
        (step,) = _STEP.unpack_from(_at_least(view, _STEP.size))
        if count == 1:
            return np.array([first], np.uint64), view[_STEP.size :]
        return np.arange(count, dtype=np.uint64) * np.uint64(step) + np.uint64(first), view[_STEP.size :]
    if width not in _WIDTHS:
        raise CheckpointError(f"ids in a chunk are {width} bytes wide; allowed are 0, {', '.join(map(str, _WIDTHS))}")
    size = width * (count - 1)
    # Checked before memory is allocated: a damaged count may be huge.
    steps = np.frombuffer(_at_least(view, size)[:size], _WIDTHS[width])
    ids = np.empty(count, np.uint64)
    ids[0] = 0
    np.cumsum(steps, dtype=np.uint64, out=ids[1:])
    ids += np.uint64(first)
    return ids, view[size:]


def pack_marks(marks: U8Array) -> bytes:
    """Returns an array of uint8 as bytes: two if all are equal."""
    if len(marks) == 0:
        return b""
    if (marks == marks[0]).all():
        return equal_marks(int(marks[0]))
    return bytes((_EACH,)) + marks.tobytes()


def equal_marks(mark: int) -> bytes:
    """Returns marks as `pack_marks` packs them if all are this one."""
    return bytes((_EQUAL, mark))


def unpack_marks(view: memoryview, count: int) -> tuple[U8Array, memoryview]:
    """Returns `count` marks that `pack_marks` packed, and the bytes after them.

    Raises:
        CheckpointError: the bytes are cut short or damaged.
    """
    if count == 0:
        return np.empty(0, np.uint8), view
    kind = _at_least(view, 2)[0]
    if kind == _EQUAL:
        return np.full(count, view[1], np.uint8), view[2:]
    if kind != _EACH:
        raise CheckpointError(f"marks in a chunk are of kind {kind}; allowed are {_EQUAL} and {_EACH}")
    return np.frombuffer(_at_least(view, 1 + count)[1 : 1 + count], np.uint8), view[1 + count :]


def pack_runs(runs: Runs) -> bytes:
    """Returns runs as bytes."""
    ids = (runs.firsts, runs.steps, runs.counts)
    return b"".join((*map(pack_ids, ids), pack_marks(runs.codes)))


def unpack_runs(view: memoryview, count: int, total: int) -> tuple[Runs, memoryview]:
    """Returns `count` runs that `pack_runs` packed, and the bytes after them.

    Args:
        view: the bytes.
        count: of runs.
        total: how many roots are in them.

    Raises:
        CheckpointError: the bytes are cut short or damaged.
    """
    firsts, view = unpack_ids(view, count)
    steps, view = unpack_ids(view, count)
    counts, view = unpack_ids(view, count)
    codes, view = unpack_marks(view, count)
    # Checked before there is memory for the roots: a damaged count may be huge.
    if int(counts.sum()) != total or (counts > total).any() or not counts.all():
        raise CheckpointError(f"runs in a chunk have {int(counts.sum())} roots, not {total}")
    return Runs(firsts, steps, counts, codes), view


def _at_least(view: memoryview, size: int) -> memoryview:
    if len(view) < size:
        raise CheckpointError(f"a chunk is cut short: {len(view)} bytes are left of {size}")
    return view
