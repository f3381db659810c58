"""The sums of a window as `storm_on_spark.api.info` shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from storm_on_spark.api.info import (
    COUNTERS,
    WINDOWS,
    ComponentWindow,
    LatencyInfo,
    StreamCounts,
    TaskCounts,
    WindowInfo,
)
from storm_on_spark.metrics import amounts as names
from storm_on_spark.metrics.amounts import Amounts, Name, add
from storm_on_spark.metrics.latency import quantiles
from storm_on_spark.metrics.windows import Windows

_LATENCIES = {
    # Field of `TaskCounts`: its sum, its sketch.
    "execute": (names.EXECUTE_NS, names.EXECUTE_BIN),
    "process": (names.PROCESS_NS, names.PROCESS_BIN),
    "complete": (names.COMPLETE_NS, names.COMPLETE_BIN),
}
_MS = 1e6


def windows_info(windows: Windows, now: float, chosen: Iterable[str] = tuple(WINDOWS)) -> dict[str, WindowInfo]:
    """Returns what was counted in each window.

    Args:
        windows: the counts.
        now: seconds of the timeline.
        chosen: which windows.
    """
    return {name: window_info(name, windows.covered(name, now), windows.sums(name, now)) for name in chosen}


def window_info(name: str, secs: float, sums: Amounts) -> WindowInfo:
    """Returns what was counted in a window.

    Args:
        name: the window.
        secs: how long it is.
        sums: over the window.

    Example:
        >>> info = window_info("600", 610.0, {("split", 3, "emitted", "default", ""): 7})
        >>> info.components["split"].emitted, info.components["split"].tasks[3].emitted
        (7, 7)
    """
    tasks: dict[str, dict[int, dict[Name, int]]] = {}
    for (component, task, *what), amount in sums.items():
        tasks.setdefault(component, {}).setdefault(task, {})[tuple(what)] = amount  # type: ignore[index]
    components: dict[str, ComponentWindow] = {}
    complete: dict[Name, int] = {}
    for component, by_task in sorted(tasks.items()):
        total: dict[Name, int] = {}
        for counted in by_task.values():
            add(total, counted)
        components[component] = _made(
            ComponentWindow,
            total,
            tasks={task: _made(TaskCounts, counted) for task, counted in sorted(by_task.items())},
            metrics=_metrics(total),
        )
        add(complete, {what: n for what, n in total.items() if what[0] in _LATENCIES["complete"]})
    return WindowInfo(name, round(secs, 3), components, _latency(complete, *_LATENCIES["complete"]))


def _made(kind: Callable[..., Any], counted: Mapping[Name, int], **more: Any) -> Any:
    streams = _streams(counted)
    sums = {name: sum(getattr(stream, name) for stream in streams) for name in COUNTERS}
    latencies = {name: _latency(counted, *which) for name, which in _LATENCIES.items()}
    busy = counted.get((names.BUSY_NS, "", ""), 0) / 1e9
    return kind(**sums, **latencies, busy_secs=round(busy, 6), streams=streams, **more)


def _streams(counted: Mapping[Name, int]) -> tuple[StreamCounts, ...]:
    found: dict[tuple[str, str], dict[str, int]] = {}
    for (name, first, second), amount in counted.items():
        if name in (names.EMITTED, names.TRANSFERRED):
            found.setdefault(("", str(first)), {})[name] = amount
        elif name in _OF_STREAMS:
            found.setdefault((str(first), second), {})[name] = amount
    return tuple(
        StreamCounts(
            stream,
            source,
            **{name: sums.get(name, 0) for name in COUNTERS},
            execute_ms=_mean(sums, names.EXECUTE_NS, names.EXECUTED),
            process_ms=_mean(sums, names.PROCESS_NS, names.ACKED),
            complete_ms=_mean(sums, names.COMPLETE_NS, names.ACKED),
        )
        for (source, stream), sums in sorted(found.items())
    )


_OF_STREAMS = {names.EXECUTED, names.ACKED, names.FAILED, names.EXECUTE_NS, names.PROCESS_NS, names.COMPLETE_NS}


def _mean(sums: Mapping[str, int], total: str, count: str) -> float | None:
    return round(sums[total] / sums[count] / _MS, 6) if total in sums and sums.get(count) else None


def _latency(counted: Mapping[Name, int], total: str, bins: str) -> LatencyInfo | None:
    found = {int(first): n for (name, first, _), n in counted.items() if name == bins}
    percentiles = quantiles(found)
    if percentiles is None:
        return None
    spent = sum(n for (name, _, _), n in counted.items() if name == total)
    return LatencyInfo(round(spent / sum(found.values()) / _MS, 6), **percentiles)


def _metrics(counted: Mapping[Name, int]) -> dict[str, dict[str, float]]:
    """Returns what users' metrics counted. Of histograms the values are in their own unit, of timers in ms."""
    found: dict[str, dict[str, float]] = {}
    bins: dict[str, dict[int, int]] = {}
    for (name, first, second), amount in counted.items():
        if name == names.METRIC:
            found.setdefault(str(first), {})["count"] = amount
        elif name == names.METRIC_BIN:
            bins.setdefault(second, {})[int(first)] = amount
    for metric, spread in bins.items():
        found.setdefault(metric, {"count": 0}).update(quantiles(spread) or {})
    return found
