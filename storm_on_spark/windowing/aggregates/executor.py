"""The bolt that keeps the aggregations of a windowed bolt and calls it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from storm_on_spark.api.errors import CheckpointError, FailedException, ReportedFailedException
from storm_on_spark.api.tuple import Tuple
from storm_on_spark.windowing.aggregates.functions import Aggregate
from storm_on_spark.windowing.aggregates.manager import AggregateManager, Due, Entries, check_panes
from storm_on_spark.windowing.aggregates.panes import Panes
from storm_on_spark.windowing.aggregates.window import AggregateWindow
from storm_on_spark.windowing.definition import TimestampExtractor, WindowDefinition
from storm_on_spark.windowing.executor import WindowedBolt, WindowExecutor
from storm_on_spark.windowing.rules.watermark import Source


class AggregateExecutor(WindowExecutor[AggregateManager]):
    """Executes a windowed bolt whose windows hold partial results. A tuple is acked as soon as they contain it.

    Args:
        bolt: the user's.
        timestamp: as for `WindowExecutor`.
        idle_ms: as for `WindowExecutor`.
        aggregates: the aggregations, by name.
        by: the fields of the key; none for one result.
    """

    holds = False
    manages = AggregateManager

    def __init__(
        self,
        bolt: WindowedBolt,
        timestamp: TimestampExtractor | str | None,
        idle_ms: int | None,
        aggregates: Mapping[str, Aggregate],
        by: tuple[str, ...],
    ) -> None:
        super().__init__(bolt, timestamp, idle_ms)
        self._aggregates, self._by = dict(aggregates), by

    def definition(self, conf: Mapping[str, Any]) -> WindowDefinition:
        """Returns the window of the configuration; refuses one that can't be made of panes."""
        found = super().definition(conf)
        check_panes(found)
        return found

    def _new_manager(self, definition: WindowDefinition, now: int) -> AggregateManager:
        return AggregateManager(definition, Panes(self._aggregates), self._streams, now)

    def _attach(self, manager: AggregateManager, now: int) -> None:
        before = manager.definition.length, manager.definition.slide, manager.panes.names
        if before != (self._window_definition.length, self._window_definition.slide, list(self._aggregates)):
            raise CheckpointError(
                f'the checkpoint of "{self._context.this_component_id}" has the partial results {manager.panes.names} '
                f"of a window of {manager.definition}, not {list(self._aggregates)} of one of "
                f"{self._window_definition}; they can't be converted, as their tuples are gone: define the window as "
                "before, or start afresh with --reset-checkpoint"
            )
        manager.watermark.define(self._window_definition.lag_ms, self._window_definition.idle_ms)
        manager.panes.attach(self._state, self._aggregates)

    def _entries(self, tup: Tuple) -> Entries:
        """Returns a tuple's contribution."""
        by = self._by
        if len(by) == 1:
            return ((tup[by[0]], tup),)
        return ((tuple(tup[name] for name in by) if by else None, tup),)

    def _add(self, manager: AggregateManager, tup: Tuple, now: int) -> Iterable[Due]:
        try:
            entries = self._entries(tup)
        except FailedException as failure:
            self._refused(tup, failure)
            return ()
        due = manager.add(entries, now)
        self._collector.ack(tup)
        return due

    def _add_event(self, manager: AggregateManager, tup: Tuple, source: Source, stamp: int, now: int) -> bool:
        if manager.is_late(source, stamp, now):
            return False
        try:
            entries = self._entries(tup)
        except FailedException as failure:
            self._refused(tup, failure)
            return True
        manager.add_event(entries, stamp)
        self._collector.ack(tup)
        return True

    def _refused(self, tup: Tuple, failure: FailedException) -> None:
        if isinstance(failure, ReportedFailedException):
            self._collector.report_error(failure)
        self._collector.fail(tup)

    def _evaluate(self, manager: AggregateManager, due: Iterable[Due]) -> None:
        for changed, start, end, number in due:
            if number not in self._poison:
                self._call(number, AggregateWindow(manager.panes, changed, start, end))
