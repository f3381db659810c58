"""What users write to get samples of tuples: Storm's `IEventLogger`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class EventInfo:
    """A tuple that was emitted, and is among the samples."""

    ts: float
    """Seconds since the epoch."""
    component: str
    task: int
    message_id: str
    """Of what a spout emitted; empty for others."""
    values: str
    """The values, as Python prints a tuple: cut to 200 characters, and without secrets."""
    stream: str = "default"


class IEventLogger(ABC):
    """Takes samples of emitted tuples, in the driver, about once a second while tuples are sampled.

    `topology.event.logger.register` names event loggers: a list of mappings with `class`, `module.Class`, and
    `arguments`.

    Example:
        >>> class Printing(IEventLogger):
        ...     def log(self, event):
        ...         print(event.component, event.values)
        >>> Printing().log(EventInfo(0.0, "split", 3, "", "('storm',)"))
        split ('storm',)
    """

    def prepare(self, conf: Mapping[str, Any], arguments: Mapping[str, Any]) -> None:  # noqa: B027 # most need nothing
        """Called once, before the first tuple.

        Args:
            conf: of the topology.
            arguments: what the configuration says of this logger; empty if it says nothing.
        """

    @abstractmethod
    def log(self, event: EventInfo) -> None:
        """Takes a tuple; the first exception is logged, and the topology runs on."""

    def close(self) -> None:  # noqa: B027 # most need nothing
        """Called at the end, after the last tuple."""
