"""Addresses of Pacemakers behind proxies that can be cut, and clocks that can be set.

A configuration may have `failover.routes`, `host:port` of a Pacemaker -> `host:port` where it is reached, and
`failover.clock`, a file with the seconds by which the clock of a driver or a Pacemaker is wrong.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ROUTES = "failover.routes"
CLOCK = "failover.clock"


def install(conf: Mapping[str, Any]) -> None:
    """Makes this process reach Pacemakers as its configuration says."""
    routes: Mapping[str, str] = conf.get(ROUTES) or {}
    connect = socket.create_connection

    def routed(address: tuple[str, int], *more: Any, **options: Any) -> socket.socket:
        host, port = address
        there = routes.get(f"{host}:{port}", f"{host}:{port}")
        host, _, number = there.rpartition(":")
        return connect((host, int(number)), *more, **options)

    if routes:
        socket.create_connection = routed  # type: ignore[assignment]


def clock_of(conf: Mapping[str, Any]) -> Callable[[], float]:
    """Returns the clock of a driver or a Pacemaker."""
    file = conf.get(CLOCK)
    right = time.time

    def now() -> float:
        offset = 0.0
        with contextlib.suppress(OSError, ValueError):
            offset = float(Path(str(file)).read_text("utf-8"))
        return right() + offset

    return right if file is None else now
