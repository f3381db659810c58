"""The counters of a topology over a window, as Storm UI selects them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from storm_on_spark.api.info import (
    ALL_TIME,
    COUNTERS,
    WINDOWS,
    ComponentWindow,
    LatencyInfo,
    StreamCounts,
    TaskCounts,
    TopologyInfo,
    WindowInfo,
)
from storm_on_spark.api.streams.constants import is_system_id
from storm_on_spark.cluster.rest.pages.durations import pretty

CAPACITY_WINDOW: Final = "600"
"""As in Storm, a capacity is always that of the last ten minutes."""


def window_hint(window: str) -> str:
    """Returns Storm UI's words for a window.

    Example:
        >>> window_hint("600"), window_hint("86400"), window_hint(":all-time")
        ('10m 0s', '1d 0h 0m 0s', 'All time')
    """
    secs = WINDOWS[window]
    return "All time" if secs is None else pretty(secs)


@dataclass(frozen=True)
class Counted:
    """What a topology counted.

    Args:
        info: what its driver said last; None where it said nothing.
        window: the window that was asked for.
        sys: whether system components and system streams, such as ticks, count.
    """

    info: TopologyInfo | None
    window: str = ALL_TIME
    sys: bool = False

    @property
    def windows(self) -> tuple[str, ...]:
        """The windows that are known."""
        return (ALL_TIME,) if self.info is None else tuple(self.info.windows)

    @property
    def secs(self) -> float:
        """How long the window is that was asked for."""
        info = self._window(self.window)
        return 0.0 if info is None else info.secs

    def component(self, name: str, window: str | None = None) -> ComponentWindow:
        """Returns what a component counted.

        Args:
            name: the component.
            window: by default the one that was asked for.
        """
        info = self._window(window or self.window)
        found = ComponentWindow() if info is None else info.components.get(name, ComponentWindow())
        return found if self.sys else _without_system(found)

    def system_components(self) -> dict[str, ComponentWindow]:
        """Returns what system components counted; empty unless they were asked for."""
        info = self._window(self.window)
        if info is None or not self.sys:
            return {}
        return {name: found for name, found in info.components.items() if is_system_id(name)}

    def capacity(self, name: str, executors: int) -> float:
        """Returns the share of the last ten minutes in which an executor of a bolt was busy."""
        info = self._window(CAPACITY_WINDOW)
        if info is None:
            return 0.0
        return info.components.get(name, ComponentWindow()).capacity_over(info.secs, executors)

    def complete(self, window: str | None = None) -> LatencyInfo | None:
        """Returns the complete latency of all spouts."""
        info = self._window(window or self.window)
        return None if info is None else info.complete

    def window_info(self, window: str) -> WindowInfo | None:
        """Returns a window as a whole; None if it isn't known."""
        return self._window(window)

    def _window(self, window: str) -> WindowInfo | None:
        return None if self.info is None else self.info.windows.get(window)


def _without_system(found: ComponentWindow) -> ComponentWindow:
    return replace(
        found,
        **_own_streams(found),
        tasks={task: replace(counted, **_own_streams(counted)) for task, counted in found.tasks.items()},
    )


def _own_streams(found: TaskCounts) -> dict[str, Any]:
    streams = tuple(stream for stream in found.streams if not is_system_id(stream.stream))
    return {"streams": streams, **{name: sum(getattr(stream, name) for stream in streams) for name in COUNTERS}}


def executors_of(tasks: Iterable[int], executors: int) -> Iterator[tuple[int, ...]]:
    """Yields the tasks of each executor, as Storm spreads them.

    Example:
        >>> list(executors_of([3, 4, 5], 2))
        [(3, 4), (5,)]
    """
    for part in np.array_split(np.array(list(tasks)), max(1, executors)):
        if len(part):
            yield tuple(part.tolist())


def together(parts: Iterable[TaskCounts]) -> TaskCounts:
    """Returns the counters of several tasks as those of one; percentiles, which can't be added up, are the highest."""
    parts = list(parts)
    return TaskCounts(
        **{name: sum(getattr(part, name) for part in parts) for name in COUNTERS},
        execute=_mean([(part.execute, part.executed) for part in parts]),
        process=_mean([(part.process, part.acked) for part in parts]),
        complete=_mean([(part.complete, part.acked) for part in parts]),
        busy_secs=sum(part.busy_secs for part in parts),
    )


def _mean(parts: list[tuple[LatencyInfo | None, int]]) -> LatencyInfo | None:
    found = [(latency, count) for latency, count in parts if latency is not None and count]
    if not found:
        return None
    mean = sum(latency.mean * count for latency, count in found) / sum(count for _, count in found)
    p50, p95, p99 = (max(getattr(latency, name) for latency, _ in found) for name in ("p50", "p95", "p99"))
    return LatencyInfo(mean, p50, p95, p99)


def inputs(found: TaskCounts) -> tuple[StreamCounts, ...]:
    """Returns the streams that were received."""
    return tuple(stream for stream in found.streams if stream.source)


def outputs(found: TaskCounts) -> tuple[StreamCounts, ...]:
    """Returns the streams that were emitted, and those of a spout's messages."""
    return tuple(stream for stream in found.streams if not stream.source and stream.stream)
