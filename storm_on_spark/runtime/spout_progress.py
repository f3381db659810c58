"""What the coordinator knows of a spout task: how far its log reaches, and what its host last said."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from storm_on_spark.runtime.host_process import HostProcess


@dataclass
class SpoutProgress:
    """How far a spout task has come."""

    host: HostProcess | None = None
    opened: bool = False
    """Whether it was open once; from then on, it is started again if its process dies."""
    ready: bool = False
    #: End of the log as far as cuts are known.
    head: int = 0
    #: Cuts that no batch was planned for: (end position, tuples). One without tuples, which only saves what was
    #: settled, is no reason for a batch.
    cuts: deque[tuple[int, int]] = field(default_factory=deque)
    #: End of the last cut that holds tuples, or what was planned at the start.
    tuples_end: int = 0
    #: Position up to which Spark has committed.
    committed: int = 0
    answered: bool = False
    idle: bool = False
    #: Whether it said, since it was deactivated, that nothing is left to cut.
    quiet: bool = False
    exhausted: bool = False
    pending: int = 0

    def add_cut(self, end: int, tuples: int) -> None:
        """Notes a cut."""
        self.head = end
        self.cuts.append((end, tuples))
        if tuples:
            self.tuples_end = end

    def waiting(self) -> int:
        """Returns how many tuples no batch was planned for."""
        return sum(tuples for _, tuples in self.cuts)
