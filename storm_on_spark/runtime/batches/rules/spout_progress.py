"""What the coordinator knows of a spout task: how far its log reaches, and what its host last said."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from storm_on_spark.runtime.spouts.log import Mark


@dataclass
class SpoutProgress:
    """How far a spout task has come."""

    opened: bool = False
    """Whether it was open once; from then on, it is started again if its process dies."""
    ready: bool = False
    #: End of the log as far as cuts are known.
    head: Mark = Mark()  # noqa: RUF009 # it is immutable
    #: Cuts that no batch was planned for: (end, tuples). One without tuples, which only saves what was settled, is no
    #: reason for a batch.
    cuts: deque[tuple[Mark, int]] = field(default_factory=deque)
    #: Position up to which `take_to` has taken cuts.
    taken: int = 0
    #: End of the last cut that holds tuples, or what was planned at the start.
    tuples_end: int = 0
    #: Position up to which Spark has committed a micro-batch that was planned here.
    committed: int = 0
    #: The same, or what was planned at the start.
    consumed: int = 0
    answered: bool = False
    idle: bool = False
    #: Whether it said, since it was deactivated, that nothing is left to cut.
    quiet: bool = False
    exhausted: bool = False
    #: Whether it has said since it was opened how many messages are pending.
    reported: bool = False
    pending: int = 0
    #: Those of them that are kept for another attempt, which an inactive spout does not make.
    waiting_again: int = 0

    def add_cut(self, end: Mark, tuples: int) -> None:
        """Notes a cut, unless a micro-batch was planned for it before anybody told of it."""
        if tuples:
            self.tuples_end = max(self.tuples_end, end.position)
        if end.position > self.taken:
            self.head = end
            self.cuts.append((end, tuples))

    def waiting(self) -> int:
        """Returns how many tuples no batch was planned for."""
        return sum(tuples for _, tuples in self.cuts)

    def is_done(self) -> bool:
        """Returns whether the spout has nothing more to emit, and all that it has emitted is acked or failed."""
        return self.exhausted and not self.pending

    def is_clear(self) -> bool:
        """Returns whether no tree of its messages is under way: none is pending but what waits for another attempt."""
        return self.reported and self.pending <= self.waiting_again

    def is_finished(self, planned: int) -> bool:
        """Returns whether nothing more comes, now or later, after a position of its log."""
        return self.idle and self.is_done() and self.tuples_end <= planned

    def is_drained(self) -> bool:
        """Returns whether the spout is inactive, and all that it emitted has been processed and committed."""
        return self.quiet and self._is_settled(self.waiting_again)

    def is_settled(self) -> bool:
        """Returns whether all that the spout is known to have emitted has been processed and committed."""
        return self._is_settled(0)

    def _is_settled(self, kept: int) -> bool:
        return self.ready and self.pending <= kept and self.tuples_end <= self.committed

    def take(self, share: int) -> tuple[int, Mark | None]:
        """Takes the cuts of the next micro-batch: as many as have no more than `share` tuples, and the first anyway.

        Returns:
            How many tuples they have, and the end of the last of them; None without cuts.
        """
        taken, last = 0, None
        while self.cuts and (taken == 0 or taken + self.cuts[0][1] <= share):
            last, tuples = self.cuts.popleft()
            taken += tuples
        return taken, last

    def take_to(self, end: Mark) -> None:
        """Takes the cuts up to a position of the log, which may be after all that is known of it."""
        self.taken = end.position
        while self.cuts and self.cuts[0][0].position <= end.position:
            self.cuts.popleft()
        if end.position > self.head.position:
            self.head = end
