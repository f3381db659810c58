"""Waiting for a state."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from lengths import PATIENCE_SECS

T = TypeVar("T")


def eventually(
    what: Callable[[], T],
    told: Callable[[], object] | str = "it did not happen",
    timeout: float = PATIENCE_SECS,
    every: float = 0.01,
) -> T:
    """Returns the first value of `what` that is true; fails with what `told` says if there is none in time."""
    deadline = time.monotonic() + timeout
    while not (value := what()):
        assert time.monotonic() < deadline, f"{told if isinstance(told, str) else told()}: not within {timeout} s"
        time.sleep(every)
    return value
