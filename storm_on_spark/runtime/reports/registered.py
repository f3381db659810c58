"""The metrics that components registered, added up in the driver over processes and micro-batches."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from storm_on_spark.api.info import MetricInfo
from storm_on_spark.api.metrics.rates import SAMPLES, Rates, Snapshot
from storm_on_spark.api.metrics.registry import MOST_METRICS, Reading
from storm_on_spark.metrics import amounts as names
from storm_on_spark.metrics.amounts import Name
from storm_on_spark.metrics.latency import bins_of

_MS = 1e3
_MOST_PARTS = 100
"""Of a `MultiCountMetric` that windows have."""


class Registered:
    """The registered metrics of all tasks.

    Args:
        prefix: what Storm's long names begin with: `storm.topology.ID.HOST`.
        suffix: what comes before the metric's own name: the port.
        now: monotonic seconds.
    """

    def __init__(
        self, prefix: str = "storm.topology", suffix: str = "-1", now: Callable[[], float] = time.monotonic
    ) -> None:
        self._prefix = prefix
        self._suffix = suffix
        self._now = now
        #: By component, name and task.
        self._known: dict[str, dict[str, dict[int, _Sum]]] = {}

    def add(self, component: str, task: int, readings: Iterable[Reading]) -> None:
        """Adds what a task reports."""
        for reading in readings:
            names = self._known.setdefault(component, {})
            tasks = names.get(reading.name)
            if tasks is None:
                if len(names) >= 2 * MOST_METRICS:  # tasks may have names of their own
                    continue
                tasks = names[reading.name] = {}
            known = tasks.get(task)
            if known is None or known.kind != reading.kind:  # another release of the code may use a name otherwise
                known = tasks[task] = _SUMS[reading.kind](reading.kind, self._now)
            known.add(reading.value)

    def of(self, component: str) -> dict[str, MetricInfo]:
        """Returns the metrics of a component, by name."""
        return {
            name: self._info(component, name, tasks) for name, tasks in sorted(self._known.get(component, {}).items())
        }

    def _info(self, component: str, name: str, tasks: Mapping[int, _Sum]) -> MetricInfo:
        newest = list(tasks.values())[-1]
        alike = [known for known in tasks.values() if known.kind == newest.kind]
        return MetricInfo(
            name=name,
            type="metric" if newest.kind == "count" else newest.kind,
            values=newest.together(alike),
            tasks={
                task: {"name": self._long(component, task, name), **known.together([known])}
                for task, known in sorted(tasks.items())
            },
        )

    def _long(self, component: str, task: int, name: str) -> str:
        return f"{self._prefix}.{_undotted(component)}.{task}.{self._suffix}-{name}"


def long_name_prefix(storm_id: str, host: str) -> str:
    """Returns how Storm's long names of metrics begin; dots within a part become underscores.

    Example:
        >>> long_name_prefix("words-1-17", "node1.example.org")
        'storm.topology.words-1-17.node1_example_org'
    """
    return f"storm.topology.{_undotted(storm_id)}.{_undotted(host)}"


def _undotted(text: str) -> str:
    return text.replace(".", "_")


def reading_amounts(readings: Iterable[Reading]) -> dict[Name, int]:
    """Returns counts of metrics as amounts for windows. Gauges are left out.

    Example:
        >>> reading_amounts([Reading("hits", "counter", 5)])
        {('metric', 'hits', 'counter'): 5}
    """
    found: dict[Name, int] = {}
    for name, kind, value in readings:
        if kind in ("histogram", "timer"):
            found[names.METRIC, name, kind] = value[0]
            values = np.array(value[1]) * (_MS if kind == "timer" else 1.0)
            if len(values) and values.min() >= 0:
                found.update({(names.METRIC_BIN, key, name): count for key, count in bins_of(values).items()})
        elif kind in ("counter", "meter", "count"):
            parts = {f"{name}.{part}": n for part, n in value.items()} if isinstance(value, dict) else {name: value}
            for part, n in list(parts.items())[:_MOST_PARTS]:
                if isinstance(n, int):
                    found[names.METRIC, part, kind] = n
    return found


class _Sum(ABC):
    """The reports of one task under one name."""

    def __init__(self, kind: str, now: Callable[[], float]) -> None:
        self.kind = kind

    @abstractmethod
    def add(self, value: Any) -> None: ...

    @abstractmethod
    def together(self, parts: list[Any]) -> dict[str, Any]:
        """Returns the values of several tasks as one."""


class _Count(_Sum):
    """A counter."""

    def __init__(self, kind: str, now: Callable[[], float]) -> None:
        super().__init__(kind, now)
        self.count = 0

    def add(self, value: int) -> None:
        self.count += value

    def together(self, parts: list[_Count]) -> dict[str, Any]:
        return {"count": sum(part.count for part in parts)}


class _Scoped(_Sum):
    """A `CountMetric`, or a `MultiCountMetric` with counts by name."""

    def __init__(self, kind: str, now: Callable[[], float]) -> None:
        super().__init__(kind, now)
        self.value: Any = 0

    def add(self, value: Any) -> None:
        self.value = _added(self.value, value)

    def together(self, parts: list[_Scoped]) -> dict[str, Any]:
        total: Any = 0
        for part in parts:
            total = _added(total, part.value)
        return {"value": total}


def _added(one: Any, other: Any) -> Any:
    if isinstance(one, dict) or isinstance(other, dict):
        one, other = one or {}, other or {}
        if not (isinstance(one, dict) and isinstance(other, dict)):
            return other
        return {key: one.get(key, 0) + other.get(key, 0) for key in [*one, *(key for key in other if key not in one)]}
    return one + other


class _Last(_Sum):
    """A gauge, or another metric whose values can't be added up: the last one."""

    _order = 0

    def __init__(self, kind: str, now: Callable[[], float]) -> None:
        super().__init__(kind, now)
        self.value: Any = None
        self.order = 0

    def add(self, value: Any) -> None:
        _Last._order += 1
        self.value, self.order = value, _Last._order

    def together(self, parts: list[_Last]) -> dict[str, Any]:
        return {"value": max(parts, key=lambda part: part.order).value}


