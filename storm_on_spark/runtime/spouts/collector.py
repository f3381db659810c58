"""The collector that a spout emits through."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from storm_on_spark.api.streams.stream import DEFAULT_STREAM
from storm_on_spark.api.task.collector import SpoutOutputCollector
from storm_on_spark.runtime.reports.report import Reported, add_reported


class Emitting(Protocol):
    """What a spout emits through; see `SpoutTask`."""

    errors: list[Reported]

    def emit(self, values: Sequence[Any], message_id: Any = None, stream: str = DEFAULT_STREAM) -> list[int]:
        """Emits one tuple."""

    def emit_direct(self, task: int, values: Sequence[Any], message_id: Any, stream: str) -> None:
        """Emits one tuple to one task."""

    def pending_count(self) -> int:
        """Returns how many messages are neither acked nor failed."""


class Collector(SpoutOutputCollector):
    """Emits through a task.

    Args:
        task: the spout's.
    """

    def __init__(self, task: Emitting) -> None:
        self._task = task
        # Replaces the method, which would cost one more call per tuple.
        self.emit = task.emit  # type: ignore[method-assign]

    def emit(self, values: Sequence[Any], message_id: Any = None, stream: str = DEFAULT_STREAM) -> list[int]:
        """See `Emitting.emit`."""
        return self._task.emit(values, message_id, stream)

    def emit_direct(
        self, task: int, values: Sequence[Any], message_id: Any = None, stream: str = DEFAULT_STREAM
    ) -> None:
        """See `Emitting.emit_direct`."""
        self._task.emit_direct(task, values, message_id, stream)

    def report_error(self, error: BaseException) -> None:
        """Adds an error to the task's next report to the coordinator."""
        add_reported(self._task.errors, error)

    def pending_count(self) -> int:
        """Returns how many messages are neither acked nor failed."""
        return self._task.pending_count()
