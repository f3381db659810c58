"""Waiting for a state, and a clock for what waits."""

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
    """Returns the first value of `what` that is true; fails with what `told` says if there is none in time.

    Between two calls it sleeps `every` seconds, and as long as the last call took, up to a quarter of a second, so
    that looking does not take the processor from what it waits for.
    """
    began = time.monotonic()
    deadline = began + timeout
    while not (value := what()):
        now = time.monotonic()
        assert now < deadline, f"{told if isinstance(told, str) else told()}: not within {timeout} s"
        time.sleep(max(every, min(now - began, 0.25)))
        began = time.monotonic()
    return value


class SleptTime:
    """A clock that moves when somebody sleeps; from `at` on, `then` is called after each sleep."""

    def __init__(self, at: float = 0.0, then: Callable[[], object] = lambda: None) -> None:
        self.secs, self.at, self.then = 0.0, at, then

    def now(self) -> float:
        return self.secs

    def sleep(self, secs: float) -> None:
        self.secs += secs
        if self.secs >= self.at:
            self.then()
