"""Answers that are worked out once for all who ask at about the same time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar

_KEPT_SECS: Final = 0.5
"""For how long an answer serves all who ask."""

T = TypeVar("T")


@dataclass
class _Answer:
    #: Held by the thread that works it out; others wait for that.
    lock: threading.Lock = field(default_factory=threading.Lock)
    at: float = float("-inf")
    value: object = None


class Once:
    """The last answer to each question. Any thread may call it; questions don't wait for each other.

    Args:
        clock: monotonic seconds.

    Example:
        >>> now, asked = [10.0], Once(lambda: now[0])
        >>> asked.of("how many", lambda: 1), asked.of("how many", lambda: 2)
        (1, 1)
        >>> now[0] += 1
        >>> asked.of("how many", lambda: 3)
        3
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._answers: dict[str, _Answer] = {}

    def of(self, what: str, make: Callable[[], T]) -> T:
        """Returns an answer, worked out again only when it is no longer fresh."""
        with self._lock:
            answer = self._answers.get(what)
            if answer is None:
                now = self._clock()
                self._answers = {
                    name: each for name, each in self._answers.items() if each.lock.locked() or self._fresh(each, now)
                }
                answer = self._answers[what] = _Answer()
        with answer.lock:
            now = self._clock()
            if not self._fresh(answer, now):
                answer.value, answer.at = make(), now
            found: T = answer.value  # type: ignore[assignment]
            return found

    def forget(self) -> None:
        """Drops all answers, as something was changed."""
        with self._lock:
            self._answers = {}

    def _fresh(self, answer: _Answer, now: float) -> bool:
        return now - answer.at <= _KEPT_SECS
