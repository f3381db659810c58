"""The base class of columnar windowed bolts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from storm_on_spark.windowing.bolts import Windowed
from storm_on_spark.windowing.columnar.executor import BatchWindowExecutor
from storm_on_spark.windowing.columnar.window import BatchWindow

if TYPE_CHECKING:
    from storm_on_spark.api.component import BatchBolt
    from storm_on_spark.api.task.collector import BatchOutputCollector
    from storm_on_spark.api.task.context import TopologyContext


class BatchWindowedBolt(Windowed):
    """A columnar bolt that evaluates windows of Arrow rows.

    Length and slide are both durations, or both numbers of rows without timestamps. Rows are stored in the state as
    Arrow columns, by slide; with `with_aggregate` only partial results are. Rows are acked on arrival, and emitted
    tuples are unanchored. A timestamp extractor is a function of a record batch and returns an array.

    Example:
        >>> import pyarrow
        >>> from storm_on_spark import Fields
        >>> from storm_on_spark.testing import BoltTester
        >>> from storm_on_spark.windowing import Count, SumOf
        >>> class Sums(BatchWindowedBolt):
        ...     def execute_window(self, window, collector):
        ...         collector.emit(window.table)
        ...     def declare_output_fields(self, declarer):
        ...         declarer.declare(Fields("word", "total"))
        >>> bolt = Sums().with_window(Count(4), Count(2)).with_aggregate(by="word", total=SumOf("size"))
        >>> tester = BoltTester(bolt)
        >>> tester.execute(pyarrow.record_batch({"word": ["to", "be", "or", "to"], "size": [1, 2, 3, 4]}))
        >>> tester.collector.values()
        [('to', 1), ('be', 2), ('to', 5), ('be', 2), ('or', 3)]
    """

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: BatchOutputCollector) -> None:
        """Called in every task before the first window; see `BatchBolt.prepare`."""

    @abstractmethod
    def execute_window(self, window: BatchWindow, collector: BatchOutputCollector) -> None:
        """Evaluates a window, which holds at least one row.

        If it raises, its work is undone and the error reported, and the window is left out.

        Args:
            window: the rows or results.
            collector: emits record batches, and also tables.
        """

    def executor(self) -> BatchBolt:
        """Returns the bolt that keeps the windows and calls this one."""
        return BatchWindowExecutor(self, self._timestamp, self._idle_ms, self._aggregates, self._by)
