"""A spout task's messages that are neither acked nor failed.

They are kept in blocks. A block has the messages that were emitted between two cuts, in order: a list of ids and a list
of times. An emit appends to both lists, and the outcomes of a micro-batch are looked up block by block.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from storm_on_spark.runtime.tracking.done import DoneMessages

Numbers = NDArray[np.int64]

LEAST = 64
FEW = 8
"""If at most one message in this many is still pending, a block keeps only the pending ones."""


class Ended(NamedTuple):
    """Messages that have just been acked, failed or timed out."""

    ids: Any
    """Their ids: a list, or the Arrow array that they were part of."""
    times: Any
    """When they were emitted, in seconds: a list or an array."""
    where: Numbers
    """Their positions among the requested numbers."""


class _Block:
    """Consecutive messages.

    Args:
        first: the number of the first.
        ids: a list or an Arrow array.
        times: as many.
        pending: how many of them are neither acked nor failed.
    """

    __slots__ = ("_numbers", "first", "ids", "pending", "times")

    def __init__(self, first: int, ids: Any, times: Sequence[float] | NDArray[np.float64], pending: int) -> None:
        self.first = first
        self.ids = ids
        self.times = times
        self.pending = pending
        #: The numbers, ascending, once there are gaps between them.
        self._numbers: Numbers | None = None

    @property
    def end(self) -> int:
        """One more than the last number."""
        return self.first + len(self.ids) if self._numbers is None else int(self._numbers[-1]) + 1

    def numbers(self) -> Numbers:
        """Returns the numbers of its messages, including those that have ended."""
        return np.arange(self.first, self.end) if self._numbers is None else self._numbers

    def select(self, numbers: Numbers) -> tuple[Any, Any]:
        """Returns ids and times of messages of this block."""
        if len(numbers) == len(self.ids):
            return self.ids, self.times
        indices = numbers - self.first if self._numbers is None else np.searchsorted(self._numbers, numbers)
        if isinstance(self.ids, list):
            chosen = indices.tolist()
            return [self.ids[index] for index in chosen], [self.times[index] for index in chosen]
        return self.ids.take(indices), np.asarray(self.times)[indices]

    def one(self, number: int) -> tuple[Any, float]:
        """Returns id and time of a message of this block."""
        index = number - self.first if self._numbers is None else int(np.searchsorted(self._numbers, number))
        return self.ids[index], float(self.times[index])

    def keep(self, numbers: Numbers) -> None:
        """Keeps only these messages."""
        self.ids, self.times = self.select(numbers)
        self._numbers = numbers


class PendingMessages:
    """Pending messages by number, ascending.

    Args:
        low: the first number that may be pending in the log.
        bits: which from there on are done, as `saved` said.
        old: ids by number of those before `low`, as `saved` said.
        now: seconds, for how old these are.
        following: the number of the next message.

    Example:
        >>> pending = PendingMessages()
        >>> pending.ids += ["a", "b", "c"]
        >>> pending.times += [0.0, 0.0, 1.0]
        >>> len(pending), pending.following
        (3, 4)
        >>> [(ended.ids, ended.times) for ended in pending.end(np.array([1, 3]))]
        [(['a', 'c'], [0.0, 1.0])]
        >>> list(pending.items())
        [(2, 'b')]
    """

    def __init__(
        self,
        low: int = 1,
        bits: bytes = b"",
        old: Mapping[int, Any] | None = None,
        now: float = 0.0,
        following: int = 1,
    ) -> None:
        self._done = DoneMessages(low, bits)
        #: Those whose ids are no longer in the log: number -> (id, time).
        self._old = {number: (message_id, now) for number, message_id in (old or {}).items()}
        self._floor = low
        self._blocks: list[_Block] = []
        self._firsts: list[int] = []
        #: Of all blocks but the open one.
        self._pending_in_blocks = 0
        #: The open block: messages since the last `close_block`. An emit appends to both.
        self.first = following
        self.ids: list[Any] = []
        self.times: list[float] = []
        self._ended = 0

    @property
    def following(self) -> int:
        """The number of the next message."""
        return self.first + len(self.ids)

    def __len__(self) -> int:
        return len(self._old) + self._pending_in_blocks + len(self.ids) - self._ended

    def close_block(self) -> None:
        """Begins a new block. The lists of the previous one must not be changed afterwards."""
        if self.ids:
            self._add(_Block(self.first, self.ids, self.times, len(self.ids) - self._ended))
        self.first = self.following
        self.ids, self.times, self._ended = [], [], 0

    def append(self, ids: Any, times: NDArray[np.float64]) -> None:
        """Adds a block of new messages.

        Args:
            ids: an Arrow array.
            times: when each was emitted.
        """
        self.close_block()
        self._add(_Block(self.first, ids, times, len(ids)))
        self.first += len(ids)

    def merge_blocks(self, first: int, ids: Any) -> None:
        """Makes the blocks from message `first` on one.

        Args:
            first: where a block begins; all from there on are pending.
            ids: of all of them.
        """
        index = bisect_right(self._firsts, first) - 1
        times = np.concatenate([block.times for block in self._blocks[index:]])
        del self._blocks[index:], self._firsts[index:]
        self._pending_in_blocks -= len(ids)
        self._add(_Block(first, ids, times, len(ids)))

    def add_logged(self, first: int, ids: Any, now: float) -> None:
        """Adds those of a cut that are pending, from the log."""
        pending = int(self._done.pending(np.arange(first, first + len(ids))).sum())
        self._add(_Block(first, ids, np.full(len(ids), now), pending))

    def _add(self, block: _Block) -> None:
        if block.pending:
            self._blocks.append(block)
            self._firsts.append(block.first)
            self._pending_in_blocks += block.pending

    def end(self, numbers: Numbers) -> Iterator[Ended]:
        """Yields those that are pending among `numbers`, which ascend; they count as ended once they are out."""
        for index in range(int(np.searchsorted(numbers, self._done.low))) if self._old else ():
            entry = self._old.pop(int(numbers[index]), None)
            if entry is not None:
                yield Ended([entry[0]], [entry[1]], np.array([index]))
        known = numbers[: np.searchsorted(numbers, self.following)]
        where = np.flatnonzero(self._done.pending(known))
        numbers = known[where]
        self._done.finish(numbers)
        position = 0
        while position < len(numbers):
            first = int(numbers[position])
            if first >= self.first:
                ids, times = _Block(self.first, self.ids, self.times, 0).select(numbers[position:])
                self._ended += len(numbers) - position
                yield Ended(ids.copy() if ids is self.ids else ids, times, where[position:])
                return
            block = self._blocks[bisect_right(self._firsts, first) - 1]
            stop = int(np.searchsorted(numbers, block.end))
            ids, times = block.select(numbers[position:stop])
            self._take(block, stop - position)
            yield Ended(ids, times, where[position:stop])
            position = stop

    def end_one(self, number: int) -> tuple[Any, float] | None:
        """Ends one message, as `end` does many; returns its id and when it was emitted, or None if it isn't pending.

        Example:
            >>> pending = PendingMessages()
            >>> pending.ids.append("a")
            >>> pending.times.append(2.5)
            >>> pending.end_one(1), pending.end_one(1), len(pending)
            (('a', 2.5), None, 0)
        """
        if number < self._done.low:
            return self._old.pop(number, None)
        if number >= self.following or self._done.is_done(number):
            return None
        self._done.finish_one(number)
        if number >= self.first:
            self._ended += 1
            return self.ids[number - self.first], self.times[number - self.first]
        block = self._blocks[bisect_right(self._firsts, number) - 1]
        ended = block.one(number)
        self._take(block, 1)
        return ended

    def _take(self, block: _Block, count: int) -> None:
        block.pending -= count
        self._pending_in_blocks -= count
        if block.pending == 0:
            index = bisect_right(self._firsts, block.first) - 1
            del self._blocks[index], self._firsts[index]
        elif len(block.ids) > max(LEAST, FEW * block.pending):
            numbers = block.numbers()
            block.keep(numbers[self._done.pending(numbers)])

    def items(self) -> Iterator[tuple[int, Any]]:
        """Yields number and id of each."""
        for number, (message_id, _) in self._old.items():
            yield number, message_id
        for block in [*self._blocks, _Block(self.first, self.ids, self.times, 0)]:
            numbers = block.numbers()
            numbers = numbers[self._done.pending(numbers)]
            yield from zip(numbers.tolist(), block.select(numbers)[0], strict=True)

    def leave_log(self, floor: int, most: int) -> bool:
        """Keeps the ids of messages before `floor` here instead of in the log, unless they are too many.

        Args:
            floor: where a block begins.
            most: how many they may be.

        Returns:
            Whether the result of `saved` has changed.
        """
        count = bisect_right(self._firsts, floor - 1)
        blocks = self._blocks[:count]
        if floor <= self._floor or len(self._old) + sum(block.pending for block in blocks) > most:
            return False
        self._floor = floor
        for block in blocks:
            numbers = block.numbers()
            numbers = numbers[self._done.pending(numbers)]
            for number, message_id, when in zip(numbers.tolist(), *block.select(numbers), strict=True):
                self._old[number] = message_id, when
            self._pending_in_blocks -= block.pending
        del self._blocks[:count], self._firsts[:count]
        self._done.skip(floor)
        return True

    def saved(self) -> tuple[dict[int, Any], int, bytes]:
        """Returns the part of a snapshot from which the constructor restores this.

        It has the ids of old messages, the number of the first pending one whose id is in the log, and one bit for each
        message from there on: whether it has ended.
        """
        low = self._done.advance(self.following)
        old = {number: message_id for number, (message_id, _) in self._old.items()}
        return old, low, self._done.done(self.following)
