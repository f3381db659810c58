"""What a Pacemaker counts: under Storm's names, and as Prometheus text."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Mapping
from typing import Final

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

    def prometheus(self) -> str:
        """Returns everything as Prometheus' text format, version 0.0.4."""
        lines: list[str] = []

        def add(name: str, text: str, kind: str, samples: list[tuple[str, float]]) -> None:
            lines.extend((f"# HELP {name} {text}", f"# TYPE {name} {kind}"))
            lines.extend(f"{sample} {value}" for sample, value in samples)

        for storm, (name, text) in _COUNTERS.items():
            add(name, f"{text} Storm: {storm}", "counter", [(name, self._counts[storm])])
        for name, text in _OWN.items():
            add(name, text, "counter", [(name, self._counts[name])])
        for name, (text, read) in self._gauges.items():
            add(name, text, "gauge", [(name, read())])
        size = "pacemaker_heartbeat_size_bytes"
        buckets: list[tuple[str, float]] = [(f'{size}_bucket{{le="{bound}"}}', n) for bound, n in self._cumulated()]
        total = self._counts["pacemaker:total-receive-size"]
        ends: list[tuple[str, float]] = [(f"{size}_sum", total), (f"{size}_count", sum(self._sizes))]
        add(size, "Sizes of heartbeats written. Storm: pacemaker:heartbeat-size", "histogram", [*buckets, *ends])
        return "\n".join([*lines, ""])

    def _cumulated(self) -> list[tuple[str, int]]:
        bounds = [*map(str, _SIZES), "+Inf"]
        return [(bound, sum(self._sizes[: index + 1])) for index, bound in enumerate(bounds)]
