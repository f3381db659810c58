"""Noticing a `next_tuple` that does not return: meanwhile its executor gets no acks and calls no other task.

A thread of the host samples the stacks of the executors, so the loops need no bookkeeping.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from types import CodeType, FrameType
from typing import Final

from storm_on_spark.runtime.spouts.batch_spout_task import BatchSpoutTask
from storm_on_spark.runtime.spouts.messages import Blocked
from storm_on_spark.runtime.spouts.spout_task import SpoutTask

BLOCKED_SECS: Final = 5.0
"""Longer than the timeout with which a client library waits for messages by default."""
_LOOK_SECS: Final = 1.0
_CALLS: Final[frozenset[CodeType]] = frozenset((SpoutTask.next_tuple.__code__, BatchSpoutTask.next_tuple.__code__))


class BlockedWatch:
    """Decides which calls are blocked. Pure, except that it reads frames. Each call is reported once.

    Args:
        secs: seconds that a call may take.
    """

    def __init__(self, secs: float = BLOCKED_SECS) -> None:
        self._secs = secs
        #: By thread: the call that was seen, and since when. While it is kept, no other call has that frame.
        self._seen: dict[int, tuple[FrameType, float]] = {}
        self._told: dict[int, FrameType] = {}

    def look(self, threads: Iterable[int], frames: Mapping[int, FrameType], now: float) -> list[Blocked]:
        """Returns the calls that have now been running for the limit.

        Args:
            threads: the executors.
            frames: thread -> its innermost frame.
            now: monotonic seconds.
        """
        found: list[Blocked] = []
        for thread in threads:
            innermost = frames.get(thread)
            call = innermost
            while call is not None and call.f_code not in _CALLS:
                call = call.f_back
            seen = self._seen.pop(thread, None)
            if call is None or innermost is None:
                self._told.pop(thread, None)
                continue
            since = now if seen is None or seen[0] is not call else seen[1]
            self._seen[thread] = call, since
            if now - since >= self._secs and self._told.get(thread) is not call:
                self._told[thread] = call
                task = call.f_locals["self"]
                found.append(Blocked(task.task, task.component, _sentence(task, innermost, self._secs)))
        return found


def watch(threads: Iterable[threading.Thread], tell: Callable[[Blocked], object]) -> None:
    """Watches executors on a separate thread until the process ends.

    Args:
        threads: the executors. Ended ones are skipped.
        tell: called with each blocked call.
    """
    kept, rules = tuple(threads), BlockedWatch()

    def run() -> None:
        while any(thread.is_alive() for thread in kept):
            time.sleep(_LOOK_SECS)
            idents = [thread.ident for thread in kept if thread.ident is not None and thread.is_alive()]
            for blocked in rules.look(idents, sys._current_frames(), time.monotonic()):
                tell(blocked)

    threading.Thread(target=run, name="spout-blocked-watch", daemon=True).start()


def _sentence(task: SpoutTask, innermost: FrameType, secs: float) -> str:
    code = innermost.f_code
    where = f'File "{code.co_filename}", line {innermost.f_lineno}, in {code.co_name}'
    return (
        f'next_tuple of component "{task.component}" (task {task.task}) has not returned for {secs:g} s: {where}. '
        "Meanwhile its executor hears of no acks and fails; it must not block"
    )
