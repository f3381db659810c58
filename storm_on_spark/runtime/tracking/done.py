"""Which of a spout task's messages are done.

A snapshot of a spout has one bit for every message from the first pending one on. To look up each pending message would
take much of a spout's time, so the bits are kept in an array, to which a micro-batch's outcomes are written at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_LEAST = 1024


class DoneMessages:
    """A byte for each message number from `low` on; all before `low` are done.

    Args:
        low: the first number that may be pending.
        bits: `done` of an earlier one.

    Example:
        >>> messages = DoneMessages(1)
        >>> messages.finish(np.array([1, 3]))
        >>> messages.advance(5), messages.done(5) == DoneMessages(2, messages.done(5)).done(5)
        (2, True)
    """

    def __init__(self, low: int, bits: bytes = b"") -> None:
        self.low = low
        self._done = np.unpackbits(np.frombuffer(bits, np.uint8))

    def finish(self, numbers: NDArray[np.int64]) -> None:
        """Notes that messages are done, in ascending order; numbers before `low` are ignored."""
        if len(numbers) == 0:
            return
        indices = numbers - self.low
        self._reach(int(indices[-1]) + 1)
        self._done[indices if indices[0] >= 0 else indices[indices >= 0]] = 1

    def finish_one(self, number: int) -> None:
        """Notes that one message is done, which is not before `low`."""
        self._reach(number - self.low + 1)
        self._done[number - self.low] = 1

    def is_done(self, number: int) -> bool:
        """Returns whether a message from `low` on is done."""
        index = number - self.low
        return index < len(self._done) and bool(self._done[index])

    def advance(self, end: int) -> int:
        """Moves `low` to the first message that is pending, or to `end`, and returns it.

        Args:
            end: the number that the next message will get.
        """
        count = end - self.low
        self._reach(count)
        done = self._done[:count]
        self.skip(self.low + (count if done.all() else int(done.argmin())))
        return self.low

    def skip(self, low: int) -> None:
        """Forgets all messages before `low`."""
        self._done = self._done[max(0, low - self.low) :]
        self.low = max(low, self.low)

    def done(self, end: int) -> bytes:
        """Returns a bit for each message from `low` up to `end`; nothing if all are pending."""
        self._reach(end - self.low)
        done = self._done[: end - self.low]
        return np.packbits(done).tobytes() if done.any() else b""

    def pending(self, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Returns for each of some messages, in ascending order, whether it is not done."""
        if len(numbers) == 0:
            return np.empty(0, np.bool_)
        indices = numbers - self.low
        self._reach(int(indices[-1]) + 1)
        if indices[0] >= 0:
            pending: NDArray[np.bool_] = self._done[indices] == 0
            return pending
        before = int(np.searchsorted(indices, 0))
        return np.concatenate([np.zeros(before, np.bool_), self._done[indices[before:]] == 0])

    def _reach(self, count: int) -> None:
        if count > len(self._done):
            more = np.zeros(max(count, 2 * len(self._done), _LEAST), np.uint8)
            more[: len(self._done)] = self._done
            self._done = more
