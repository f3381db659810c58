"""The trees that tuples belong to: per tuple its roots and its edge.

Most tuples are acked in the micro-batch in which they were emitted. Then roots and edges are only passed on, so they
stay packed until they are read. The roots of a few tuples are a list: numpy takes longer to begin than to count them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from storm_on_spark.api.tuple import Delivery
from storm_on_spark.runtime.tracking.acker import FAIL
from storm_on_spark.runtime.tracking.fold import Fold
from storm_on_spark.runtime.tracking.ids import U64Array

Roots = U64Array | list[Any]
"""Per tuple its root: an array (0 = unanchored), or a list of ints and tuples of ints."""

UNANCHORED = -1
"""Anchor of a tuple without roots. It indexes the zero after the roots of all input."""

FEW = 32
"""Tuples up to which roots are a list: of one tuple they take a fifth of the time of an array, of 32 as long."""

_NO_ROOT = np.zeros(1, np.uint64)
_NO_ROOT.setflags(write=False)

Anchor = int | tuple[int, ...]
"""Position of the input tuple that an emitted one is anchored to, or the root ids themselves."""


class PackedLineage:
    """Roots and edges of tuples that travel together.

    Args:
        roots: returns per tuple its roots.
        edges: returns per tuple its edge id.
        reported: whether the edges have been reported to the ackers (see `InputLineage.report`).
    """

    __slots__ = ("_edges", "_roots", "_unpack_edges", "_unpack_roots", "reported")

    def __init__(self, roots: Callable[[], Roots], edges: Callable[[], U64Array], reported: bool = False) -> None:
        self._unpack_roots, self._unpack_edges = roots, edges
        self._roots: Roots | None = None
        self._edges: U64Array | None = None
        self.reported = reported

    @property
    def roots(self) -> Roots:
        """Per tuple its roots."""
        if self._roots is None:
            self._roots = self._unpack_roots()
        return self._roots

    @property
    def edges(self) -> U64Array:
        """Per tuple its edge id."""
        if self._edges is None:
            self._edges = self._unpack_edges()
        return self._edges


class InputLineage:
    """Roots and edges of all tuples of one execution of a task.

    Args:
        deliveries: the deliveries, each with its number of tuples.
    """

    def __init__(self, deliveries: Sequence[tuple[Delivery, int]]) -> None:
        self._parts = [(delivery.lineage, size) for delivery, size in deliveries]
        self.size = sum([size for _, size in self._parts])
        self.anchored = any(lineage is not None for lineage, _ in self._parts)
        self._roots: Roots | None = None

    @property
    def roots(self) -> Roots:
        """Per tuple its roots, and a zero at the end; only the zero if no tuple is anchored."""
        if self._roots is None:
            self._roots = self._joined_roots() if self.anchored else _NO_ROOT
        return self._roots

    def _joined_roots(self) -> Roots:
        if self.size <= FEW:
            few: list[Any] = []
            for lineage, size in self._parts:
                roots = [0] * size if lineage is None else lineage.roots
                few += roots.tolist() if isinstance(roots, np.ndarray) else roots
            few.append(0)
            return few
        parts: list[Sequence[Any] | U64Array] = [
            np.zeros(size, np.uint64) if lineage is None else _as_array(lineage.roots) for lineage, size in self._parts
        ]
        parts.append(_NO_ROOT)
        if all(isinstance(part, np.ndarray) for part in parts):
            return np.concatenate(parts)
        return [root for part in parts for root in (part.tolist() if isinstance(part, np.ndarray) else part)]

    @property
    def edges(self) -> U64Array:
        """Per tuple its edge id; 0 for an unanchored one."""
        return np.concatenate(
            [np.zeros(size, np.uint64) if lineage is None else lineage.edges for lineage, size in self._parts]
        )

    def _reported(self) -> NDArray[np.bool_] | None:
        """Returns which edges have been reported to the ackers; None for none."""
        reported = [lineage is not None and lineage.reported for lineage, _ in self._parts]
        return np.repeat(reported, [size for _, size in self._parts]) if any(reported) else None

    def report(self, acked: Sequence[int] | None, failed: Sequence[int]) -> list[Fold]:
        """Returns the report for the ackers.

        An edge enters the XOR twice: when its tuple is emitted and when it is acked. If both happen in one micro-batch,
        the edge need not be reported. So the task that executes a tuple reports its edge only if it does *not* ack the
        tuple. If the edge was reported before, because the tuple comes from an earlier micro-batch, the task reports it
        again when it acks the tuple.

        Args:
            acked: positions of the tuples that were acked; None for all that did not fail.
            failed: positions of those that failed.
        """
        if not self.anchored:
            return []
        folds = []
        reported = self._reported()
        if reported is not None or len(failed) or (acked is not None and len(acked) < self.size):
            done = np.full(self.size, acked is None)
            done[np.asarray(failed if acked is None else acked, np.int64)] = acked is not None
            folds.append(self._fold(np.flatnonzero(~done if reported is None else done == reported), 0))
        if len(failed):
            folds.append(self._fold(np.asarray(failed, np.int64), FAIL))
        return folds

    def _fold(self, positions: NDArray[np.int64], mark: int) -> Fold:
        roots = self.roots
        chosen = [roots[i] for i in positions.tolist()] if isinstance(roots, list) else roots[positions]
        pairs = contributions(chosen, self.edges[positions])
        return marked(pairs[0], mark, xors=None if mark else pairs[1])


def _as_array(roots: Roots) -> Roots:
    """Returns a list of single roots as an array."""
    if isinstance(roots, list) and not any(isinstance(root, tuple) for root in roots):
        return np.array(roots, np.uint64)
    return roots


def marked(roots: U64Array, mark: int, xors: U64Array | None = None) -> Fold:
    """Returns a fold with one mark for all roots; xors are zero for None."""
    return Fold(roots, np.zeros(len(roots), np.uint64) if xors is None else xors, np.full(len(roots), mark, np.uint8))


def consecutive(begin: int, count: int) -> Roots:
    """Returns the roots of this many messages from `begin` on, and a zero after them.

    Example:
        >>> consecutive(5, 2)
        [5, 6, 0]
    """
    if count <= FEW:
        return [*range(begin, begin + count), 0]
    roots = np.arange(begin, begin + count + 1, dtype=np.uint64)
    roots[count] = 0
    return roots


def resolve(anchors: Sequence[Anchor] | NDArray[np.int64], roots: Roots) -> Roots | None:
    """Returns per emitted tuple its roots, or None when all are unanchored.

    Args:
        anchors: of each tuple.
        roots: of each input tuple, a zero after the last; only the zero if none is anchored.
    """
    if not isinstance(roots, list):
        try:
            positions = np.asarray(anchors, dtype=np.int64)
        except (TypeError, ValueError, OverflowError):
            pass  # some anchors are root ids
        else:
            if positions.ndim == 1:
                if len(roots) == 1:
                    return None
                found = roots[positions]
                return found if np.count_nonzero(found) else None
    listed = [anchor if isinstance(anchor, tuple) else roots[anchor] for anchor in anchors]
    if len(listed) <= FEW:
        few = [root if isinstance(root, tuple) else int(root) for root in listed]
        return few if any(few) else None
    if all(isinstance(root, (int, np.integer)) for root in listed):
        flat = np.array(listed, dtype=np.uint64)
        return flat if flat.any() else None
    return [root if isinstance(root, tuple) else int(root) for root in listed]


def contributions(roots: Roots, edges: U64Array) -> tuple[U64Array, U64Array]:
    """Returns (roots, edges) with one entry for each root of each tuple."""
    if not isinstance(roots, list):
        anchored = roots != 0
        whole = np.count_nonzero(anchored) == len(roots)
        return (roots, edges) if whole else (roots[anchored], edges[anchored])
    pairs = [
        (root, edge)
        for tuple_roots, edge in zip(roots, edges.tolist(), strict=True)
        for root in (tuple_roots if isinstance(tuple_roots, tuple) else (tuple_roots,))
        if root
    ]
    flat = np.array(pairs, dtype=np.uint64).reshape(-1, 2)
    return flat[:, 0], flat[:, 1]
