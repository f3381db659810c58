"""Latencies as sketches: DDSketch of the library `ddsketch`, with counts by bin that can also be subtracted.

A quantile is off by at most 1.5 % of its value, whatever the distribution. A KLL sketch adds an array of latencies in a
tenth of the time, but its error is in the rank: its p99 may be any value between p98 and p100. Nor can it be
subtracted, so a window would have to add up its buckets whenever it is read. See decision 44.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ddsketch.mapping import LogarithmicMapping

_ACCURACY: Final = 0.01
_LEAST_MS: Final = 1e-4
"""A tenth of a microsecond; shorter latencies count as this one."""
_MOST_MS: Final = 1e15
_LOWER_BITS: Final = np.uint32(16)
"""Bits of a float32 that are ignored, so that a table can give the bin. This adds 0.4 % to the error."""
_MIDDLE: Final = np.uint32(1 << 15)
QUANTILES: Final = (50, 95, 99)


@functools.cache
def _mapping() -> LogarithmicMapping:
    from ddsketch.mapping import LogarithmicMapping  # 10 ms that a process without latencies need not spend

    return LogarithmicMapping(_ACCURACY)


def bin_of(milliseconds: float) -> int:
    """Returns the bin of one latency."""
    inside = _LEAST_MS <= milliseconds <= _MOST_MS
    return int(_mapping().key(milliseconds if inside else min(max(milliseconds, _LEAST_MS), _MOST_MS)))


def bins_of(milliseconds: NDArray[np.floating[Any]]) -> dict[int, int]:
    """Returns the number of latencies in each bin.

    Example:
        >>> bins = bins_of(np.array([10.0] * 99 + [1000.0]))
        >>> sorted(bins.values()), round(quantile(bins, 50))
        ([1, 99], 10)
    """
    if not len(milliseconds):
        return {}
    keys = _keys()[_upper(milliseconds) - _upper(np.array([_LEAST_MS]))[0]]
    least = keys.min()
    counted = np.bincount(keys - least)
    places = np.flatnonzero(counted)
    return dict(zip((places + least).tolist(), counted[places].tolist(), strict=True))


def _upper(milliseconds: NDArray[np.floating[Any]]) -> NDArray[np.int64]:
    """Returns the upper bits of latencies; they sort as the latencies do."""
    bits = np.clip(milliseconds, _LEAST_MS, _MOST_MS).astype(np.float32).view(np.uint32)
    upper: NDArray[np.int64] = (bits >> _LOWER_BITS).astype(np.int64)
    return upper


@functools.cache
def _keys() -> NDArray[np.int64]:
    """Returns the bin of each of the few thousand latencies that differ in their upper bits, from the shortest on."""
    first, last = _upper(np.array([_LEAST_MS, _MOST_MS])).tolist()
    # The middle of all that have the same upper bits.
    values = ((np.arange(first, last + 1, dtype=np.uint32) << _LOWER_BITS) + _MIDDLE).view(np.float32)
    return np.array([_mapping().key(value) for value in values.tolist()], np.int64)


def quantile(bins: Mapping[int, int], percent: float) -> float:
    """Returns the latency in ms that `percent` % of all do not exceed; nan without any."""
    rank = sum(bins.values()) * percent / 100
    for key in sorted(bins):
        rank -= bins[key]
        if rank <= 0:
            return float(_mapping().value(key))
    return float("nan")


def quantiles(bins: Mapping[int, int], percents: Iterable[float] = QUANTILES) -> dict[str, float] | None:
    """Returns p50, p95 and p99 in ms; None without any latency."""
    return {f"p{p:g}": _rounded(quantile(bins, p)) for p in percents} if bins else None


def _rounded(milliseconds: float) -> float:
    """Returns a latency with four digits: the sketch is not more exact."""
    return float(f"{milliseconds:.4g}")


class Latencies:
    """Latencies of one kind: the number in each bin, and their sum.

    Example:
        >>> latencies = Latencies()
        >>> latencies.add(np.array([10.0] * 99 + [1000.0]))
        >>> latencies.count, latencies.total_ns, round(latencies.percentile(50))
        (100, 1990000000, 10)
    """

    def __init__(self) -> None:
        self.bins: dict[int, int] = {}
        self.total_ns = 0

    @property
    def count(self) -> int:
        """How many latencies have been added."""
        return sum(self.bins.values())

    def add(self, milliseconds: NDArray[np.floating[Any]]) -> None:
        """Adds latencies in ms."""
        if len(milliseconds):
            milliseconds = np.clip(milliseconds, 0.0, _MOST_MS)
            self._add(bins_of(milliseconds), round(float(milliseconds.sum()) * 1e6))

    def add_one(self, milliseconds: float) -> None:
        """Adds one latency in ms, in a tenth of the time."""
        milliseconds = min(max(milliseconds, 0.0), _MOST_MS)
        self.total_ns += round(milliseconds * 1e6)
        key = bin_of(milliseconds)
        self.bins[key] = self.bins.get(key, 0) + 1

    def merge(self, other: Latencies) -> None:
        """Adds those of another."""
        self._add(other.bins, other.total_ns)

    def _add(self, bins: Mapping[int, int], total_ns: int) -> None:
        self.total_ns += total_ns
        for key, count in bins.items():
            self.bins[key] = self.bins.get(key, 0) + count

    def percentile(self, percent: float) -> float:
        """Returns the latency in ms that `percent` % of all do not exceed; nan without any."""
        return quantile(self.bins, percent)

    def summary(self) -> dict[str, float] | None:
        """Returns p50, p95 and p99 in ms; None without any latency."""
        return quantiles(self.bins)
