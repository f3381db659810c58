"""Rates of events and distributions of values, computed like Dropwizard's metrics, which Storm uses."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from time import monotonic

_TICK_SECS = 5.0
_MINUTES = (1, 5, 15)

SAMPLES = 1028
"""The number of last values from which a histogram or timer computes percentiles, as in Dropwizard."""

_PERCENTILES = {"p50": 0.5, "p75": 0.75, "p95": 0.95, "p98": 0.98, "p99": 0.99, "p999": 0.999}


class Rates:
    """Events per second: since the start, and as moving averages over 1, 5 and 15 minutes.

    The averages work like Unix's load average: every 5 s, each moves towards the rate of the last 5 s.

    Args:
        now: returns monotonic seconds.

    Example:
        >>> at = iter([0.0, 0.0, 5.0])
        >>> rates = Rates(lambda: next(at))
        >>> rates.mark(10)
        >>> rates.summary()["m1_rate"]
        2.0
    """

    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        self._now = now
        self._began = self._ticked = now()
        self._waiting = 0
        self._averages: list[float] | None = None
        #: The number of events.
        self.count = 0

    def mark(self, events: int = 1) -> None:
        """Counts events that happened now."""
        self._tick(self._now())
        self.count += events
        self._waiting += events

    def summary(self) -> dict[str, float]:
        """Returns `mean_rate`, `m1_rate`, `m5_rate` and `m15_rate`, in events per second."""
        now = self._now()
        self._tick(now)
        passed = now - self._began
        averages = self._averages or [0.0] * len(_MINUTES)
        rates = {f"m{minutes}_rate": average for minutes, average in zip(_MINUTES, averages, strict=True)}
        return {"mean_rate": self.count / passed if passed > 0 else 0.0, **rates}

    def _tick(self, now: float) -> None:
        ticks = int((now - self._ticked) / _TICK_SECS)
        if ticks <= 0:
            return
        self._ticked += ticks * _TICK_SECS
        rate, self._waiting = self._waiting / _TICK_SECS, 0
        if self._averages is None:
            self._averages = [rate] * len(_MINUTES)
            rate, ticks = 0.0, ticks - 1
        elif ticks:
            self._averages = _moved(self._averages, rate, 1)
            ticks -= 1
        if ticks:  # Nothing happened in these intervals.
            self._averages = _moved(self._averages, 0.0, ticks)


def _moved(averages: list[float], rate: float, ticks: int) -> list[float]:
    keep = [math.exp(-ticks * _TICK_SECS / 60 / minutes) for minutes in _MINUTES]
    return [rate + (average - rate) * part for average, part in zip(averages, keep, strict=True)]


class Snapshot:
    """The distribution of the last values of a histogram or timer.

    Args:
        values: in any order.

    Example:
        >>> snapshot = Snapshot([4, 1, 3, 2])
        >>> snapshot.get_median(), snapshot.get_max(), snapshot.get_mean()
        (2.5, 4, 2.5)
    """

    def __init__(self, values: Iterable[float]) -> None:
        self._values = sorted(values)

    def get_value(self, quantile: float) -> float:
        """Returns the value below which the fraction `quantile` (from 0 to 1) of all values is; 0 without values.

        Raises:
            ValueError: `quantile` is outside 0 to 1.
        """
        if not 0 <= quantile <= 1:
            raise ValueError(f"a quantile is from 0 to 1, not {quantile!r}")
        values = self._values
        position = quantile * (len(values) + 1)
        below = int(position)
        if not values:
            return 0.0
        if below < 1:
            return values[0]
        if below >= len(values):
            return values[-1]
        return values[below - 1] + (position - below) * (values[below] - values[below - 1])

    def get_values(self) -> list[float]:
        """Returns the values in ascending order."""
        return list(self._values)

    def size(self) -> int:
        """Returns the number of values."""
        return len(self._values)

    def get_median(self) -> float:
        """Returns the median; 0 without values."""
        return self.get_value(0.5)

    def get_min(self) -> float:
        """Returns the minimum; 0 without values."""
        return self._values[0] if self._values else 0.0

    def get_max(self) -> float:
        """Returns the maximum; 0 without values."""
        return self._values[-1] if self._values else 0.0

    def get_mean(self) -> float:
        """Returns the mean; 0 without values."""
        return math.fsum(self._values) / len(self._values) if self._values else 0.0

    def get_std_dev(self) -> float:
        """Returns the standard deviation of the values; 0 for fewer than two."""
        if len(self._values) < 2:
            return 0.0
        mean = self.get_mean()
        return math.sqrt(math.fsum((value - mean) ** 2 for value in self._values) / len(self._values))

    def summary(self, factor: float = 1.0) -> dict[str, float]:
        """Returns `min`, `max`, `mean`, `stddev` and percentiles, each multiplied by `factor`."""
        found = {
            "min": self.get_min(),
            "max": self.get_max(),
            "mean": self.get_mean(),
            "stddev": self.get_std_dev(),
            **{name: self.get_value(quantile) for name, quantile in _PERCENTILES.items()},
        }
        return {name: factor * value for name, value in found.items()}
