"""The metrics in a container's node: messages of its modules, memory, processor time."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from storm_on_spark.xd.tree.nodes import ContainerMetrics, MessageRate

PERIOD_SECS: Final = 10.0
"""Least time between two writes of a container's node."""
_MOST_MODULES: Final = 20
"""Most instances with rates in a node. Nodes must be small, since ZooKeeper sends each one whole to every admin."""
_MEMORY_SHARE: Final = 0.05
_CORES: Final = 0.1

Counts = Mapping[str, tuple[int, int]]
"""Instance of a module -> messages that it received, and that it emitted, since it was started."""


def resident() -> int:
    """Returns the resident memory of this process in bytes; 0 without `/proc`."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


class Meter:
    """Measures a container. Not thread-safe.

    Rates cover the time since the last reported metrics.

    Args:
        clock: seconds.
        processor: seconds of processor time of this process.
        memory: resident memory of this process in bytes; 0 if unknown.
        started: of the container, seconds since 1970.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        processor: Callable[[], float] = time.process_time,
        memory: Callable[[], int] = resident,
        started: float | None = None,
    ) -> None:
        self._clock, self._processor, self._memory = clock, processor, memory
        self._started = round(1000 * (time.time() if started is None else started))
        self._since, self._processor_then = clock(), processor()
        self._then: dict[str, tuple[int, int]] = {}
        self._taken = self._emitted = 0
        self._told: ContainerMetrics | None = None

    def first(self) -> ContainerMetrics:
        """Returns the metrics of a container without modules."""
        self._told = ContainerMetrics(started=self._started, memory=self._memory())
        return self._told

    def next(self, counts: Counts) -> ContainerMetrics | None:
        """Returns metrics to report; None if it is too early or they have hardly changed.

        Args:
            counts: of the modules that run.
        """
        now = self._clock()
        if (passed := now - self._since) < PERIOD_SECS:
            return None
        processor = self._processor()
        grown = {name: self._growth(name, *each) for name, each in counts.items()}
        self._taken += sum(taken for taken, _ in grown.values())
        self._emitted += sum(emitted for _, emitted in grown.values())
        busiest = sorted((name for name in grown if any(grown[name])), key=lambda name: (-sum(grown[name]), name))
        found = ContainerMetrics(
            started=self._started,
            modules=len(counts),
            messages_in=self._taken,
            messages_out=self._emitted,
            rates={name: _rate(grown[name], passed) for name in busiest[:_MOST_MODULES]},
            memory=self._memory(),
            cores=round((processor - self._processor_then) / passed, 2),
        )
        self._since, self._processor_then, self._then = now, processor, dict(counts)
        if self._told is not None and not differ(self._told, found):
            return None
        self._told = found
        return found

    def ended(self, name: str, taken: int, emitted: int) -> None:
        """Adds the final counts of an ended instance."""
        grown = self._growth(name, taken, emitted)
        self._taken, self._emitted = self._taken + grown[0], self._emitted + grown[1]
        self._then.pop(name, None)

    def _growth(self, name: str, taken: int, emitted: int) -> tuple[int, int]:
        before = self._then.get(name, (0, 0))
        return taken - before[0], emitted - before[1]


def differ(told: ContainerMetrics, found: ContainerMetrics) -> bool:
    """Returns whether metrics differ by more than what an idle process does.

    >>> idle = ContainerMetrics(started=0, memory=1000, cores=0.02)
    >>> differ(idle, ContainerMetrics(started=0, memory=1010, cores=0.03))
    False
    >>> differ(idle, ContainerMetrics(started=0, memory=1010, cores=0.03, messages_in=1))
    True
    """
    return (
        (told.modules, told.messages_in, told.messages_out) != (found.modules, found.messages_in, found.messages_out)
        or told.rates != found.rates
        or abs(found.memory - told.memory) > _MEMORY_SHARE * told.memory
        or abs(found.cores - told.cores) > _CORES
    )


def _rate(grown: tuple[int, int], secs: float) -> MessageRate:
    taken, emitted = grown
    return MessageRate(input=round(taken / secs, 2), output=round(emitted / secs, 2))
