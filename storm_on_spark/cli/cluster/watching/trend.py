"""Rates of a topology's components, and how they went on while somebody watched."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

_BARS: Final = "▁▂▃▄▅▆▇█"
_LOOKS: Final = 30
"""Looks that a sparkline shows."""


def spark(values: list[float]) -> str:
    """Returns values as bars, the highest as the largest.

    Example:
        >>> spark([0, 1, 2, 4])
        '▁▃▅█'
    """
    most = max(values, default=0.0)
    return "".join(_BARS[round((len(_BARS) - 1) * value / most) if most > 0 else 0] for value in values)


class Trend:
    """Rates between the looks at a topology.

    Args:
        now: monotonic seconds.

    Example:
        >>> seconds = iter([0.0, 2.0])
        >>> trend = Trend(lambda: next(seconds))
        >>> trend.look({"split": 10}), trend.look({"split": 30})
        ({}, {'split': [10.0]})
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._before: tuple[float, Mapping[str, int]] | None = None
        self._rates: dict[str, deque[float]] = {}

    def look(self, counts: Mapping[str, int]) -> dict[str, list[float]]:
        """Adds counts; returns the last rates of each component, a second, oldest first.

        A count that fell has started over, so there is no rate for that time.
        """
        now = self._now()
        if self._before is not None and now > self._before[0]:
            since, before = self._before
            for name, count in counts.items():
                if count >= before.get(name, count):
                    rates = self._rates.setdefault(name, deque(maxlen=_LOOKS))
                    rates.append((count - before.get(name, count)) / (now - since))
        self._before = now, dict(counts)
        return {name: list(rates) for name, rates in self._rates.items() if name in counts}


def lines_of(page: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yields the components of a topology's page, spouts first, with their names."""
    for kind in ("spout", "bolt"):
        for line in page[f"{kind}s"]:
            yield line[f"{kind}Id"], line


def done(line: Mapping[str, Any]) -> int:
    """Returns what a component has done: tuples that a bolt executed, or that a spout emitted."""
    return int(line["executed"] if "executed" in line else line["emitted"])


def rate_rows(page: Mapping[str, Any], rates: Mapping[str, list[float]]) -> list[dict[str, Any]]:
    """Returns a table of rates.

    Args:
        page: of a topology.
        rates: by component, while somebody watches.
    """
    secs = page.get("windowSecs") or 0.0
    rows = []
    for name, line in lines_of(page):
        row = {
            "component": name,
            "a second": f"{done(line) / secs:,.1f}" if secs else "n/a",
            "capacity": line.get("capacity", ""),
            "process ms": line.get("processLatency", ""),
            "complete ms": line.get("completeLatency", ""),
        }
        if rates:
            seen = rates.get(name, [])
            row["now"] = f"{seen[-1]:,.0f}" if seen else "n/a"
            row["trend"] = spark(seen)
        rows.append(row)
    return rows
