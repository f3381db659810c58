"""How cases are run, one module for each kind of contender.

A contender runs a case in the calling process and returns its measurements: for each phase the result of `figures`, and
the values for the whole run.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

Figures = dict[str, Any]

_JVM_WARM_UP_SECS = 12
"""Time until its code is compiled; before that, native PySpark reaches a third of its throughput, and Storm half."""


class NotThereError(Exception):
    """A contender can't be set up here; the message is a sentence that says why."""


@dataclass(frozen=True)
class Setup:
    """The harness's input for a run.

    Args:
        source: the file with the sentences.
        folder: for the run's files; empty. started: monotonic seconds when the process was started.
        seconds: how long each phase is measured.
        warm_up: seconds before the first phase.
        settle: seconds before each other phase.
        servers: of Kafka, for the cases that read it.
    """

    source: Path
    folder: Path
    started: float
    seconds: float
    warm_up: float
    settle: float
    servers: str = ""

    @property
    def jvm_warm_up(self) -> float:
        """Seconds before the first phase of a contender whose work is done by the JVM."""
        return max(self.warm_up, _JVM_WARM_UP_SECS)

    def to_dict(self) -> dict[str, Any]:
        """Returns the setup in terms of JSON."""
        return {name: str(value) if isinstance(value, Path) else value for name, value in asdict(self).items()}

    @staticmethod
    def from_dict(document: dict[str, Any]) -> Setup:
        """Returns what `to_dict` made a document of."""
        paths = {name: Path(document[name]) for name in ("source", "folder")}
        return Setup(**{**document, **paths})


def figures(roots: float, seconds: float, cpu_seconds: float, latency_ms: Figures | None, **others: Any) -> Figures:
    """Returns the figures of a phase.

    Args:
        roots: how many sentences, or other values that a spout emits, were done.
        seconds: within which time.
        cpu_seconds: of all processes of the contender.
        latency_ms: p50, p95, p99.
        others: further ones.
    """
    return {
        "roots_per_second": roots / seconds,
        "latency_ms": latency_ms,
        "cores_used": cpu_seconds / seconds,
        "cpu_secs_per_million": 1e6 * cpu_seconds / roots if roots else None,
        **others,
    }
