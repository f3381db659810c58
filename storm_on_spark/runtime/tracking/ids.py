"""Root and edge ids.

A root id names a tuple that a spout emitted with a message id: the spout's task in the upper bits, a running number
in the lower ones. So the root alone tells an acker the spout task, consecutive roots spread evenly over the ackers, and
they sort fast.

The root id of a row that Spark reads itself says where that was: the highest bit, the spout's task, the
micro-batch, the partition of Spark's, and the row's place in it. So no process has to count rows, and a micro-batch
that is executed again gives each row the same root. The number of the micro-batch begins again after 2^20: no root is
open for that long.

An edge id names one delivery of a tuple. Edge ids must look random, since the acker knows a tree only by their XOR,
and they must be the same when Spark runs a task again. They come from SplitMix64 (Steele, Lea, Flood 2014), seeded by
what identifies the execution.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from storm_on_spark.runtime.values.hashing import mix64, stable_hash

U64Array = NDArray[np.uint64]

SEQUENCE_BITS = 44
"""A root id has 44 bits of running number (17 trillion messages a task), 19 bits of task, and a highest bit of 0."""

NATIVE_TASK_BITS, _BATCH_BITS, _PARTITION_BITS, _ROW_BITS = 11, 20, 9, 23
MOST_NATIVE_PARTITIONS = 1 << _PARTITION_BITS
"""Partitions in which Spark may read the rows of one native spout in a micro-batch."""
MOST_NATIVE_ROWS = 1 << _ROW_BITS
"""Rows in such a partition."""
_NATIVE = 1 << 63

_GAMMA = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


def root_base(task: int) -> int:
    """Returns the root id of a spout task's message number 0; 0 itself is never given to a message."""
    return task << SEQUENCE_BITS


def native_base(task: int, batch: int, partition: int) -> int:
    """Returns the root id of the first row that Spark reads in a partition of a micro-batch.

    Args:
        task: of the native spout; less than 2^11.
        batch: Spark's number of the micro-batch.
        partition: of Spark's; less than `MOST_NATIVE_PARTITIONS`.

    Example:
        >>> root = np.array([native_base(5, 7, 2) + 9, root_base(6) + 1], np.uint64)
        >>> spout_task_of(root).tolist(), is_native(root).tolist()
        ([5, 6], [True, False])
    """
    place = (batch & ((1 << _BATCH_BITS) - 1)) << _PARTITION_BITS | partition
    return _NATIVE | ((task << (_BATCH_BITS + _PARTITION_BITS)) | place) << _ROW_BITS


def is_native(roots: U64Array) -> NDArray[np.bool_]:
    """Returns for each root id whether it is of a row that Spark read itself."""
    native: NDArray[np.bool_] = roots >= np.uint64(_NATIVE)
    return native


def spout_task_of(roots: U64Array) -> U64Array:
    """Returns for each root id the spout task that emitted it."""
    tasks: U64Array = roots >> np.uint64(SEQUENCE_BITS)
    native = is_native(roots)
    if np.count_nonzero(native):
        own = roots >> np.uint64(_BATCH_BITS + _PARTITION_BITS + _ROW_BITS)
        tasks = np.where(native, own & np.uint64((1 << NATIVE_TASK_BITS) - 1), tasks)
    return tasks


def spout_task_of_root(root: int) -> int:
    """Returns the spout task that emitted a root which is no row of Spark's.

    Example:
        >>> spout_task_of_root(root_base(6) + 1)
        6
    """
    return root >> SEQUENCE_BITS


class EdgeRange:
    """Consecutive edge ids of one generator, as their start. A chunk has the start in place of the ids.

    Args:
        start: of the ids, or a function that returns it: edges that stay in a process are hardly ever looked at.
        size: how many there are.

    Example:
        >>> EdgeIds("q", 1, 7).take(3).ids().dtype, len(EdgeRange(5, 2).ids())
        (dtype('uint64'), 2)
    """

    __slots__ = ("_start", "size")

    def __init__(self, start: int | Callable[[], int], size: int) -> None:
        self._start = start
        self.size = size

    @property
    def start(self) -> int:
        """The state of the generator before the first of them."""
        if not isinstance(self._start, int):
            self._start = self._start()
        return self._start

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
        >>> EdgeIds("q", 1, 7).take(3).start == EdgeIds("q", 1, 7).take(3).start
        True
    """

    __slots__ = ("_first", "_seed", "_taken")

    def __init__(self, *seed: str | int) -> None:
        self._seed = seed
        #: Where the generator begins, once that is needed.
        self._first: int | None = None
        self._taken = 0

    @classmethod
    def behind(cls, seed: int, place: int) -> EdgeIds:
        """Returns a separate stream for each place, without the time that it takes to hash all parts of a seed.

        Args:
            seed: a hash of what the places belong to.
            place: less than 2^64.
        """
        ids = cls()
        ids._first = mix64(seed ^ mix64(place))
        return ids

    def take(self, count: int) -> EdgeRange:
        """Returns the next `count` ids."""
        taken = EdgeRange(partial(self._after, self._taken), count)
        self._taken += count
        return taken

    def _after(self, taken: int) -> int:
        """Returns the start of the ids that come after `taken` others."""
        if self._first is None:
            self._first = mix64(stable_hash(self._seed))
        return (self._first + taken * _GAMMA) & _MASK
