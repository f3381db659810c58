"""Output of tasks for the sink since the last barrier, combined as if from one micro-batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from storm_on_spark.runtime.batches.outcomes import merged
from storm_on_spark.runtime.codec import chunk
from storm_on_spark.runtime.reports.groups import Groups
from storm_on_spark.runtime.reports.report import Failure, TaskMetrics, both
from storm_on_spark.runtime.tracking.acker import ACKED, Outcome

_MOST_FAILURES = 200
"""Different errors between two barriers; a bolt may fail on every tuple."""


class Gathered:
    """Outcomes, errors, counters and carried tuples.

    Args:
        carried: chunks of back edges that waited at the last barrier.
    """

    def __init__(self, carried: Sequence[bytes] = ()) -> None:
        self.at_barrier = tuple(carried)
        self._outcomes: list[Outcome] = []
        #: Roots that were acked in small rounds.
        self._acked: list[int] = []
        self._failures = Groups(_MOST_FAILURES)
        self._metrics: dict[int, TaskMetrics] = {}
        #: Chunks of back edges that wait for the next round.
        self.carried: list[bytes] = list(carried)

    def add_outcome(self, outcome: Outcome) -> None:
        """Adds completed and failed roots."""
        self._outcomes.append(outcome)

    def add_acked(self, roots: Iterable[int]) -> None:
        """Adds roots that were acked."""
        self._acked += roots

    def add_reports(self, reports: Iterable[TaskMetrics | Failure]) -> None:
        """Adds counters and errors, which are not fatal."""
        for report in reports:
            if isinstance(report, Failure):
                self._failures.add(report)
            else:
                known = self._metrics.get(report.task)
                self._metrics[report.task] = report if known is None else both(known, report)

    def busy(self) -> dict[int, float]:
        """Returns for how many seconds each task has executed."""
        return {task: metrics.seconds for task, metrics in self._metrics.items()}

    def add(self, later: Gathered) -> None:
        """Adds later output."""
        self._outcomes += later._outcomes
        self._acked += later._acked
        self.add_reports([*later._failed(), *later._metrics.values()])
        self._failures.left_out += later._failures.left_out
        self.carried = later.carried

    def _failed(self) -> list[Failure]:
        return [group.failure for group in self._failures]

    def rows(self) -> tuple[bytes, ...]:
        """Returns it as chunks for the sink."""
        found: list[bytes] = []
        if self._outcomes or self._acked:
            acked = Outcome(np.array(self._acked, np.uint64), np.full(len(self._acked), ACKED, np.uint8))
            found.append(chunk.encode_outcome(*merged([*self._outcomes, acked]), source=-1))
        reports: list[TaskMetrics | Failure] = [*self._metrics.values(), *self._failed()]
        if more := self._failures.left_out:
            reports.append(Failure("", None, f"tasks had {more} more errors since the last ones", "", False))
        if reports:
            found.append(chunk.encode_report(reports, source=-1))
        return (*found, *self.carried)
