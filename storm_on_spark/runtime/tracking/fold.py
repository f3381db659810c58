"""Folding of reports about roots: one XOR and one set of marks for each root.

A spout numbers roots as it emits them, so the roots of one micro-batch lie close together, and a task that executes
tuples in order reports them in order. If both hold, the fold is arithmetic on arrays indexed by root number; otherwise
it sorts. See docs/decisions/optimisations.md for what this buys.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from storm_on_spark.runtime.tracking.ids import U64Array

U8Array = NDArray[np.uint8]

_MOST_GAPS = 8
"""Root numbers per root up to which an array indexed by root number is cheaper than sorting."""
_MOST_BREAKS = 64
"""The most positions in a part at which roots don't ascend; one between two senders is usual."""


class Fold(NamedTuple):
    """Reports about roots: `xors[i]` and `marks[i]` belong to `roots[i]`."""

    roots: U64Array
    xors: U64Array
    marks: U8Array


def fold(parts: Sequence[Fold]) -> Fold:
    """Returns the distinct roots, sorted, each with the XOR of its xors and the OR of its marks.

    Args:
        parts: the reports; a root may occur more than once.

    Example:
        >>> part = Fold(np.array([7, 7, 9], np.uint64), np.array([1, 2, 4], np.uint64), np.array([1, 0, 0], np.uint8))
        >>> [column.tolist() for column in fold([part, part])]
        [[7, 9], [0, 0], [1, 0]]
    """
    parts = [part for part in parts if len(part.roots)]
    if not parts:
        return Fold(np.empty(0, np.uint64), np.empty(0, np.uint64), np.empty(0, np.uint8))
    low = min(int(part.roots.min()) for part in parts)
    size = max(int(part.roots.max()) for part in parts) - low + 1
    if size > _MOST_GAPS * sum(len(part.roots) for part in parts):
        return _sorted(parts)
    runs: list[Fold] = []
    for part in parts:
        breaks = np.flatnonzero(part.roots[1:] < part.roots[:-1]) + 1
        if len(breaks) > _MOST_BREAKS:
            return _sorted(parts)
        bounds = [0, *breaks.tolist(), len(part.roots)]
        roots, xors, marks = part
        runs += [Fold(roots[start:end], xors[start:end], marks[start:end]) for start, end in pairwise(bounds)]
    return _by_number([_once(run) for run in runs], low, size)


def _once(part: Fold) -> Fold:
    """Returns a part whose roots ascend with each of them once."""
    changes = part.roots[1:] != part.roots[:-1]
    if changes.all():
        return part
    last = np.append(np.flatnonzero(changes), len(part.roots) - 1)
    # The XOR up to the last entry of a root and up to that of the root before it differ by the root's own.
    upto = np.bitwise_xor.accumulate(part.xors)[last]
    xors = upto.copy()
    xors[1:] ^= upto[:-1]
    if part.marks.any():
        marks = np.bitwise_or.reduceat(part.marks, np.concatenate(([0], last[:-1] + 1)))
    else:
        marks = part.marks[: len(last)]
    return Fold(part.roots[last], xors, marks)


def _by_number(parts: Sequence[Fold], low: int, size: int) -> Fold:
    xors, marks, seen = np.zeros(size, np.uint64), np.zeros(size, np.uint8), np.zeros(size, np.bool_)
    for part in parts:
        first, last = int(part.roots[0]) - low, int(part.roots[-1]) - low
        without_gaps = last - first + 1 == len(part.roots)
        at = slice(first, last + 1) if without_gaps else (part.roots - np.uint64(low)).astype(np.int64)
        xors[at] ^= part.xors
        seen[at] = True
        if part.marks.any():
            marks[at] |= part.marks
    found = np.flatnonzero(seen)
    roots = found.astype(np.uint64) + np.uint64(low)
    return Fold(roots, xors, marks) if len(found) == size else Fold(roots, xors[found], marks[found])


def _sorted(parts: Sequence[Fold]) -> Fold:
    roots, xors, marks = (np.concatenate(column) for column in zip(*parts, strict=True))
    # 'stable' is a merge sort: fast on the sorted runs that most parts are.
    order = np.argsort(roots, kind="stable")
    roots = roots[order]
    starts = np.flatnonzero(np.concatenate(([True], roots[1:] != roots[:-1])))
    return Fold(
        roots[starts],
        np.bitwise_xor.reduceat(xors[order], starts),
        np.bitwise_or.reduceat(marks[order], starts),
    )


def split_by_acker(ackers: tuple[int, ...], folded: Fold) -> Iterator[tuple[int, Fold]]:
    """Yields (acker task, its share) for all: root modulo the number of ackers, as Storm's fields grouping on the root.

    Empty shares are yielded too, because all ackers get receipts.
    """
    if len(ackers) == 1:
        yield ackers[0], folded
        return
    owner = folded.roots % np.uint64(max(1, len(ackers)))
    for index, task in enumerate(ackers):
        mine = owner == index
        yield task, Fold(*(column[mine] for column in folded))
