"""What the coordinator asks of a live process; `runtime.live` has the process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.runtime.spouts.log import Mark


class Spent(NamedTuple):
    """What the main thread of a live process has done since its start, in seconds."""

    rounds: int = 0
    """Their number."""
    waits: float = 0.0
    """For tuples."""
    reads: float = 0.0
    """What spouts have written."""
    executes: float = 0.0
    """Bolts and ackers; where several processes share them, until the last of these is ready."""
    logs: float = 0.0
    """Rounds, to disk."""
    tells: float = 0.0
    """Outcomes, to spouts."""
    saves: float = 0.0
    """State, and hands it to a micro-batch."""


class Status(NamedTuple):
    """How a live process is."""

    pid: int
    live: bool
    """Whether it executes tuples."""
    spent: Spent = Spent()


class LiveProcess(Protocol):
    """The live process of a run, which may come and go."""

    @property
    def path(self) -> Path:
        """Where it listens."""

    def look(self, clock_ms: int, clock_at: float) -> Status | None:
        """Says that the topology runs; returns how the process is, None if there is none.

        Args:
            clock_ms: the topology's time.
            clock_at: the machine's monotonic time in s at which it is that.
        """

    def let_go(self) -> None:
        """Ends what waits for an answer, and every further wait: the topology is about to stop."""

    def barrier(self, start: Offset, written: Mapping[int, Mark]) -> Offset | None:
        """Executes what is written, and cuts the state of all tasks.

        Args:
            start: up to where everything is committed.
            written: ends of the logs, by spout task.

        Returns:
            Up to where the tasks have executed; None if they don't continue from `start`.
        """
