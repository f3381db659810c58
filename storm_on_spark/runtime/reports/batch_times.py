"""Where the time of micro-batches went, as a picture and as text. Pure: Spark's reports in, pictures out."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from storm_on_spark.api.text import html
from storm_on_spark.api.text.charts import stacked_bars
from storm_on_spark.api.times import BatchTime

_PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "asks for news": ("latestOffset", "getBatch"),
    "plans": ("queryPlanning",),
    "notes offsets": ("walCommit",),
    "executes": ("addBatch",),
    "commits": ("commitOffsets",),
}
"""What Spark's names of durations are here. `executes` has spouts' tuples, bolts, ackers and sinks."""
_REST: Final = "other"
_WHOLE: Final = "triggerExecution"


@dataclass(frozen=True)
class BatchTimes:
    """The times of the last micro-batches, oldest first; a notebook shows them as a picture.

    Example:
        >>> report = {"batchId": 7, "durationMs": {"addBatch": 80, "queryPlanning": 15, "triggerExecution": 100}}
        >>> times = BatchTimes.of([report])
        >>> times.batches[0].parts["executes"], times.batches[0].whole
        (80.0, 100.0)
        >>> times.after(7).batches
        ()
        >>> print(times)
        1 micro-batch, 100 ms each (median)
        asks for news      0 ms
        plans             15 ms
        notes offsets      0 ms
        executes          80 ms
        commits            0 ms
        other              5 ms
    """

    batches: tuple[BatchTime, ...]

    @classmethod
    def of(cls, reports: Sequence[Mapping[str, Any]]) -> BatchTimes:
        """Returns the times in Spark's progress reports; those of triggers without a micro-batch are left out."""
        found = {}
        for report in reports:
            spent = report["durationMs"]
            if "addBatch" not in spent:
                continue
            parts = {name: float(sum(spent.get(key, 0) for key in keys)) for name, keys in _PARTS.items()}
            rest = float(spent.get(_WHOLE, 0)) - sum(parts.values())
            found[report["batchId"]] = BatchTime(report["batchId"], {**parts, _REST: max(0.0, rest)})
        return cls(tuple(found[number] for number in sorted(found)))

    def after(self, number: int) -> BatchTimes:
        """Returns the times after a micro-batch: the first ones include Python's start and compilation."""
        return BatchTimes(tuple(batch for batch in self.batches if batch.number > number))

    def medians(self) -> dict[str, float]:
        """Returns the median of each part, in milliseconds; empty if there is no micro-batch."""
        if not self.batches:
            return {}
        return {
            name: statistics.median(batch.parts.get(name, 0.0) for batch in self.batches) for name in (*_PARTS, _REST)
        }

    def _headline(self) -> str:
        count = len(self.batches)
        if not count:
            return "no micro-batch yet"
        whole = statistics.median(batch.whole for batch in self.batches)
        return f"{count:,} micro-batch{'' if count == 1 else 'es'}, {whole:,.0f} ms each (median)"

    def __str__(self) -> str:
        lines = [f"{name:<14}{spent:6,.0f} ms" for name, spent in self.medians().items()]
        return "\n".join([self._headline(), *lines])

    def _repr_html_(self) -> str:
        bars = [list(batch.parts.values()) for batch in self.batches]
        labels = [str(batch.number) for batch in self.batches]
        medians = self.medians()
        names = [f"{name} {medians[name]:,.0f} ms" for name in medians]
        return html.block(
            html.line(self._headline(), strong=True), stacked_bars(bars, labels, names, "ms", "micro-batch")
        )
