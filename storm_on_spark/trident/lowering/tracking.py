"""When a task has all of a batch: rules without I/O.

Each task before it reports, once it has all of the batch itself, how many tuples it sent. A batch is complete when all
have reported and as many tuples have come. This is Storm's way (`TridentBoltExecutor`), and holds wherever tuples may
pass each other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from storm_on_spark.trident.batches import TransactionAttempt


@dataclass
class Progress:
    """How far an attempt of a batch is in a task."""

    attempt: int
    received: int = 0
    expected: int = 0
    reports: int = 0
    committing: bool = False
    """Whether its commit has begun."""
    failed: bool = False
    done: bool = False
    waiting: list[Any] = field(default_factory=list)
    """Tuples about the batch that are acked once this task is done with it."""
    held: dict[int, dict[Any, Any]] = field(default_factory=dict)
    """What operations keep until the end of the batch, by operation."""
    sent: dict[int, int] = field(default_factory=dict)
    """How many tuples went to each task."""


@dataclass
class Batches:
    """The batches of one task.

    Example:
        >>> batches = Batches(reports=1, commits=False)
        >>> progress = batches.of(TransactionAttempt(1, 0))
        >>> progress.reports, progress.expected = 1, 2
        >>> batches.complete(progress)
        False
        >>> progress.received = 2
        >>> batches.complete(progress), batches.due(progress)
        (True, True)
    """

    reports: int
    """How many tasks report."""
    commits: bool
    """Whether a batch ends with its commit only."""
    oldest: int = 0
    """All batches before it are committed."""
    found: dict[int, Progress] = field(default_factory=dict)

    def of(self, attempt: TransactionAttempt) -> Progress | None:
        """Returns the progress of an attempt; None if the batch is committed, or there was a later attempt."""
        txid, number = attempt
        progress = self.found.get(txid)
        if progress is not None and progress.attempt == number:
            return progress
        if txid < self.oldest or (progress is not None and progress.attempt > number):
            return None
        progress = self.found[txid] = Progress(number)
        return progress

    def forget(self, oldest: int) -> None:
        """Notes that all batches before `oldest` are committed."""
        if oldest > self.oldest:
            self.oldest = oldest
            for txid in [txid for txid in self.found if txid < oldest]:
                del self.found[txid]

    def complete(self, progress: Progress) -> bool:
        """Returns whether all of the batch is here."""
        return progress.reports == self.reports and progress.received == progress.expected

    def due(self, progress: Progress) -> bool:
        """Returns whether the batch ends now."""
        return (
            not progress.done
            and not progress.failed
            and self.complete(progress)
            and (progress.committing or not self.commits)
        )
