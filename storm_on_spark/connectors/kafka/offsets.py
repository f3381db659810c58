"""The offsets that a spout task has emitted, and their outcomes: a pure state machine.

This is all the state that a Kafka spout has. It is saved with every cut of the spout's log, so a restart from the
checkpoint continues exactly here. Its size grows with what has failed and with gaps between acked offsets, and not with
what is acked in order or still pending.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Any, NamedTuple

Partition = tuple[str, int]
"""Topic and number of a partition."""


class Failure(NamedTuple):
    """What is known of an offset whose tuple has failed."""

    times: int
    """How often."""
    due_ms: int | None
    """When it is emitted again, in milliseconds since the epoch; None while it is pending again."""
    reason: str | None = None
    """Why it goes to the dead-letter stream; None while it is retried as usual."""


class PartitionOffsets:
    """The offsets of one partition.

    Args:
        start: the offset to begin with.

    Example:
        >>> offsets = PartitionOffsets(5)
        >>> for offset in (5, 6, 9):
        ...     offsets.emit(offset)
        >>> offsets.ack(6)
        >>> offsets.low, offsets.position
        (5, 10)
        >>> offsets.ack(5)
        >>> offsets.low
        9
    """

    __slots__ = ("_ends", "_starts", "epoch", "failures", "low", "position", "turn")

    def __init__(self, start: int) -> None:
        #: All offsets below are done: what may be committed to Kafka. Never above `position`.
        self.low = start
        #: The next offset to emit.
        self.position = start
        #: The leader epoch of the last record before `position` (Kafka's KIP-320); -1 if unknown. Kafka tells by it
        #: whether the log was cut off before the position and has other records now.
        self.epoch = -1
        #: Ranges of offsets that are done, between `low` and `position`: sorted, disjoint, not adjacent, not empty,
        #: none of which begins at `low`.
        self._starts: list[int] = []
        self._ends: list[int] = []
        self.failures: dict[int, Failure] = {}
        #: How often offsets have begun again, so that one names another record than before.
        self.turn = 0

    def __setstate__(self, state: tuple[None, dict[str, Any]]) -> None:
        """Takes a saved state, also of a version that had no turns or no epoch."""
        self.turn, self.epoch = 0, -1
        for name, value in state[1].items():
            setattr(self, name, value)

    @property
    def uncommitted(self) -> int:
        """How far the position is ahead of what may be committed."""
        return self.position - self.low

    @property
    def pending(self) -> int:
        """How many offsets are not done."""
        return self.uncommitted - sum(self._ends) + sum(self._starts)

    def emit(self, offset: int, epoch: int = -1) -> None:
        """Notes that an offset was emitted; what is between it and the last one does not exist in Kafka.

        Args:
            offset: which.
            epoch: the leader epoch of its record.
        """
        if offset < self.position:
            raise ValueError(f"offset {offset} was emitted before: the position is {self.position}")
        self.pass_to(offset)
        self.position, self.epoch = offset + 1, epoch

    def pass_to(self, offset: int, epoch: int = -1) -> None:
        """Goes forwards to a position; what is between has no tuple. Offsets that are pending stay so.

        Args:
            offset: the position.
            epoch: the leader epoch of what is before it.
        """
        if offset > self.position:
            before, self.position, self.epoch = self.position, offset, epoch
            self._done(before, offset)

    def skip(self, offset: int) -> None:
        """Notes that an offset has no tuple."""
        self.emit(offset)
        self._done(offset, offset + 1)

    def begin_again(self, offset: int) -> None:
        """Goes to a position, forwards or backwards, and forgets what was before: offsets name other records now."""
        self.turn += 1
        self.low, self.position, self.epoch = offset, offset, -1
        self._starts, self._ends = [], []
        self.failures = {}

    def is_pending(self, offset: int) -> bool:
        """Returns whether an offset was emitted and is not done."""
        if not self.low <= offset < self.position:
            return False
        at = bisect_right(self._starts, offset) - 1
        return at < 0 or offset >= self._ends[at]

    def ack(self, offset: int) -> None:
        """Notes that an offset is done; one that is not pending is ignored."""
        if self.is_pending(offset):
            self.failures.pop(offset, None)
            self._done(offset, offset + 1)

    def fail(self, offset: int, due_ms: int, reason: str | None = None) -> None:
        """Notes that the tuple of an offset has failed and is due again; one that isn't pending is ignored."""
        if self.is_pending(offset):
            before = self.failures.get(offset)
            times = 1 if before is None else before.times + 1
            if reason is None and before is not None:
                reason = before.reason
            self.failures[offset] = Failure(times, due_ms, reason)

    def times_failed(self, offset: int) -> int:
        """Returns how often the tuple of an offset has failed."""
        failure = self.failures.get(offset)
        return 0 if failure is None else failure.times

    def due(self, now_ms: int) -> list[int]:
        """Returns the offsets to emit again, in order."""
        return sorted(
            offset
            for offset, failure in self.failures.items()
            if failure.due_ms is not None and failure.due_ms <= now_ms
        )

    def emit_again(self, offset: int) -> Failure:
        """Notes that an offset is pending again; returns what is known of it."""
        failure = self.failures[offset]._replace(due_ms=None)
        self.failures[offset] = failure
        return failure

    def bury(self, offset: int, reason: str) -> None:
        """Notes that an offset is pending on the dead-letter stream."""
        self.failures[offset] = Failure(self.times_failed(offset), None, reason)

    def _done(self, start: int, end: int) -> None:
        """Adds a range of offsets that are not yet done."""
        at = bisect_left(self._starts, start)
        if at > 0 and self._ends[at - 1] == start:
            at -= 1
            start = self._starts[at]
            del self._starts[at], self._ends[at]
        if at < len(self._starts) and self._starts[at] == end:
            end = self._ends[at]
            del self._starts[at], self._ends[at]
        if start == self.low:
            self.low = end
        else:
            self._starts.insert(at, start)
            self._ends.insert(at, end)


class Offsets:
    """The offsets of all partitions of a spout task: the whole of its state."""

    def __init__(self) -> None:
        self.partitions: dict[Partition, PartitionOffsets] = {}
        #: The id of each topic whose offsets these are: one that was deleted and created again has another.
        self.topic_ids: dict[str, str] = {}
        #: Whether the topics have been looked up: partitions that appear later are read from their first record on.
        self.looked_up = False

    def begin(self, partition: Partition, start: int) -> bool:
        """Takes a partition; returns False if it is known already."""
        if partition in self.partitions:
            return False
        self.partitions[partition] = PartitionOffsets(start)
        return True

    def committable(self) -> dict[Partition, int]:
        """Returns the offsets that may be committed to Kafka, by partition: the offset to continue with."""
        return {partition: offsets.low for partition, offsets in self.partitions.items()}

    def due(self, now_ms: int) -> dict[Partition, list[int]]:
        """Returns the offsets to emit again, in order, by partition."""
        found = {partition: offsets.due(now_ms) for partition, offsets in self.partitions.items() if offsets.failures}
        return {partition: due for partition, due in found.items() if due}
