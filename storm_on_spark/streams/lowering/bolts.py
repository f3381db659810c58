"""The bolts that execute operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from storm_on_spark.api.component import BaseBasicBolt
from storm_on_spark.api.errors import FailedException, ReportedFailedException
from storm_on_spark.api.state import BaseStatefulBolt, KeyValueState
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.streams.lowering.wiring import Program, Running
from storm_on_spark.windowing.bolts import BaseWindowedBolt

if TYPE_CHECKING:
    from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
    from storm_on_spark.api.task.collector import BasicOutputCollector, OutputCollector
    from storm_on_spark.api.task.context import TopologyContext
    from storm_on_spark.api.tuple import Tuple
    from storm_on_spark.streams.graph.model import Window
    from storm_on_spark.windowing.window import TupleWindow


class _NoAttributes:
    """Where a bolt's attributes are saved: nothing is to be saved, since what a bolt keeps is in its state."""


class _OperationsBolt:
    """What the bolts have in common."""

    def __init__(self, program: Program, title: str) -> None:
        self.program = program
        self.title = title
        self._running: Running

    @property
    def state_holder(self) -> _NoAttributes:
        """The object whose attributes are saved."""
        return _NoAttributes()

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
    """Executes operations that keep nothing."""

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
    """Executes operations that keep something from one value to the next."""

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
    """Executes operations on the values of each window. What they keep within a window ends with it."""

    def __init__(self, program: Program, title: str, window: Window) -> None:
        super().__init__(program, title)
        self.with_window(window.length, window.slide)
        if window.timestamp_field is not None:
            self.with_timestamp_field(window.timestamp_field)
        if window.lag is not None:
            self.with_lag(window.lag)
        if window.watermark_interval is not None:
            self.with_watermark_interval(window.watermark_interval)
        if window.idle_timeout is not None:
            self.with_idle_timeout(window.idle_timeout)
        if window.late_stream is not None:
            self.with_late_tuple_stream(window.late_stream)

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Connects the operations."""
        self.program.prepare(conf, context)
        self._collector = collector
        self._running = self.program.start(self._emit, self.program.stores(None))

    def execute(self, window: TupleWindow) -> None:
        """Executes the operations for a window."""
        self._running.timestamp = window.end
        try:
            for tup in window:
                self._running.gather(tup)
            self._running.finish()
        except BaseException:
            # What they have gathered is of a window that is undone.
            self._running = self.program.start(self._emit, self.program.stores(None))
            raise

    def _emit(self, values: Sequence[Any], stream: str) -> None:
        self._collector.emit(values, stream=stream)
