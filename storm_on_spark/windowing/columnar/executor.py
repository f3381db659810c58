"""The bolt that keeps the windows of a columnar bolt and calls it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from storm_on_spark.api.adapted import Adapted
from storm_on_spark.api.errors import CheckpointError, InvalidTopologyError, TupleError
from storm_on_spark.api.state import KeyValueState, StatefulBatchBolt
from storm_on_spark.api.streams.constants import SYSTEM_COMPONENT, TIMER_STREAM
from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
from storm_on_spark.api.streams.stream import DEFAULT_STREAM
from storm_on_spark.api.task.collector import BatchOutputCollector
from storm_on_spark.api.task.context import TopologyContext
from storm_on_spark.windowing.aggregates.functions import Aggregate
from storm_on_spark.windowing.aggregates.manager import Due, PaneManager, check_panes
from storm_on_spark.windowing.columnar.panes import ColumnPanes
from storm_on_spark.windowing.columnar.reduction import Reduction
from storm_on_spark.windowing.columnar.window import BatchWindow
from storm_on_spark.windowing.definition import Count, WindowDefinition, WindowSettings
from storm_on_spark.windowing.executor import MANAGER
from storm_on_spark.windowing.late import LateTuples
from storm_on_spark.windowing.rules.watermark import Source

BatchExtractor = Callable[[pa.RecordBatch], Any]
"""Returns the times of rows, in milliseconds."""


class BatchBoltOfWindows(Protocol):
    """The methods of a `BatchWindowedBolt` that are called here."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: BatchOutputCollector) -> None:
        """See `BatchWindowedBolt`."""

    def execute_window(self, window: BatchWindow, collector: BatchOutputCollector) -> None:
        """See `BatchWindowedBolt`."""

    def cleanup(self) -> None:
        """See `BatchWindowedBolt`."""

    def get_component_configuration(self) -> Mapping[str, Any] | None:
        """See `BatchWindowedBolt`."""

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """See `BatchWindowedBolt`."""


class ColumnManager(PaneManager[ColumnPanes]):
    """The windows of one task over record batches."""

    def add(self, rows: pa.Table, now: int) -> Iterator[Due]:
        """Rows without timestamps have come."""
        if not isinstance(self.definition.slide, Count):
            self.panes.add(self._pane_of_now(now), rows)
            return
        first = 0
        while first < rows.num_rows:
            assert self._next is not None, "windows begin at once where rows bring no time"
            # Up to the end of the pane, which may be the end of a window.
            size = min(rows.num_rows - first, self._width - self._came % self._width)
            self._came += size
            self.panes.add(self._pane(self._came), rows.slice(first, size))
            first += size
            if self._came == self._next:
                yield from self._evaluated(self._came)

    def add_events(self, rows: pa.Table, stamps: NDArray[np.int64], stream: Source, now: int) -> NDArray[np.int64]:
        """Rows that bring their time have come; returns the times of those that were late."""
        self.watermark.track(stream, int(stamps.max()), now)
        is_late = stamps < self.watermark.last
        late = stamps[is_late]
        if len(late):
            rows, stamps = rows.filter(pa.array(~is_late)), stamps[~is_late]
        panes = (stamps - 1) // self._width
        if len(panes) and panes[0] == panes[-1] and (panes == panes[0]).all():
            self.panes.add(int(panes[0]), rows)
        elif len(panes):
            order = np.argsort(panes, kind="stable")
            rows, panes = rows.take(pa.array(order)), panes[order]
            begins = np.flatnonzero(np.diff(panes, prepend=panes[0] - 1))
            for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), len(panes)], strict=True):
                self.panes.add(int(panes[begin]), rows.slice(begin, end - begin))
        return late


