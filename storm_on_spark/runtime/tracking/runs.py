"""Outcomes of messages as runs, so that what passes the driver does not grow with the number of messages.

A spout numbers its messages, and an acker has every n-th of them, n being the number of ackers. So the roots that end
in a micro-batch are a few arithmetic progressions: one for each acker and spout task, where all messages in it ended
alike. The driver puts those of a task together, without looking at messages. The spout host makes roots of them again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from storm_on_spark.runtime.tracking.fold import U8Array
from storm_on_spark.runtime.tracking.ids import U64Array, spout_task_of


class Runs(NamedTuple):
    """Roots that ended, as progressions: `counts[i]` of them from `firsts[i]` on, `steps[i]` apart, with `codes[i]`.

    Each progression is of one spout task. Counts are from 1 on.

    Example:
        >>> runs = Runs.of(np.array([3, 5, 7, 8], np.uint64), np.zeros(4, np.uint8))
        >>> runs.firsts.tolist(), runs.counts.tolist(), runs.roots().tolist()
        ([3, 8], [3, 1], [3, 5, 7, 8])
    """

    firsts: U64Array
    steps: U64Array
    counts: U64Array
    codes: U8Array

    @classmethod
    def of(cls, roots: U64Array, codes: U8Array) -> Runs:
        """Returns roots with their outcomes, in the same order, as runs.

        All runs have the same step, the one that is most usual between two roots: what does not fit is a separate run.
        """
        if len(roots) < 2:
            ones = np.ones(len(roots), np.uint64)
            return cls(roots, ones, ones, codes)
        steps = np.diff(roots)
        step = np.partition(steps, len(steps) // 2)[len(steps) // 2]
        owners = spout_task_of(roots)
        breaks = (steps != step) | (codes[1:] != codes[:-1]) | (owners[1:] != owners[:-1])
        starts = np.concatenate(([0], np.flatnonzero(breaks) + 1))
        counts = np.diff(starts, append=len(roots)).astype(np.uint64)
        return cls(roots[starts], np.full(len(starts), step), counts, codes[starts])

    @classmethod
    def joined(cls, parts: Sequence[Runs]) -> Runs:
        """Returns the runs of several ackers as one, by their first roots."""
        if not parts:
            return NONE
        firsts, steps, counts, codes = (np.concatenate(column) for column in zip(*parts, strict=True))
        return cls(firsts, steps, counts, codes)._picked(np.argsort(firsts, kind="stable"))

    def _picked(self, which: NDArray[np.intp] | slice) -> Runs:
        return Runs(self.firsts[which], self.steps[which], self.counts[which], self.codes[which])

    def by_task(self) -> Iterator[tuple[int, Runs]]:
        """Yields (spout task, its runs) of runs that are in the order of their first roots."""
        owners = spout_task_of(self.firsts)
        if len(owners) < 2:
            yield from ((int(owner), self) for owner in owners)
            return
        starts = np.flatnonzero(np.concatenate(([True], owners[1:] != owners[:-1])))
        for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(owners)], strict=True):
            yield int(owners[start]), self._picked(slice(start, end))._as_one()

    def _as_one(self) -> Runs:
        """Returns runs of one task in their order as one run, if they are the shares of ackers in consecutive roots."""
        number = len(self.firsts)
        if number == 1 or (self.codes != self.codes[0]).any():
            return self
        places = np.arange(number, dtype=np.uint64)
        if (self.firsts - self.firsts[0] != places).any():
            return self
        # Consecutive first roots: run i has the roots i, i + step, ... of `total`.
        total = self.counts.sum()
        longer = self.counts > 1
        step = self.steps[longer][0] if longer.any() else np.uint64(number)
        shares = (total - places + step - np.uint64(1)) // step
        if number > step or (self.counts != shares).any() or (self.steps[longer] != step).any():
            return self
        one = np.ones(1, np.uint64)
        return Runs(self.firsts[:1], one, one * total, self.codes[:1])

    def roots(self) -> U64Array:
        """Returns all roots, run after run."""
        counts = self.counts.astype(np.int64)
        if len(counts) == counts.sum():
            return self.firsts
        starts = np.cumsum(counts) - counts
        places = np.arange(counts.sum(), dtype=np.uint64) - np.repeat(starts, counts).astype(np.uint64)
        roots: U64Array = places * np.repeat(self.steps, counts) + np.repeat(self.firsts, counts)
        return roots

    def each_code(self) -> U8Array:
        """Returns the outcome of each root, in the order of `roots`."""
        return np.repeat(self.codes, self.counts.astype(np.int64))


NONE = Runs.of(np.empty(0, np.uint64), np.empty(0, np.uint8))
"""No roots."""
