"""The bolts that execute operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from storm_on_spark.api.component import BaseBasicBolt
from storm_on_spark.api.errors import FailedException, ReportedFailedException
from storm_on_spark.api.state import BaseStatefulBolt, KeyValueState
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.streams.lowering.partials import PartialsExecutor, PartialsOfWindow
from storm_on_spark.streams.lowering.wiring import Program, Running
from storm_on_spark.windowing.aggregates.window import AggregateWindow
from storm_on_spark.windowing.bolts import BaseWindowedBolt, Windowed

if TYPE_CHECKING:
    from storm_on_spark.api.component import BaseRichBolt
    from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
    from storm_on_spark.api.task.collector import BasicOutputCollector, OutputCollector
    from storm_on_spark.api.task.context import TopologyContext
    from storm_on_spark.api.tuple import Tuple
    from storm_on_spark.streams.graph.model import Operation, Window
    from storm_on_spark.windowing.window import TupleWindow


class NoAttributes:
    """The empty holder of a bolt's saved attributes; a bolt keeps its data in its state instead."""


class _OperationsBolt:
    """The common base of the bolts."""

    def __init__(self, program: Program, title: str) -> None:
        self.program = program
        self.title = title
        self._running: Running

    @property
    def state_holder(self) -> NoAttributes:
        """The object whose attributes are saved."""
        return NoAttributes()

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares a stream for each output that other bolts get."""
        program = self.program
        pairs = {operation.id: operation.pairs for operation in program.operations}
        for port, stream in program.outputs.items():
            fields = ["key", "value"] if pairs[port.node] else ["value"]
            if program.timestamp_field is not None:
                fields.append(program.timestamp_field)
            declarer.declare_stream(stream, Fields(fields))


class OperationsBolt(_OperationsBolt, BaseBasicBolt):
    """Executes operations without state."""

    stateless = True

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Connects the operations."""
        self.program.prepare(conf, context)
        self._running = self.program.start(self._emit, self.program.stores(None))

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Executes the operations for a tuple."""
        self._collector = collector
        self._running.take(tup)

    def _emit(self, values: Sequence[Any], stream: str) -> None:
        self._collector.emit(values, stream=stream)


class StatefulOperationsBolt(_OperationsBolt, BaseStatefulBolt):
    """Executes operations with state."""

    stateless = False

    def __init__(self, program: Program, title: str) -> None:
        super().__init__(program, title)
        self.state_layout = program.layout

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Keeps the collector."""
        self.program.prepare(conf, context)
        self._collector = collector

    def init_state(self, state: KeyValueState) -> None:
        """Connects the operations."""
        self._running = self.program.start(self._emit, self.program.stores(state))

    def execute(self, tup: Tuple) -> None:
        """Executes the operations for a tuple."""
        self._anchor = tup
        try:
            self._running.take(tup)
        except FailedException as failure:
            if isinstance(failure, ReportedFailedException):
                self._collector.report_error(failure)
            self._collector.fail(tup)
        else:
            self._collector.ack(tup)

    def _emit(self, values: Sequence[Any], stream: str) -> None:
        self._collector.emit(values, anchors=self._anchor, stream=stream)


class WindowedOperationsBolt(_OperationsBolt, BaseWindowedBolt):
    """Executes operations on the values of each window. The data that they keep ends with the window.

    Args:
        program: the operations.
        title: for display.
        window: gathers the values.
        partials: the aggregations that keep partial results; empty to keep values instead.
    """

    def __init__(self, program: Program, title: str, window: Window, partials: Sequence[Operation] = ()) -> None:
        super().__init__(program, title)
        self._partials = tuple(partials)
        self._sliding = window.length != window.slide
        set_window(self, window)
        if window.late_stream is not None:
            self.with_late_tuple_stream(window.late_stream)

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Connects the operations."""
        self.program.prepare(conf, context)
        self._collector = collector
        self._connect()

    def executor(self) -> BaseRichBolt:
        """Returns the bolt that keeps the windows."""
        if self._partials:
            return PartialsExecutor(self, self._timestamp, self._idle_ms, self._partials)
        return super().executor()

    def _connect(self) -> None:
        self._kept = {
            operation.id: PartialsOfWindow(number, alone=len(self._partials) == 1, sliding=self._sliding)
            for number, operation in enumerate(self._partials)
        }
        stores = self.program.stores(None)
        self._running = self.program.start(self._emit, stores, partials=self._kept)

    def execute(self, window: TupleWindow | AggregateWindow) -> None:
        """Executes the operations for a window."""
        self._running.timestamp = window.end
        try:
            if isinstance(window, AggregateWindow):
                for kept in self._kept.values():
                    kept.window = window
            else:
                for tup in window:
                    self._running.gather(tup)
            self._running.finish()
        except BaseException:
            # The gathered values belong to a window that is undone.
            self._connect()
            raise

    def expand(self, tup: Tuple) -> list[tuple[Any, Any]]:
        """Executes the operations before the aggregations; returns keys, and what to add to each."""
        for kept in self._kept.values():
            kept.entries = []
        self._running.gather(tup)
        return [entry for kept in self._kept.values() for entry in kept.entries]

    def _emit(self, values: Sequence[Any], stream: str) -> None:
        self._collector.emit(values, stream=stream)


def set_window(bolt: Windowed, window: Window) -> None:
    """Configures a bolt with the window of a stream, except for its late tuples."""
    bolt.with_window(window.length, window.slide)
    if window.timestamp_field is not None:
        bolt.with_timestamp_field(window.timestamp_field)
    if window.lag is not None:
        bolt.with_lag(window.lag)
    if window.watermark_interval is not None:
        bolt.with_watermark_interval(window.watermark_interval)
    if window.idle_timeout is not None:
        bolt.with_idle_timeout(window.idle_timeout)
