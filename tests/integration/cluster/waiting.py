"""Waiting for a state."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE_SECS = 20.0
"""Beyond the time that the rules of sessions allow, for a machine that stands still and a disk that hangs. How quickly
a leader comes is measured by `make failover`."""


def eventually(
    what: Callable[[], T], timeout: float = 60, told: Callable[[], str] = lambda: "it did not happen in time"
) -> T:
    """Returns the first value of `what` that is true; fails with what `told` says if there is none in time."""
    deadline = time.monotonic() + timeout
    while not (value := what()):
        assert time.monotonic() < deadline, told()
        time.sleep(0.01)
    return value