class _Events(_Sum):
    """A meter."""

    def __init__(self, kind: str, now: Callable[[], float]) -> None:
        super().__init__(kind, now)
        self.rates = Rates(now)

    def add(self, value: int) -> None:
        self.rates.mark(value)

    def together(self, parts: list[_Events]) -> dict[str, Any]:
        return {"count": sum(part.rates.count for part in parts), **_rates(part.rates for part in parts)}


def _rates(parts: Iterable[Rates]) -> dict[str, float]:
    total: dict[str, float] = {}
    for part in parts:
        for name, rate in part.summary().items():
            total[name] = total.get(name, 0.0) + rate
    return total


class _Spread(_Sum):
    """A histogram or a timer."""

    def __init__(self, kind: str, now: Callable[[], float]) -> None:
        super().__init__(kind, now)
        self.rates = Rates(now)
        self.values: deque[float] = deque(maxlen=SAMPLES)

    def add(self, value: tuple[int, list[float]]) -> None:
        self.rates.mark(value[0])
        self.values.extend(value[1])

    def together(self, parts: list[_Spread]) -> dict[str, Any]:
        timed = self.kind == "timer"
        spread = Snapshot(value for part in parts for value in part.values).summary(_MS if timed else 1.0)
        rates = _rates(part.rates for part in parts) if timed else {}
        return {"count": sum(part.rates.count for part in parts), **spread, **rates}


_SUMS: dict[str, type[_Sum]] = {
    "counter": _Count,
    "gauge": _Last,
    "meter": _Events,
    "histogram": _Spread,
    "timer": _Spread,
    "count": _Scoped,
    "metric": _Last,
}
