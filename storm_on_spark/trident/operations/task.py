"""What a task gives to all operations in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from storm_on_spark.streams.operations.processor import Place


@dataclass(frozen=True)
class Task:
    """A task of a bolt that executes batches."""

    index: int
    """Counted from 0 among the tasks of the bolt."""
    tasks: int
    """How many there are."""
    report: Callable[[BaseException], None]
    """Shows an error in the topology's status."""
    kept: Callable[[int], Any]
    """Returns what an operation keeps: a state, or an emitter of a spout."""
    time_ms: Callable[[], int]
    """Returns the topology's time."""


def task_of(place: Place) -> Task:
    """Returns the task of an operation."""
    task = place.task
    assert isinstance(task, Task)
    return task
