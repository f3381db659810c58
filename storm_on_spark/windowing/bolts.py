"""The base classes of windowed bolts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from storm_on_spark.api.component import BaseComponent, ExecutedByBolt
from storm_on_spark.api.config import Config
from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.api.state import KeyValueState
from storm_on_spark.api.text.wording import kind_of
from storm_on_spark.windowing.aggregates.executor import AggregateExecutor
from storm_on_spark.windowing.aggregates.functions import Aggregate
from storm_on_spark.windowing.definition import Count, Duration, Extent, TimestampExtractor
from storm_on_spark.windowing.executor import WindowedBoltExecutor

if TYPE_CHECKING:
    from storm_on_spark.api.component import BaseRichBolt
    from storm_on_spark.api.task.collector import OutputCollector
    from storm_on_spark.api.task.context import TopologyContext

W = TypeVar("W", bound="Windowed")

_EXTENTS = {
    ("length", Count): Config.TOPOLOGY_BOLTS_WINDOW_LENGTH_COUNT,
    ("length", Duration): Config.TOPOLOGY_BOLTS_WINDOW_LENGTH_DURATION_MS,
    ("slide", Count): Config.TOPOLOGY_BOLTS_SLIDING_INTERVAL_COUNT,
    ("slide", Duration): Config.TOPOLOGY_BOLTS_SLIDING_INTERVAL_DURATION_MS,
}


class Windowed(ExecutedByBolt, BaseComponent):
    """The common base of windowed bolts: the definition of their window.

    It is part of the component's configuration, under Storm's keys, so a topology may override it.
    """

    # Class attributes, since a subclass may define its own `__init__`.
    _window: Mapping[str, Any] = {}
    _timestamp: TimestampExtractor | str | None = None
    _idle_ms: int | None = None
    _aggregates: Mapping[str, Aggregate] = {}
    _by: tuple[str, ...] = ()

    def with_window(self: W, length: Extent, slide: Extent | None = None) -> W:
        """Sets length and slide of the window, each a `Count` or a `Duration`.

        Args:
            length: the number of tuples in the window, or the time that it spans.
            slide: the number of tuples, or the time, between two evaluations; by default it is evaluated at each tuple.
        """
        chosen = {}
        for what, given in (("length", length), ("slide", Count(1) if slide is None else slide)):
            extent: object = given
            if not isinstance(extent, (Count, Duration)):
                raise InvalidTopologyError(
                    f"the window's {what} must be a Count or a Duration, not {kind_of(extent)}, as in "
                    "with_window(Duration.seconds(10), Duration.seconds(5))"
                )
            if not extent.value:
                raise InvalidTopologyError(f"the window's {what} must be positive, not {extent}")
            chosen[_EXTENTS[what, type(extent)]] = extent.value
        kept = {key: value for key, value in self._window.items() if key not in _EXTENTS.values()}
        self._window = {**kept, **chosen}
        return self

    def with_tumbling_window(self: W, length: Extent) -> W:
        """Sets a window that slides by its whole length."""
        return self.with_window(length, length)

    def with_timestamp_field(self: W, field: str) -> W:
        """Sets the field that holds the time of a tuple: an integer, in milliseconds."""
        if not isinstance(field, str):
            raise InvalidTopologyError(f"a timestamp field is named by a text, not {kind_of(field)}")
        return self._with_timestamp(field)

    def with_timestamp_extractor(self: W, extractor: TimestampExtractor) -> W:
        """Sets a function that returns the time of a tuple, in milliseconds.

        Args:
            extractor: a function of the tuple, or an object with a method `extract_timestamp(tup)`.
        """
        found = getattr(extractor, "extract_timestamp", extractor)
        if not callable(found):
            raise InvalidTopologyError(f"a timestamp extractor must be a function of a tuple, not {kind_of(extractor)}")
        return self._with_timestamp(found)

    def _with_timestamp(self: W, how: TimestampExtractor | str) -> W:
        if self._timestamp is not None:
            raise InvalidTopologyError(f"the window already takes its time from {self._timestamp!r}")
        self._timestamp = how
        return self

    def with_lag(self: W, lag: Duration) -> W:
        """Sets how far timestamps may be out of order. By default they must be in order."""
        return self._with_duration(Config.TOPOLOGY_BOLTS_TUPLE_TIMESTAMP_MAX_LAG_MS, lag, "lag")

    def with_watermark_interval(self: W, interval: Duration) -> W:
        """Sets how often the watermark advances; by default each second."""
        return self._with_duration(Config.TOPOLOGY_BOLTS_WATERMARK_EVENT_INTERVAL_MS, interval, "watermark interval")

    def with_idle_timeout(self: W, timeout: Duration) -> W:
        """Sets how long an input stream may be silent before it no longer holds back the watermark.

        By default there is no limit, as in Storm: one silent stream stops all windows. A tuple that comes later on a
        stream that was idle may be late.
        """
        if not isinstance(timeout, Duration):
            raise InvalidTopologyError(f"the idle timeout must be a Duration, not {kind_of(timeout)}")
        self._idle_ms = timeout.value
        return self

    def with_late_tuple_stream(self: W, stream: str) -> W:
        """Sets the stream for tuples that come too late; its one field is `late_tuple`.

        The bolt declares the stream itself. By default late tuples are logged. They are acked and counted in any case.
        """
        if not isinstance(stream, str):
            raise InvalidTopologyError(f"the stream for late tuples must be a text, not {kind_of(stream)}")
        return self._with(Config.TOPOLOGY_BOLTS_LATE_TUPLE_STREAM, stream)

    def with_aggregate(
        self: W, by: str | Iterable[str] = (), aggregates: Mapping[str, Aggregate] | None = None, **more: Aggregate
    ) -> W:
        """Makes windows keep no tuples, but partial results: one for each key and slide.

        The bolt's `execute` gets an `AggregateWindow`. A tuple is acked as soon as it is in the window, so what the
        bolt emits is anchored to nothing, and the window may be longer than the message timeout.

        Args:
            by: the field or fields of the key; none for one result.
            aggregates: the aggregations, by name.
            more: the same, as keyword arguments.
        """
        chosen = {**(aggregates or {}), **more}
        for name, given in chosen.items():
            if not isinstance(given, Aggregate):
                raise InvalidTopologyError(f"the aggregation {name!r} must be an Aggregate, not {kind_of(given)}")
        if not chosen:
            raise InvalidTopologyError("with_aggregate needs an aggregation, as in with_aggregate(number=CountOf())")
        self._aggregates = chosen
        self._by = (by,) if isinstance(by, str) else tuple(by)
        return self

    def _with_duration(self: W, key: str, duration: Duration, what: str) -> W:
        if not isinstance(duration, Duration):
            raise InvalidTopologyError(f"the {what} must be a Duration, not {kind_of(duration)}")
        return self._with(key, duration.value)

    def _with(self: W, key: str, value: object) -> W:
        self._window = {**self._window, key: value}
        return self

    def get_component_configuration(self) -> Mapping[str, Any] | None:
        """Returns the definition of the window; an override adds to what this returns."""
        return dict(self._window)

    def cleanup(self) -> None:
        """Called when the bolt stops, but not if its process is killed."""


class BaseWindowedBolt(Windowed):
    """A bolt that evaluates windows of tuples; Storm's `BaseWindowedBolt`.

    What it emits is anchored to all tuples of the window, and a tuple is acked when it leaves the window. Attributes
    that can be pickled are saved, like those of a `BaseRichBolt`. The tuples of the window are saved too, in slices; a
    micro-batch writes only slices that are new.

    Example:
        >>> from storm_on_spark import BaseWindowedBolt, Count, Fields
        >>> from storm_on_spark.testing import BoltTester, make_tuple
        >>> class Mean(BaseWindowedBolt):
        ...     def prepare(self, conf, context, collector):
        ...         self.collector = collector
        ...     def execute(self, window):
        ...         self.collector.emit([sum(tup["degrees"] for tup in window) / len(window)])
        ...     def declare_output_fields(self, declarer):
        ...         declarer.declare(Fields("mean"))
        >>> tester = BoltTester(Mean().with_window(Count(3), Count(2)))
        >>> tester.execute(*(make_tuple([degrees], ["degrees"]) for degrees in (20, 24, 28, 23)))
        >>> tester.collector.values(), len(tester.collector.acked)
        ([(22.0,), (25.0,)], 1)
    """

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Called in every task before the first window; see `BaseRichBolt.prepare`."""

    # Aliases, since Storm's classes are nested ones.
    Count = Count
    Duration = Duration

    @abstractmethod
    def execute(self, window: Any) -> None:
        """Evaluates a window, a `TupleWindow` that holds at least one tuple, or an `AggregateWindow`.

        If it raises, its work is undone and the error is reported. The window's tuples fail at its next evaluation and
        leave it, so their spout can emit them again.
        """

    def executor(self) -> BaseRichBolt:
        """Returns the bolt that keeps the windows and calls this one."""
        if self._aggregates:
            return AggregateExecutor(self, self._timestamp, self._idle_ms, self._aggregates, self._by)
        return WindowedBoltExecutor(self, self._timestamp, self._idle_ms)


