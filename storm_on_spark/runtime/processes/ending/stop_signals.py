"""The signals that end a run: the first one drains it, the second one stops it at once."""

from __future__ import annotations

import _thread
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from storm_on_spark.runtime.processes.ending import at_once
from storm_on_spark.runtime.processes.ending.signals import InterruptibleEvent, handling

_ONE_SECS: Final = 1.0
"""SIGTERM and SIGHUP that come within this time of each other count once: `make`, `timeout` and terminals that close
send a signal to the process and to its group."""
_END_SECS: Final = 15.0
"""How long an end in order may take after the second signal."""


class Stopper:
    """Counts the signals within `counting`. The third ends the process, as does the second if the end takes too long.

    Args:
        clock: monotonic seconds.
        kill: ends the process at once.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, kill: Callable[[int], object] = at_once.end
    ) -> None:
        self.count = 0
        #: The last signal.
        self.number = int(signal.SIGINT)
        #: Set whenever the count has changed. Whoever waits for that clears it.
        self.stirred = InterruptibleEvent()
        self._clock = clock
        self._kill = kill
        #: When SIGTERM or SIGHUP came last.
        self._last = -math.inf
        self._pid = os.getpid()

    @contextmanager
    def counting(self) -> Iterator[Stopper]:
        """Handles the signals within the block, if this is the main thread; elsewhere nothing changes."""
        if threading.current_thread() is not threading.main_thread():
            yield self
            return
        with handling(self.on_signal):
            yield self

    def on_signal(self, number: int, frame: FrameType | None = None) -> None:
        """Counts a signal."""
        if os.getpid() != self._pid:  # a forked child, which has the handler, too
            os._exit(128 + number)
        if number != signal.SIGINT:
            before, self._last = self._last, self._clock()
            if self._last - before < _ONE_SECS:
                return
        self.count += 1
        self.number = number
        # Another thread can wait for the event's lock; see `signals`.
        _thread.start_new_thread(self.stirred.set, ())
        if self.count == 2:
            threading.Thread(target=self._see_to_it, name="stop-at-once", daemon=True).start()
        elif self.count > 2:
            # Even the end at once hangs.
            self._kill(number)

    def drain(self) -> None:
        """Counts a request to end that came in another way, like a first signal. Signals after it count as usual."""
        self.count = max(1, self.count)
        self.stirred.set()

    def _see_to_it(self) -> None:
        time.sleep(_END_SECS)
        self._kill(self.number)
