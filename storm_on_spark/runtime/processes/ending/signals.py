"""Signals that ask a process to end.

A handler runs on the main thread, between any two of its steps. That thread may just then hold the lock of a
`threading.Event`, in `wait` or in an earlier handler's `set`; then `set` would wait for the lock for ever. Two signals
at once are enough: 16 of 150 processes hung.

A signal that comes just before a wait blocks, or that another thread takes, does not interrupt it, and Python calls the
handler only after the wait: 3 of 734 interrupts of a notebook's cell were not heard. So no wait here blocks for long.
"""

from __future__ import annotations

import _thread
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

TO_END = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LONGEST_SECS = 0.5

all_heard: Callable[[], object] = lambda: None  # noqa: E731 # a variable
"""Returns once a thread that also gets signals has got all that have come."""


class InterruptibleEvent(threading.Event):
    """An event for which the main thread can wait without limit, and still hears signals."""

    def wait(self, timeout: float | None = None) -> bool:
        """Waits as `threading.Event.wait`; every signal's handler is called within half a second."""
        until = math.inf if timeout is None else time.monotonic() + timeout
        while not super().wait(max(0.0, min(_LONGEST_SECS, until - time.monotonic()))):
            if time.monotonic() >= until:
                return False
        return True


def setting(event: threading.Event) -> Callable[[int, FrameType | None], None]:
    """Returns a handler that sets an event.

    Example:
        >>> told = threading.Event()
        >>> before = signal.signal(signal.SIGUSR1, setting(told))
        >>> signal.raise_signal(signal.SIGUSR1)
        >>> told.wait(60)
        True
        >>> _ = signal.signal(signal.SIGUSR1, before)
    """

    def on_signal(number: int, frame: FrameType | None) -> None:
        # Another thread can wait for the lock. `threading.Thread` has its own locks, which its `start` waits for.
        _thread.start_new_thread(event.set, ())

    return on_signal


def handled() -> tuple[signal.Signals, ...]:
    """Returns the signals that are to end this process: all but SIGHUP where it is ignored, as `nohup` wants it."""
    return tuple(
        number for number in TO_END if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN
    )


def put_back(handlers: Mapping[signal.Signals, Any] | Mapping[int, Any]) -> None:
    """Installs handlers again that were replaced for a while. Signals in the meantime were for the others."""
    if not handlers:
        return  # on another thread than the main one there are never any
    all_heard()
    for number, handler in handlers.items():
        signal.signal(number, handler)


@contextmanager
def handling(handler: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    """Calls `handler` on the signals that end this process; works in the main thread only."""
    before = {number: signal.signal(number, handler) for number in handled()}
    try:
        yield
    finally:
        put_back(before)


@contextmanager
def ended_by_signal() -> Iterator[InterruptibleEvent]:
    """Yields an event that is set when this process is told to end; of use in the main thread only."""
    ended = InterruptibleEvent()
    with handling(setting(ended)):
        yield ended


@contextmanager
def held_back(*signals: signal.Signals) -> Iterator[None]:
    """Blocks signals for this thread, and for processes that it starts within the block.

    Such a process gets them when it unblocks them, as `ignore_interrupts` does. Before that it has no handler: an
    interrupt while it imports would end it with a traceback.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def ignore_interrupts() -> None:
    """Ignores Ctrl-C from now on. The whole process group gets it, and the driver decides when this process ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