class BaseStatefulWindowedBolt(BaseWindowedBolt):
    """A windowed bolt with a `KeyValueState`; Storm's `BaseStatefulWindowedBolt`.

    Its state and its windows are committed with the micro-batch, so each tuple counts in them once. What Storm needs
    for that has no effect here.

    Example:
        >>> from storm_on_spark.testing import BoltTester, make_tuple
        >>> from storm_on_spark.windowing import BaseStatefulWindowedBolt, Count
        >>> class Sum(BaseStatefulWindowedBolt):
        ...     def init_state(self, state):
        ...         self.state = state
        ...     def execute(self, window):
        ...         added, gone = (sum(tup[0] for tup in part) for part in (window.new, window.expired))
        ...         self.state.put("sum", self.state.get("sum", 0) + added - gone)
        >>> tester = BoltTester(Sum().with_window(Count(3), Count(2)).with_message_id_field("value"))
        >>> tester.execute(*(make_tuple([number]) for number in range(6)))
        >>> tester.bolt.bolt.state.get("sum")
        12
    """

    @abstractmethod
    def init_state(self, state: KeyValueState) -> None:
        """Called before the first window, with the task's state of the last committed micro-batch."""

    def executor(self) -> BaseRichBolt:
        """Returns the bolt that keeps the windows and calls this one."""
        if self._aggregates:
            raise InvalidTopologyError(
                "a windowed bolt with aggregations has no state of its own; keep it in attributes of a BaseWindowedBolt"
            )
        return super().executor()

    def with_message_id_field(self: W, field: str) -> W:
        """Has no effect. Storm needs it to skip windows evaluated before a crash; here no window is evaluated twice."""
        if not isinstance(field, str):
            raise InvalidTopologyError(f"a message id field is named by a text, not {kind_of(field)}")
        return self

    def with_persistence(self: W) -> W:
        """Has no effect: the tuples of a window are always in the state, and may be larger than memory."""
        return self

    def with_max_events_in_memory(self: W, number: int) -> W:
        """Has no effect: `topology.state.memory.mb` bounds what a task holds in memory."""
        return self

    def pre_prepare(self, txid: int) -> None:
        """Called before the state of micro-batch `txid` is written."""

    def pre_commit(self, txid: int) -> None:
        """Called after `pre_prepare`."""

    def pre_rollback(self) -> None:
        """Called before the instance is reset to the last committed state."""


IWindowedBolt = BaseWindowedBolt
"""Storm's interface, for ported code."""
IStatefulWindowedBolt = BaseStatefulWindowedBolt
"""Storm's interface, for ported code."""
