"""Signals while Spark starts and ends in a process that isn't ours, such as a script's or a notebook's.

The user's code decides what a signal does. It is only delayed until nothing is lost by it.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType, SimpleNamespace
from typing import Any, Final

from storm_on_spark.runtime.processes.ending.signals import TO_END, put_back

_AGAIN_SECS: Final = 0.1
_LONG_SECS: Final = 10.0
"""A second interrupt this long after the first is not delayed any more: the JVM may not answer."""

Handler = Callable[[int, FrameType | None], Any]

_taken: Handler | None = None
"""The handler of `take_over`."""


@contextlib.contextmanager
def held(hurry: Callable[[], object], exiting: bool = False, after_secs: float = 0.0) -> Iterator[None]:
    """Delays signals that end this process until the end of the block, and makes the block end soon.

    Only signals that Python, PySpark or `take_over` handles are delayed; handlers of other code are left alone.

    Args:
        hurry: makes the block end. It is called again and again, from the first signal until the end of the block.
            Exceptions that the block raises after a signal are ignored.
        exiting: whether the process ends anyway. Then an interrupt has no further effect.
        after_secs: how long to wait after the first signal before `hurry` is called.
    """
    former: dict[int, Handler] = {}
    seen: list[int] = []
    told, done = threading.Event(), threading.Event()

    def see_to_it() -> None:
        pause = after_secs or _AGAIN_SECS
        while not done.wait(pause):
            hurry()
            pause = _AGAIN_SECS

    def on_signal(number: int, frame: FrameType | None) -> None:
        seen.append(number)
        if not told.is_set():
            told.set()
            threading.Thread(target=see_to_it, name="end-of-spark", daemon=True).start()

    if threading.current_thread() is threading.main_thread():
        for number in TO_END:
            handler = signal.getsignal(number)
            if callable(handler) and _ends(handler):
                former[int(number)] = handler
                signal.signal(number, on_signal)
    try:
        yield
    except BaseException:
        if not seen:
            raise
    finally:
        done.set()
        put_back(former)
    for each in seen:
        if not (exiting and each == signal.SIGINT):
            former[each](each, None)


@contextlib.contextmanager
def handlers_kept() -> Iterator[None]:
    """Lets PySpark install its handler of Ctrl-C, which raises, at the end only, and only if Python's is there."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    from pyspark.core import context

    before = signal.getsignal(signal.SIGINT)
    theirs: list[Handler] = []

    # There is no setting for it. PySpark's module uses its name `signal` for nothing else.
    module: Any = context
    stand_in = SimpleNamespace(SIGINT=signal.SIGINT, signal=lambda number, handler: theirs.append(handler))
    real, module.signal = module.signal, stand_in
    try:
        yield
    finally:
        module.signal = real
    if theirs and before is signal.default_int_handler:
        signal.signal(signal.SIGINT, theirs[-1])


class InterruptsWait:
    """Delays interrupts while this process talks to Spark's JVM, until nothing is lost by them.

    During a command, Py4J logs tracebacks for an interrupt, and PySpark's handler cancels all jobs of the session,
    including those of other topologies. A handler that other code installed stays.

    Example:
        >>> with InterruptsWait() as interrupts:
        ...     # commands to the JVM
        ...     with interrupts.let_through():
        ...         pass  # waits for something else
        >>> interrupts.have_come
        False
    """

    def __init__(self) -> None:
        #: Whether one has come that was not raised.
        self.have_come = False
        self._since = 0.0
        self._former: dict[int, Any] = {}

    def __enter__(self) -> InterruptsWait:
        before = signal.getsignal(signal.SIGINT)
        is_ours = before is signal.default_int_handler or is_pysparks(before)
        if is_ours and threading.current_thread() is threading.main_thread():
            self._former = {signal.SIGINT: before}
            signal.signal(signal.SIGINT, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        put_back(self._former)
        self._former = {}

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if not self.have_come:
            self.have_come, self._since = True, time.monotonic()
        elif time.monotonic() - self._since > _LONG_SECS:
            raise KeyboardInterrupt

    def check(self) -> None:
        """Raises an interrupt that has come and waits.

        Raises:
            KeyboardInterrupt: one has.
        """
        if self.have_come:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def let_through(self) -> Iterator[None]:
        """Handles interrupts as usual within: the block does not talk to the JVM, or protects itself.

        Raises:
            KeyboardInterrupt: one has come.
        """
        self.check()
        self.__exit__()
        try:
            yield
        finally:
            self.__enter__()


def take_over(handler: Handler) -> None:
    """Installs a handler, which ends this process, for SIGTERM and SIGHUP where they would end it without any."""
    global _taken
    _taken = handler
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, handler)


def give_back(handler: Handler) -> None:
    """Takes that handler away again."""
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is handler:
                signal.signal(number, signal.SIG_DFL)


def is_pysparks(handler: object) -> bool:
    """Returns whether PySpark has installed it, to cancel all jobs of the session at an interrupt."""
    return getattr(handler, "__module__", "").startswith("pyspark")


def _ends(handler: object) -> bool:
    return handler is signal.default_int_handler or is_pysparks(handler) or (_taken is not None and handler is _taken)
