"""Where the milliseconds of a topology go: of each micro-batch, and in real time of each second's rounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class BatchTime:
    """The time of one micro-batch."""

    number: int
    """Spark's number of it."""
    parts: Mapping[str, float] = field(default_factory=dict)
    """Milliseconds by part, in the order in which they are spent."""

    @property
    def whole(self) -> float:
        """Milliseconds of the whole micro-batch."""
        return sum(self.parts.values())


@dataclass(frozen=True)
class RoundTime:
    """The time of the rounds of about a second, in which a topology executed its tuples in real time.

    Example:
        >>> RoundTime(1_700_000_000.0, 2.0, 400, 1000, {"bolts execute": 300.0, "waits": 1600.0}).work
        150.0
    """

    time: float
    """When they ended, in seconds since the epoch."""
    secs: float
    """How long they took together, with the time between them."""
    rounds: int
    tuples: int
    """That spouts emitted meanwhile."""
    parts: Mapping[str, float] = field(default_factory=dict)
    """Milliseconds by part. Executors of spouts work beside each other and beside the bolts."""

    @property
    def work(self) -> float:
        """Milliseconds of work in each second: all parts without the wait for tuples."""
        return sum(spent for name, spent in self.parts.items() if name != WAITS) / self.secs if self.secs else 0.0


WAITS = "waits"
"""The part of a `RoundTime` in which the live process has nothing to do."""
