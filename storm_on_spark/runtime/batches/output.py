"""The output of a micro-batch: what the last operator gives the sink."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from storm_on_spark.api.errors import StormError
from storm_on_spark.runtime.codec import chunk
from storm_on_spark.runtime.codec.chunk import Kind
from storm_on_spark.runtime.reports.report import Failure, TaskMetrics


@dataclass
class BatchOutput:
    """Chunks by what the sink does with them."""

    outcomes: list[bytes] = field(default_factory=list)
    """OUTCOME, LEFT and READ chunks."""
    carried: list[bytes] = field(default_factory=list)
    """The tuples of back edges, for the next micro-batch."""
    written: list[bytes] = field(default_factory=list)
    """What the driver writes."""
    reports: list[TaskMetrics | Failure] = field(default_factory=list)

    @classmethod
    def of(cls, chunks: Iterable[bytes]) -> BatchOutput:
        """Sorts chunks.

        Raises:
            StormError: one of them is for a task.
        """
        found = cls()
        for body in chunks:
            header = chunk.read_header(body)
            if header.kind in (Kind.OUTCOME, Kind.LEFT, Kind.READ):
                found.outcomes.append(body)
            elif header.kind == Kind.REPORT:
                found.reports += chunk.read_report(body)
            elif header.kind == Kind.WRITTEN:
                found.written.append(body)
            elif header.flags & chunk.CARRIED:
                found.carried.append(body)
            else:
                raise StormError(f"a chunk for task {header.target} reached the sink (kind {header.kind})")
        return found

    @property
    def fatal(self) -> Failure | None:
        """The failure that ends the topology, if there is one."""
        return next((found for found in self.reports if isinstance(found, Failure) and found.fatal), None)