class BatchWindowExecutor(StatefulBatchBolt):
    """Executes a columnar windowed bolt. A row is acked as soon as the window contains it.

    Args:
        bolt: the user's.
        timestamp: the column of the rows' time, or a function of a batch; None for the time of arrival.
        idle_ms: how long a stream may be silent before it no longer holds back the watermark; None for ever.
        aggregates: the aggregations, by name; none to keep the rows.
        by: the columns of the key.
    """

    stateless = False

    def __init__(
        self,
        bolt: BatchBoltOfWindows,
        timestamp: BatchExtractor | str | None,
        idle_ms: int | None,
        aggregates: Mapping[str, Aggregate],
        by: tuple[str, ...],
    ) -> None:
        self.bolt = bolt
        self._timestamp, self._idle_ms = timestamp, idle_ms
        self._kept = (list(by), list(aggregates)) if aggregates else None
        self._reduction = Reduction(by, aggregates) if aggregates else None
        #: For the runtime: the object whose attributes are saved.
        self.state_holder = bolt
        #: For people; see `component_title`.
        self.title: str = getattr(bolt, "title", "")
        self.adapted = Adapted(type(bolt))

    def definition(self, conf: Mapping[str, Any]) -> WindowDefinition:
        """Returns the window of the configuration; refuses one that can't be made of panes."""
        settings, event_time = WindowSettings.of(conf), self._timestamp is not None
        found = WindowDefinition.of(settings, event_time=event_time, idle_ms=self._idle_ms, holds=False)
        check_panes(found)
        if found.late_stream is not None:
            raise InvalidTopologyError(
                "a columnar windowed bolt has no stream for late tuples: they are counted and logged"
            )
        return found

    def declare_timers(self, conf: Mapping[str, Any]) -> Mapping[str, int]:
        """Declares the timers that the windows need."""
        return self.definition(conf).timers

    def get_component_configuration(self) -> Mapping[str, Any] | None:
        """Returns the bolt's."""
        return self.bolt.get_component_configuration()

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares the bolt's streams."""
        self.bolt.declare_output_fields(declarer)

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: BatchOutputCollector) -> None:
        """Prepares the bolt."""
        self._context = context
        self._window_definition = self.definition(conf)
        self._streams = [(source.component, source.stream) for source in context.this_sources()]
        self._late = LateTuples(context) if self._timestamp is not None else None
        self._windowed = UnanchoredCollector(collector)
        #: Numbers of windows that the bolt could not evaluate. It is not saved.
        self._poison: set[int] = set()
        self._attached: ColumnManager | None = None
        self.state_services: tuple[object, ...] = (self._windowed,)
        self.bolt.prepare(conf, context, self._windowed)

    def init_state(self, state: KeyValueState) -> None:
        """Takes the state."""
        self._state = state
        found = state.get(MANAGER)
        kept = state.get((*MANAGER, "kept"))
        now = self._window_definition
        if found is not None and not isinstance(found, ColumnManager):
            raise CheckpointError(
                f'the windows of "{self._context.this_component_id}" in the checkpoint hold no columns; define the '
                "window as before, or start afresh with --reset-checkpoint"
            )
        if found is not None and (
            found.definition.length,
            found.definition.slide,
            found.definition.event_time,
            kept,
        ) != (
            now.length,
            now.slide,
            now.event_time,
            self._kept,
        ):
            raise CheckpointError(
                f'the checkpoint of "{self._context.this_component_id}" has windows of {found.definition}, not of '
                f"{now}, or other aggregations; slides can't be converted: define the window as before, or start "
                "afresh with --reset-checkpoint"
            )

    def execute_batch(self, batch: pa.RecordBatch, collector: BatchOutputCollector) -> None:
        """Adds rows to the windows, or advances the time; evaluates the windows that are due."""
        manager = self._manager()
        now = self._context.time_ms if self._window_definition.timers else 0
        if collector.source.component == SYSTEM_COMPONENT:
            if collector.source.stream == TIMER_STREAM:
                self._evaluate(manager, manager.on_time(now) if self._timestamp is None else manager.on_watermark(now))
        elif not batch.num_rows:
            return
        elif self._timestamp is None:
            self._evaluate(manager, manager.add(pa.Table.from_batches([batch]), now))
        else:
            rows = pa.Table.from_batches([batch])
            source = collector.source.component, collector.source.stream
            late = manager.add_events(rows, self._stamps(batch), source, now)
            if len(late) and self._late is not None:
                self._late.count(len(late))
                self._late.tell(f"{len(late)} rows of {collector.source}", int(late[0]), manager.watermark.last)
        manager.settle()
        self._state.put(MANAGER, manager)

    def _stamps(self, batch: pa.RecordBatch) -> NDArray[np.int64]:
        how = self._timestamp
        if isinstance(how, str) and how not in batch.schema.names:
            raise TupleError(f"the tuples have no field {how!r} for their time; they have: {batch.schema.names}")
        column = batch[how] if isinstance(how, str) else how(batch)  # type: ignore[misc]
        if not isinstance(column, pa.Array):
            column = pa.array(column)
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("ms")).cast(pa.int64())
        if not pa.types.is_integer(column.type) or column.null_count:
            raise TupleError(
                f"the times of tuples must be integers, in milliseconds, or timestamps, and not null; they are "
                f"{column.type} with {column.null_count} nulls"
            )
        found: NDArray[np.int64] = column.cast(pa.int64()).to_numpy()
        return found

    def _evaluate(self, manager: ColumnManager, due: Iterable[Due]) -> None:
        for bounds, start, end, number in due:
            if number in self._poison:
                continue
            try:
                self.bolt.execute_window(BatchWindow(manager.panes, bounds, start, end), self._windowed)
            except Exception:
                self._poison.add(number)
                raise

    def _manager(self) -> ColumnManager:
        manager: ColumnManager | None = self._state.get(MANAGER)
        if manager is None:
            definition = self._window_definition
            now = self._context.time_ms if definition.timers else 0
            manager = ColumnManager(definition, ColumnPanes(), self._streams, now)
            self._state.put(MANAGER, manager)
            self._state.put((*MANAGER, "kept"), self._kept)
        if manager is not self._attached:
            # It is new, or the runtime has read or reset it.
            manager.watermark.define(self._window_definition.lag_ms, self._window_definition.idle_ms)
            manager.panes.attach(self._state, self._reduction)
            self._attached = manager
        return manager

    def cleanup(self) -> None:
        """Ends the bolt."""
        self.bolt.cleanup()


class UnanchoredCollector(BatchOutputCollector):
    """The collector of a columnar windowed bolt: emitted tuples are unanchored, as their rows are already acked.

    Args:
        collector: the task's.
    """

    def __init__(self, collector: BatchOutputCollector) -> None:
        self._collector = collector

    def emit(self, batch: pa.RecordBatch, parent: Any = None, stream: str = DEFAULT_STREAM) -> None:
        """Emits a batch of tuples, or all of a table."""
        batches = batch.combine_chunks().to_batches() if isinstance(batch, pa.Table) else [batch]
        for part in batches:
            self._collector.emit(part, np.full(part.num_rows, -1), stream)

    def fail(self, rows: Any) -> None:
        """Refuses: the rows of a window are already acked.

        Raises:
            TupleError: always.
        """
        raise TupleError("the rows of a columnar window are acked when they come; raise FailedException before that")

    def report_error(self, error: BaseException) -> None:
        """Shows an error in the topology's status."""
        self._collector.report_error(error)
