"""Amounts as the data points that Storm's consumers of metrics get."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from storm_on_spark.api.metrics.consumer import DataPoint
from storm_on_spark.metrics import amounts as names
from storm_on_spark.metrics.amounts import Amounts, Key

_COUNTS = {
    names.EMITTED: "__emit-count",
    names.TRANSFERRED: "__transfer-count",
    names.EXECUTED: "__execute-count",
    names.ACKED: "__ack-count",
    names.FAILED: "__fail-count",
}
_LATENCIES = {
    # A sum and the count to divide it by -> Storm's name. Values are means in ms.
    names.EXECUTE_NS: (names.EXECUTED, "__execute-latency"),
    names.PROCESS_NS: (names.ACKED, "__process-latency"),
    names.COMPLETE_NS: (names.ACKED, "__complete-latency"),
}


def points(news: Mapping[Key, int]) -> Iterator[tuple[str, int, list[DataPoint]]]:
    """Yields component, task and data points of what was counted in an interval.

    Example:
        >>> list(points({("split", 3, "executed", "lines", "default"): 7}))
        [('split', 3, [DataPoint(name='__execute-count', value={'lines:default': 7})])]
    """
    tasks: dict[tuple[str, int], dict[tuple[Any, ...], int]] = {}
    for (component, task, *what), amount in news.items():
        tasks.setdefault((component, task), {})[tuple(what)] = amount
    for (component, task), counted in sorted(tasks.items()):
        found: dict[str, Any] = {}
        for (name, first, second), amount in counted.items():
            stream = f"{first}:{second}" if first and second else first or second
            if name in _COUNTS:
                found.setdefault(_COUNTS[name], {})[stream] = amount
            elif name in _LATENCIES:
                count, storm = _LATENCIES[name]
                if of := counted.get((count, first, second)):
                    found.setdefault(storm, {})[stream] = amount / of / 1e6
            elif name == names.METRIC:
                found[str(first)] = amount
        if found:
            yield component, task, [DataPoint(name, value) for name, value in sorted(found.items())]


def news(before: Amounts, now: Amounts) -> Amounts:
    """Returns what was counted between two readings. A count that fell has begun again at zero."""
    found: Amounts = {}
    for key, amount in now.items():
        known = before.get(key, 0)
        grown = amount - known if amount >= known else amount
        if grown:
            found[key] = grown
    return found
