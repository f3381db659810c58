"""What pages show, made once for all browsers that ask at about the same time.

Python executes one thread at a time. Many threads that make pages at once take the interpreter from each other and from
the thread that answers, and a page of 20 ms then takes a second or more. So one thread at a time makes pages. Only
those that ask other hosts, and mostly wait, have threads of their own.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup
from starlette.concurrency import run_in_threadpool

KEPT_SECS: Final = 0.5
"""For how long a look serves all browsers that ask."""
_PATIENCE_SECS: Final = 1.0


@dataclass(frozen=True)
class Look:
    """What a page shows, without the parts that depend on who asks."""

    values: dict[str, Any]
    """Of its template."""
    live: Markup
    """The part of the page that changes."""
    to: str = ""
    """The path of the page to go to instead; empty for none."""


class Looks:
    """The last look at each page. Used from one event loop at a time.

    Args:
        clock: monotonic seconds.
        patience_secs: how long a page waits for one that is being made, which may itself wait for ZooKeeper.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, patience_secs: float = _PATIENCE_SECS) -> None:
        self._clock = clock
        self._patience_secs = patience_secs
        self._kept: dict[object, tuple[float, Look]] = {}
        #: By page: the task that makes it; other requests wait for it as well.
        self._making: dict[object, asyncio.Task[Look]] = {}
        self._one = threading.Lock()

    async def of(self, page: object, make: Callable[[], Look], *, far: bool = False) -> tuple[Look, float]:
        """Returns a look at a page.

        Args:
            page: which one, with everything that it depends on.
            make: makes it. Runs on another thread.
            far: whether this asks other hosts.

        Returns:
            The look, and how many seconds it took to make: 0 if somebody else had asked for it.
        """
        kept = self._kept.get(page)
        if kept is not None and self._clock() - kept[0] <= KEPT_SECS:
            return kept[1], 0.0
        making = self._making.get(page)
        if making is not None:
            return await asyncio.shield(making), 0.0
        spent = 0.0

        def timed() -> Look:
            nonlocal spent
            begun = self._clock()
            try:
                return make()
            finally:
                spent = self._clock() - begun

        def alone() -> Look:
            mine = self._one.acquire(timeout=self._patience_secs)
            try:
                return timed()
            finally:
                if mine:
                    self._one.release()

        task = asyncio.create_task(run_in_threadpool(timed if far else alone))
        self._making[page] = task
        task.add_done_callback(lambda done: self._keep(page, done))
        # A browser that goes away takes nothing from those that wait for the same.
        return await asyncio.shield(task), spent

    def forget(self) -> None:
        """Drops all looks, as something was changed: who changed it must see that at once."""
        self._kept.clear()
        self._making.clear()

    def _keep(self, page: object, done: asyncio.Task[Look]) -> None:
        if self._making.get(page) is not done:
            return  # it may be from before a change
        del self._making[page]
        if done.cancelled() or done.exception() is not None:
            return
        now = self._clock()
        self._kept = {name: each for name, each in self._kept.items() if now - each[0] <= KEPT_SECS}
        self._kept[page] = now, done.result()
