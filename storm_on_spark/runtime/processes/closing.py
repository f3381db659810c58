"""Objects that a `with` statement closes, or starts and closes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import TypeVar

C = TypeVar("C", bound="Closing")


class Closing(ABC):
    """Something that is closed at the end of a `with` statement."""

    @abstractmethod
    def close(self) -> None:
        """Ends it. Calling it again does nothing."""

    def __enter__(self: C) -> C:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


S = TypeVar("S", bound="Service")


class Service(Closing):
    """Something that a `with` statement starts and closes."""

    @abstractmethod
    def start(self) -> None:
        """Starts it."""

    def __enter__(self: S) -> S:
        try:
            self.start()
        except BaseException:
            # Ends whatever was already started, also after Ctrl-C.
            self.close()
            raise
        return self
