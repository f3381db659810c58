"""An event that others hear of without waiting for it."""

from __future__ import annotations

from collections.abc import Callable

from storm_on_spark.runtime.processes.ending.signals import InterruptibleEvent


class Announced(InterruptibleEvent):
    """As `threading.Event`; once it is set, it also calls those that want to know.

    So one thread can wait for whichever of several events comes first.

    Example:
        >>> completed, due = Announced(), InterruptibleEvent()
        >>> completed.tell(due.set)
        >>> completed.set()
        >>> due.is_set()
        True
    """

    def __init__(self) -> None:
        super().__init__()
        self._told: list[Callable[[], object]] = []

    def tell(self, hear: Callable[[], object]) -> None:
        """Calls `hear` when the event is set, on the thread that sets it; at once if it is set already."""
        self._told.append(hear)
        if self.is_set():
            hear()

    def set(self) -> None:
        """Sets the event, and calls those that want to know. They may be called more than once."""
        super().set()
        for hear in list(self._told):
            hear()
