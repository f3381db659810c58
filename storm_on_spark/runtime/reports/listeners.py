"""A thread of the driver that tells users' objects what has happened; a slow one does not delay the topology."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, Final, Generic, TypeVar

log = logging.getLogger(__name__)

_END_SECS: Final = 15.0

L = TypeVar("L")


class Listeners(ABC, Generic[L]):
    """Tells all listeners the news now and then, and a last time at the end; the first error of each is logged.

    Args:
        listeners: prepared ones.
        every_secs: seconds between two times.
    """

    kind: ClassVar[str]
    """What a listener is, for the log."""

    def __init__(self, listeners: Sequence[L], every_secs: float) -> None:
        self._listeners = listeners
        self._every_secs = every_secs
        self._ends = threading.Event()
        #: Those of which an error was logged.
        self._failed: set[int] = set()
        self._thread = threading.Thread(target=self._run, name=self.kind.replace(" ", "-"), daemon=True)

    @abstractmethod
    def tell(self) -> None:
        """Tells all listeners what has happened since the last call."""

    @abstractmethod
    def end(self, listener: L) -> None:
        """Tells a listener that nothing more will come."""

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def close(self) -> None:
        """Tells the last news and ends the listeners. Waits at most 15 s for one that hangs."""
        self._ends.set()
        self._thread.join(_END_SECS)

    def each(self, call: Callable[[L], object]) -> None:
        """Calls something of each listener, whatever that raises."""
        for number, listener in enumerate(self._listeners):
            try:
                call(listener)
            except Exception as error:  # it is the user's
                if number not in self._failed:
                    self._failed.add(number)
                    name = type(listener).__name__
                    log.warning("the %s %s raised; further errors are not logged: %r", self.kind, name, error)

    def _run(self) -> None:
        while not self._ends.wait(self._every_secs):
            self.tell()
        self.tell()
        self.each(self.end)
