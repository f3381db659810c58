"""What a Pacemaker counts: under Storm's names, and for Prometheus, by its own client library."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from prometheus_client.core import Metric

_SIZES: Final = (256, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 262144, 1048576, 10485760)
"""Bounds of the histogram of heartbeats' sizes, in bytes."""
_COUNTERS: Final[Mapping[str, tuple[str, str]]] = {
    # Storm's name: Prometheus' name, what it counts. One of Storm's names has an equals sign.
    "pacemaker:send-pulse-count": ("pacemaker_send_pulse_total", "Heartbeats written."),
    "pacemaker:total-receive-size": ("pacemaker_received_bytes_total", "Bytes of heartbeats written."),
    "pacemaker:get-pulse=count": ("pacemaker_get_pulse_total", "Heartbeats asked for."),
    "pacemaker:total-sent-size": ("pacemaker_sent_bytes_total", "Bytes of heartbeats read."),
}
_OWN: Final[Mapping[str, str]] = {
    "pacemaker_requests_refused_total": "Requests answered by NOT_AUTHORIZED.",
    "pacemaker_logins_total": "Logins.",
    "pacemaker_logins_failed_total": "Connections closed in a login.",
    "pacemaker_connections_total": "Connections taken.",
    "pacemaker_connections_refused_total": "Connections beyond a limit.",
    "pacemaker_connections_dropped_total": "Connections closed for what they sent, or for silence.",
    "pacemaker_heartbeats_expired_total": "Heartbeats that nobody wrote again.",
}


class Metrics:
    """Counters, and gauges that are evaluated when metrics are read. One thread writes; any may read.

    Example:
        >>> metrics = Metrics()
        >>> metrics.received(3000)
        >>> metrics.storm()["pacemaker:send-pulse-count"], metrics.storm()["pacemaker:total-receive-size"]
        (1, 3000)
    """

    def __init__(self) -> None:
        self._counts = dict.fromkeys([*_COUNTERS, *_OWN], 0)
        self._sizes = [0] * (len(_SIZES) + 1)
        self._gauges: dict[str, tuple[str, Callable[[], float]]] = {}

    def gauge(self, name: str, text: str, read: Callable[[], float]) -> None:
        """Adds a value that is evaluated when metrics are read."""
        self._gauges[name] = text, read

    def count(self, name: str, by: int = 1) -> None:
        """Counts one of the events that Storm has no name for."""
        self._counts[name] += by

    def received(self, size: int) -> None:
        """Counts a heartbeat that was written."""
        self._counts["pacemaker:send-pulse-count"] += 1
        self._counts["pacemaker:total-receive-size"] += size
        self._sizes[bisect.bisect_left(_SIZES, size)] += 1

    def sent(self, value: bytes | None) -> None:
        """Counts a heartbeat that was asked for, and its bytes if it was there."""
        self._counts["pacemaker:get-pulse=count"] += 1
        if value is not None:
            self._counts["pacemaker:total-sent-size"] += len(value)

    def storm(self) -> dict[str, float]:
        """Returns what Storm's Pacemaker reports, by its names; of the histogram, how many of each size at most."""
        sizes = {f"pacemaker:heartbeat-size.{bound}": count for bound, count in self._cumulated()}
        keys = {"pacemaker:size-total-keys": self._gauges["pacemaker_keys"][1]()} if self._gauges else {}
        return {**{name: self._counts[name] for name in _COUNTERS}, **sizes, **keys}

    def collect(self) -> Iterator[Metric]:
        """Yields everything, as a collector of `prometheus_client` does."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        for storm, (name, text) in _COUNTERS.items():
            yield CounterMetricFamily(name, f"{text} Storm: {storm}", self._counts[storm])
        for name, text in _OWN.items():
            yield CounterMetricFamily(name, text, self._counts[name])
        for name, (text, read) in self._gauges.items():
            yield GaugeMetricFamily(name, text, read())
        buckets = [(bound, float(count)) for bound, count in self._cumulated()]
        total = self._counts["pacemaker:total-receive-size"]
        text = "Sizes of heartbeats written. Storm: pacemaker:heartbeat-size"
        yield HistogramMetricFamily("pacemaker_heartbeat_size_bytes", text, buckets, total)

    def prometheus(self) -> str:
        """Returns everything, and what is known of this process, as Prometheus' text format, version 0.0.4."""
        from prometheus_client import GC_COLLECTOR, PLATFORM_COLLECTOR, PROCESS_COLLECTOR, generate_latest
        from prometheus_client.registry import CollectorRegistry

        registry = CollectorRegistry(auto_describe=False)
        for each in (self, PROCESS_COLLECTOR, PLATFORM_COLLECTOR, GC_COLLECTOR):
            registry.register(each)
        return generate_latest(registry).decode()

    def _cumulated(self) -> list[tuple[str, int]]:
        bounds = [*map(str, _SIZES), "+Inf"]
        return [(bound, sum(self._sizes[: index + 1])) for index, bound in enumerate(bounds)]
