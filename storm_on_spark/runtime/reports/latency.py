"""Latencies as a histogram that can be added up and sent around."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

_PER_DOUBLING = 16
"""Buckets are 2**(1/16) wide: a percentile is off by at most 4.4 %."""
_BUCKETS = 32 * _PER_DOUBLING
_LEAST_MS = 0.01


class LatencyHistogram:
    """Counts of latencies in logarithmic buckets, from 0.01 ms to half a day.

    Example:
        >>> histogram = LatencyHistogram()
        >>> histogram.add(np.array([10.0] * 99 + [1000.0]))
        >>> round(histogram.percentile(50)), histogram.count
        (10, 100)
    """

    def __init__(self) -> None:
        self.counts: NDArray[np.int64] = np.zeros(_BUCKETS, np.int64)

    @property
    def count(self) -> int:
        """How many latencies have been added."""
        return int(self.counts.sum())

    def add(self, milliseconds: NDArray[np.float64]) -> None:
        """Adds latencies in ms."""
        steps = np.log2(np.maximum(milliseconds, _LEAST_MS) / _LEAST_MS) * _PER_DOUBLING
        self.counts += np.bincount(np.minimum(steps.astype(np.int64), _BUCKETS - 1), minlength=_BUCKETS)

    def merge(self, other: LatencyHistogram) -> None:
        """Adds another histogram."""
        self.counts += other.counts

    def percentile(self, percent: float) -> float:
        """Returns the latency in ms below which `percent` % of all lie; nan without any."""
        total = self.counts.sum()
        if total == 0:
            return float("nan")
        bucket = int(np.searchsorted(np.cumsum(self.counts), total * percent / 100))
        return float(_LEAST_MS * 2 ** ((bucket + 0.5) / _PER_DOUBLING))

    def summary(self) -> Mapping[str, float] | None:
        """Returns p50, p95 and p99 in ms, rounded to 0.01; None without any latency."""
        if not self.count:
            return None
        return {f"p{p}": round(self.percentile(p), 2) for p in (50, 95, 99)}
