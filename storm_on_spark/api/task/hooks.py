"""Task hooks: user code that receives an event for every action of a task."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from storm_on_spark.api.tuple import Tuple


@dataclass(frozen=True)
class EmitInfo:
    """A task emitted a tuple."""

    values: Sequence[Any]
    stream: str
    task_id: int
    """The emitting task."""
    out_tasks: Sequence[int]
    """The tasks that receive the tuple."""


@dataclass(frozen=True)
class SpoutAckInfo:
    """A spout's tuple tree is complete."""

    message_id: Any
    task_id: int
    complete_latency_ms: float | None
    """Time from emit to ack; `None` if it wasn't measured."""


@dataclass(frozen=True)
class SpoutFailInfo:
    """A spout's tuple tree failed or timed out."""

    message_id: Any
    task_id: int
    fail_latency_ms: float | None
    """Time from emit to fail; `None` if it wasn't measured."""


@dataclass(frozen=True)
class BoltExecuteInfo:
    """A bolt executed a tuple."""

    tuple: Tuple
    task_id: int
    execute_latency_ms: float | None
    """Time in `execute`; `None` if it wasn't measured."""


@dataclass(frozen=True)
class BoltAckInfo:
    """A bolt acked a tuple."""

    tuple: Tuple
    task_id: int
    process_latency_ms: float | None
    """Time from `execute` to ack; `None` if it wasn't measured."""


@dataclass(frozen=True)
class BoltFailInfo:
    """A bolt failed a tuple."""

    tuple: Tuple
    task_id: int
    fail_latency_ms: float | None
    """Time from `execute` to fail; `None` if it wasn't measured."""


class ITaskHook(ABC):
    """The interface that a task calls. Extend `BaseTaskHook`, which implements all methods."""

    @abstractmethod
    def prepare(self, conf: Mapping[str, Any], context: Any) -> None:
        """Called once, when the hook is added.

        Args:
            conf: the task's configuration.
            context: the task's `TopologyContext`.
        """

    @abstractmethod
    def cleanup(self) -> None:
        """Called when the task stops."""

    @abstractmethod
    def emit(self, info: EmitInfo) -> None:
        """Called when the task emitted a tuple."""

    @abstractmethod
    def spout_ack(self, info: SpoutAckInfo) -> None:
        """Called when a tuple of this spout task was acked."""

    @abstractmethod
    def spout_fail(self, info: SpoutFailInfo) -> None:
        """Called when a tuple of this spout task failed."""

    @abstractmethod
    def bolt_execute(self, info: BoltExecuteInfo) -> None:
        """Called when this bolt task executed a tuple."""

    @abstractmethod
    def bolt_ack(self, info: BoltAckInfo) -> None:
        """Called when this bolt task acked a tuple."""

    @abstractmethod
    def bolt_fail(self, info: BoltFailInfo) -> None:
        """Called when this bolt task failed a tuple."""
