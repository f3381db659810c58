"""The rules by which batches begin and are committed: a state machine without I/O and without a clock.

Batches are processed side by side, and committed one after the other in the order of their numbers. When one fails, it
and all later ones are attempted again, because a later one may have been made knowing it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from storm_on_spark.trident.batches import TransactionAttempt


class Phase(Enum):
    """How far a batch is."""

    PROCESSING = "processing"
    PROCESSED = "processed"
    COMMITTING = "committing"


@dataclass
class _Batch:
    attempt: int
    phase: Phase = Phase.PROCESSING


@dataclass
class Transactions:
    """The batches under way.

    Example:
        >>> batches = Transactions()
        >>> first, second = batches.begin(1), batches.begin(2)
        >>> batches.acked(second), batches.acked(first)  # processed, in another order
        (None, None)
        >>> list(batches.commits())
        [TransactionAttempt(txid=1, attempt=0)]
        >>> batches.acked(first)  # committed
        1
        >>> list(batches.commits())
        [TransactionAttempt(txid=2, attempt=0)]
    """

    current: int = 1
    """The next batch to commit: all before it are committed."""
    active: dict[int, _Batch] = field(default_factory=dict)
    attempts: dict[int, int] = field(default_factory=dict)
    """The last attempt of each batch that is not committed."""
    independent: bool = False
    """Whether batches have nothing to do with each other, so that a batch fails alone."""

    def due(self, most: int) -> int | None:
        """Returns the batch that may begin, if less than `most` are under way."""
        if len(self.active) >= most:
            return None
        return next(txid for txid in range(self.current, self.current + most) if txid not in self.active)

    def begin(self, txid: int) -> TransactionAttempt:
        """Begins a batch, and returns its attempt."""
        attempt = self.attempts.get(txid, -1) + 1
        self.attempts[txid] = attempt
        self.active[txid] = _Batch(attempt)
        return TransactionAttempt(txid, attempt)

    def acked(self, attempt: TransactionAttempt) -> int | None:
        """Notes that a batch is processed, or committed; returns its number if it is committed."""
        batch = self._of(attempt)
        if batch is None:
            return None
        if batch.phase is Phase.COMMITTING:
            del self.active[attempt.txid], self.attempts[attempt.txid]
            self.current = attempt.txid + 1
            return attempt.txid
        batch.phase = Phase.PROCESSED
        return None

    def failed(self, attempt: TransactionAttempt) -> bool:
        """Ends the attempts of a batch and of all later ones; returns whether it was under way."""
        if self._of(attempt) is None:
            return False
        later = () if self.independent else [txid for txid in self.active if txid > attempt.txid]
        for txid in (attempt.txid, *later):
            del self.active[txid]
        return True

    def commits(self) -> Iterator[TransactionAttempt]:
        """Yields the batch whose commit is due, if there is one."""
        batch = self.active.get(self.current)
        if batch is not None and batch.phase is Phase.PROCESSED:
            batch.phase = Phase.COMMITTING
            yield TransactionAttempt(self.current, batch.attempt)

    def _of(self, attempt: TransactionAttempt) -> _Batch | None:
        batch = self.active.get(attempt.txid)
        return batch if batch is not None and batch.attempt == attempt.attempt else None
