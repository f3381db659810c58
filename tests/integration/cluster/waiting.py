"""Waiting for a state."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from lengths import PATIENCE_SECS

T = TypeVar("T")


def eventually(
    what: Callable[[], T], timeout: float = PATIENCE_SECS, told: Callable[[], str] = lambda: "it did not happen in time"
) -> T:
    """Returns the first value of `what` that is true; fails with what `told` says if there is none in time."""
    deadline = time.monotonic() + timeout
    while not (value := what()):
        assert time.monotonic() < deadline, told()
        time.sleep(0.01)
    return value
