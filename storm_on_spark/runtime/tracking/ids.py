"""Root and edge ids.

A root id names a tuple that a spout emitted with a message id: the spout's task in the upper bits, a running number
in the lower ones. So the root alone tells an acker the spout task, consecutive roots spread evenly over the ackers, and
they sort fast.

An edge id names one delivery of a tuple. Edge ids must look random, since the acker knows a tree only by their XOR,
and they must be the same when Spark runs a task again. They come from SplitMix64 (Steele, Lea, Flood 2014), seeded by
what identifies the execution.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from storm_on_spark.runtime.values.hashing import mix64, stable_hash

U64Array = NDArray[np.uint64]

SEQUENCE_BITS = 44
"""A root id has 44 bits of running number (17 trillion messages a task) and 20 bits of task."""

_GAMMA = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


def root_base(task: int) -> int:
    """Returns the root id of a spout task's message number 0; 0 itself is never given to a message."""
    return task << SEQUENCE_BITS


def spout_task_of(roots: U64Array) -> U64Array:
    """Returns for each root id the spout task that emitted it."""
    tasks: U64Array = roots >> np.uint64(SEQUENCE_BITS)
    return tasks


class EdgeRange(NamedTuple):
    """Consecutive edge ids of one generator, as their start. A chunk has the start in place of the ids.

    Example:
        >>> EdgeIds("q", 1, 7).take(3).ids().dtype, len(EdgeRange(5, 2).ids())
        (dtype('uint64'), 2)
    """

    start: int
    size: int

    def ids(self) -> U64Array:
        """Returns the ids, uint64."""
        steps: U64Array = np.arange(self.size, dtype=np.uint64) * np.uint64(_GAMMA) + np.uint64(self.start)
        steps ^= steps >> np.uint64(30)
        steps *= np.uint64(0xBF58476D1CE4E5B9)
        steps ^= steps >> np.uint64(27)
        steps *= np.uint64(0x94D049BB133111EB)
        steps ^= steps >> np.uint64(31)
        return steps


class EdgeIds:
    """A stream of 64-bit edge ids, the same for the same seed parts.

    Args:
        seed: what identifies the execution, for example (query, batch, task).

    Example:
        >>> EdgeIds("q", 1, 7).take(3) == EdgeIds("q", 1, 7).take(3)
        True
    """

    __slots__ = ("_next",)

    def __init__(self, *seed: str | int) -> None:
        self._next = mix64(stable_hash(seed))

    def take(self, count: int) -> EdgeRange:
        """Returns the next `count` ids."""
        taken = EdgeRange(self._next, count)
        self._next = (self._next + count * _GAMMA) & _MASK
        return taken
