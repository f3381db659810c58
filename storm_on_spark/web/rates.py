"""Rates and capacities over the last moments, from successive looks at a topology. Pure: views in, numbers out."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from dataclasses import dataclass, field, replace
from typing import Final

from storm_on_spark.api.info import ComponentInfo, TopologyInfo
from storm_on_spark.runtime.reports.observer import worked
from storm_on_spark.web.model import Shape, TopologyView

_WINDOW_SECS: Final = 30.0
_LEAST_SECS: Final = 2.0
"""Of less, what was since the start says more."""
_STEP_SECS: Final = 10.0
"""Between two looks that are kept: of 200 topologies with 50 components each one takes 10,000 objects."""
_POINTS: Final = 120
_MOST_TOPOLOGIES: Final = 500


@dataclass(frozen=True)
class Pace:
    """What a topology does at the moment."""

    seconds: float = 0.0
    """Over how long this was seen; 0 if it is since its start."""
    emitted: float = 0.0
    """Spout tuples a second."""
    acked: float = 0.0
    failed: float = 0.0
    components: dict[str, float] = field(default_factory=dict)
    """Tuples a second by component: executed, or emitted by a spout."""
    capacity: dict[str, float] = field(default_factory=dict)
    """Share of the time in which a bolt's executors executed."""
    latency_ms: dict[str, float] = field(default_factory=dict)
    """Mean time in `execute`, of the tuples in this time."""
    history: tuple[float, ...] = ()
    """Acks a second at the last looks, oldest first."""
    before: TopologyInfo | None = None
    """What was seen at the beginning of `seconds`."""


@dataclass
class _Seen:
    looks: deque[tuple[float, TopologyInfo]] = field(default_factory=deque)
    """Oldest first; the last is the latest, and the others are some seconds apart."""
    acked: deque[float] = field(default_factory=lambda: deque(maxlen=_POINTS))
    pace: tuple[Shape, TopologyInfo, Pace] | None = None
    """What came out at the last look, and of what."""


class Rates:
    """Remembers the last looks at each topology. Any thread may call it.

    Example:
        >>> rates = Rates()
        >>> def seen(at, acked):
        ...     return TopologyView("t", "t", "ACTIVE", at, TopologyInfo("t", "ACTIVE", at, acked=acked), at)
        >>> rates.look(seen(10.0, 100)).acked, rates.look(seen(12.0, 150)).acked
        (10.0, 25.0)
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: By id; the one that was looked at last is the last.
        self._seen: OrderedDict[str, _Seen] = OrderedDict()

    def look(self, view: TopologyView) -> Pace:
        """Returns what a topology does at the moment."""
        info = view.info
        if info is None:
            return Pace()
        with self._lock:
            seen = self._seen.setdefault(view.id, _Seen())
            self._seen.move_to_end(view.id)
            while len(self._seen) > _MOST_TOPOLOGIES:
                self._seen.popitem(last=False)
            looks = seen.looks
            if looks and info.uptime_secs < looks[-1][1].uptime_secs:
                # It was started again, and its counters with it.
                looks.clear()
            fresh = not looks or view.looked_at > looks[-1][0]
            if not fresh and seen.pace is not None and seen.pace[0] is view.shape and seen.pace[1] is info:
                return seen.pace[2]
            last = looks[-1] if looks else None
            if fresh:
                if len(looks) > 1 and looks[-1][0] - looks[-2][0] < _STEP_SECS:
                    looks.pop()
                looks.append((view.looked_at, info))
            while len(looks) > 2 and looks[-1][0] - looks[1][0] >= _WINDOW_SECS:
                looks.popleft()
            long = looks[-1][0] - looks[0][0] >= _LEAST_SECS
            pace = _between(looks[0], looks[-1], view) if long else _since_start(info, view)
            if fresh and last is not None:
                seen.acked.append(max(0, info.acked - last[1].acked) / (view.looked_at - last[0]))
            pace = replace(pace, history=tuple(seen.acked))
            seen.pace = view.shape, info, pace
            return pace


def _since_start(info: TopologyInfo, view: TopologyView) -> Pace:
    nothing = TopologyInfo(info.name, info.status, 0.0)
    pace = _between((0.0, nothing), (max(1e-9, info.uptime_secs), info), view)
    return replace(pace, seconds=0.0, before=None)


def _between(first: tuple[float, TopologyInfo], last: tuple[float, TopologyInfo], view: TopologyView) -> Pace:
    (then, before), (now, after) = first, last
    seconds = now - then
    rates, capacity, latency = {}, {}, {}
    for name, part in after.components.items():
        earlier = before.components.get(name) or ComponentInfo(name, part.kind, part.tasks)
        rates[name] = max(0.0, (worked(part) - worked(earlier)) / seconds)
        if part.execute_latency_ms is None:
            continue
        executed = part.executed - earlier.executed
        busy = max(
            0.0, part.executed * part.execute_latency_ms - earlier.executed * (earlier.execute_latency_ms or 0.0)
        )
        planned = view.shape.parts.get(name)
        executors = max(1, part.tasks if planned is None else planned.executors)
        capacity[name] = busy / (1e3 * seconds * executors)
        latency[name] = busy / executed if executed > 0 else part.execute_latency_ms
    return Pace(
        seconds,
        max(0, after.emitted - before.emitted) / seconds,
        max(0, after.acked - before.acked) / seconds,
        max(0, after.failed - before.failed) / seconds,
        rates,
        capacity,
        latency,
        before=before,
    )
