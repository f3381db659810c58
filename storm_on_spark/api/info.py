"""What a running topology tells about itself."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

TopologyStatus = Literal["ACTIVE", "INACTIVE", "KILLED", "COMPLETED", "FAILED"]
"""`COMPLETED`: every spout is exhausted and nothing is pending."""


@dataclass(frozen=True)
class ErrorInfo:
    """An error that a component raised or reported."""

    component: str
    task: int
    message: str
    time: float
    """Seconds since the epoch."""


@dataclass(frozen=True)
class ComponentInfo:
    """What one component has done since the topology started; the tasks together."""

    id: str
    kind: str
    """The value of its `ComponentKind`."""
    tasks: int
    """How many tasks it has."""
    executed: int = 0
    """Tuples executed; for spouts, calls of `next_tuple` don't count: 0."""
    emitted: int = 0
    """Tuples emitted, each counted once however many tasks received it."""
    acked: int = 0
    failed: int = 0
    execute_latency_ms: float | None = None
    """Mean time in `execute` per tuple; `None` for spouts and before the first tuple."""
    errors: tuple[ErrorInfo, ...] = ()
    """The last few errors, oldest first."""

    def to_dict(self) -> dict[str, Any]:
        """Returns the same in terms of JSON."""
        return asdict(self) | {"errors": [asdict(error) for error in self.errors]}


@dataclass(frozen=True)
class TopologyInfo:
    """A topology's state at one moment.

    Example:
        >>> info = TopologyInfo("word-count", "ACTIVE", 12.5, emitted=100, acked=90, pending=10,
        ...                     complete_latency_ms={"p50": 80.0, "p95": 120.0, "p99": 200.0})
        >>> info.to_dict()["complete_latency_ms"]["p99"]
        200.0
    """

    name: str
    status: TopologyStatus
    uptime_secs: float
    emitted: int = 0
    """Tuples that spouts emitted, with and without a message id."""
    acked: int = 0
    """Spout tuples whose trees are complete."""
    failed: int = 0
    """Spout tuples whose trees failed or timed out."""
    pending: int = 0
    """Spout tuples with a message id that are neither acked nor failed."""
    complete_latency_ms: Mapping[str, float] | None = None
    """From emit to ack: `p50`, `p95` and `p99`; `None` before the first ack."""
    components: Mapping[str, ComponentInfo] = field(default_factory=dict)
    """By component id."""
    error: str | None = None
    """Why the topology failed, if it did."""

    def to_dict(self) -> dict[str, Any]:
        """Returns the same in terms of JSON."""
        latency = self.complete_latency_ms
        return {
            "name": self.name,
            "status": self.status,
            "uptime_secs": self.uptime_secs,
            "emitted": self.emitted,
            "acked": self.acked,
            "failed": self.failed,
            "pending": self.pending,
            "complete_latency_ms": None if latency is None else dict(latency),
            "components": {name: component.to_dict() for name, component in self.components.items()},
            "error": self.error,
        }
