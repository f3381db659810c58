"""The bolt that keeps the windows of a `BaseWindowedBolt` and calls it.

All its data is in the key-value state, because the runtime may reset that at any tuple. The manager of the windows is
an entry of the state, and is looked up for each tuple.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, ClassVar, Generic, Protocol, TypeVar, runtime_checkable

from storm_on_spark.api.adapted import Adapted
from storm_on_spark.api.errors import CheckpointError, InvalidTopologyError, TupleError
from storm_on_spark.api.state import BaseStatefulBolt, KeyValueState
from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.streams.stream import DEFAULT_STREAM
from storm_on_spark.api.task.collector import Anchors, OutputCollector
from storm_on_spark.api.task.context import TopologyContext
from storm_on_spark.api.text.wording import kind_of
from storm_on_spark.api.tuple import JointAnchors, Tuple, detached
from storm_on_spark.windowing.content.queue import OWN
from storm_on_spark.windowing.definition import TimestampExtractor, WindowDefinition, WindowSettings
from storm_on_spark.windowing.late import LATE_TUPLE_FIELD, LateTuples
from storm_on_spark.windowing.rules.manager import Activation, WindowManager
from storm_on_spark.windowing.rules.watermark import Source, WatermarkGenerator
from storm_on_spark.windowing.window import TupleWindow

MANAGER = (OWN, "manager")
"""The key of the manager of windows in the state."""


class WindowedBolt(Protocol):
    """The methods of a `BaseWindowedBolt` that are called here."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """See `BaseWindowedBolt`."""

    def execute(self, window: TupleWindow) -> None:
        """See `BaseWindowedBolt`."""

    def cleanup(self) -> None:
        """See `BaseWindowedBolt`."""

    def get_component_configuration(self) -> Mapping[str, Any] | None:
        """See `BaseWindowedBolt`."""

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """See `BaseWindowedBolt`."""


@runtime_checkable
class StatefulWindowedBolt(Protocol):
    """The further methods of a `BaseStatefulWindowedBolt` that are called here."""

    def init_state(self, state: KeyValueState) -> None:
        """See `BaseStatefulWindowedBolt`."""

    def pre_prepare(self, txid: int) -> None:
        """See `BaseStatefulWindowedBolt`."""

    def pre_commit(self, txid: int) -> None:
        """See `BaseStatefulWindowedBolt`."""

    def pre_rollback(self) -> None:
        """See `BaseStatefulWindowedBolt`."""


class WindowManaging(Protocol):
    """The manager of the windows of a task, as used by an executor."""

    definition: WindowDefinition
    watermark: WatermarkGenerator[Source]

    def on_time(self, now: int) -> Iterator[Any]:
        """The topology's time has advanced to `now`."""

    def on_watermark(self, now: int) -> Iterator[Any]:
        """A new watermark is due."""

    def settle(self) -> None:
        """Prepares for being written."""


M = TypeVar("M", bound=WindowManaging)


class WindowExecutor(BaseStatefulBolt, Generic[M]):
    """Executes a windowed bolt, whatever its windows hold.

    Args:
        bolt: the user's.
        timestamp: the source of the tuples' time: a field, or a function; None for the time of arrival.
        idle_ms: how long a stream may be silent before it no longer holds back the watermark; None for ever.
    """

    stateless = False
    #: Whether tuples stay pending as long as they are in the window.
    holds: ClassVar[bool] = True
    #: The class of the manager.
    manages: ClassVar[type]

    def __init__(self, bolt: WindowedBolt, timestamp: TimestampExtractor | str | None, idle_ms: int | None) -> None:
        self.bolt = bolt
        self._timestamp, self._idle_ms = timestamp, idle_ms
        #: For the runtime: the object whose attributes are saved.
        self.state_holder: object = getattr(bolt, "state_holder", bolt)
        #: For people; see `component_title`.
        self.title: str = getattr(bolt, "title", "")
        self.adapted = Adapted(type(bolt))

    @abstractmethod
    def _new_manager(self, definition: WindowDefinition, now: int) -> M:
        """Returns the manager of a new task."""

    @abstractmethod
    def _attach(self, manager: M, now: int) -> None:
        """Connects a manager, whether new or from the state, to state and definition."""

    @abstractmethod
    def _add(self, manager: M, tup: Tuple, now: int) -> Iterable[Any]:
        """Adds a tuple without a timestamp; returns the windows that are due."""

    @abstractmethod
    def _add_event(self, manager: M, tup: Tuple, source: Source, stamp: int, now: int) -> bool:
        """Adds a tuple with a timestamp; returns whether it came in time."""

    @abstractmethod
    def _evaluate(self, manager: M, due: Iterable[Any]) -> None:
        """Evaluates windows."""

    def definition(self, conf: Mapping[str, Any]) -> WindowDefinition:
        """Returns the window of the configuration; refuses one that Storm's rules forbid."""
        event_time = self._timestamp is not None
        found = WindowDefinition.of(
            WindowSettings.of(conf), event_time=event_time, idle_ms=self._idle_ms, holds=self.holds
        )
        self._check_late_stream(found.late_stream)
        return found

    def _check_late_stream(self, stream: str | None) -> None:
        """Checks that the bolt has the stream for late tuples, which a configuration alone does not declare."""
        declarer = OutputFieldsDeclarer("")
        self.declare_output_fields(declarer)
        if stream is not None and stream not in declarer.streams:
            raise InvalidTopologyError(
                f'late tuples are to go to stream "{stream}", which the bolt does not declare; call '
                f'with_late_tuple_stream("{stream}")'
            )

    def declare_timers(self, conf: Mapping[str, Any]) -> Mapping[str, int]:
        """Returns the periods, in ms, at which windows look at the clock."""
        return self.definition(conf).timers

    def get_component_configuration(self) -> Mapping[str, Any] | None:
        """Returns the bolt's."""
        return self.bolt.get_component_configuration()

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares the bolt's streams, and that of late tuples."""
        late = WindowSettings.of(self.get_component_configuration() or {}).late_stream
        if late is not None:
            declarer.declare_stream(late, Fields(LATE_TUPLE_FIELD))
        self.bolt.declare_output_fields(declarer)

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Prepares the bolt."""
        self._context, self._collector = context, collector
        self._window_definition = self.definition(conf)
        self._stamp_of = _extractor(self._timestamp)
        self._timed = bool(self._window_definition.timers)
        self._streams = [(source.component, source.stream) for source in context.this_sources()]
        self._late = LateTuples(context) if self._stamp_of is not None else None
        self._windowed = WindowedOutputCollector(collector)
        #: Numbers of windows that the bolt could not evaluate. It is not saved.
        self._poison: set[int] = set()
        self._attached: M | None = None
        #: The delivery of the last tuple, and what was derived from it.
        self._delivery: object = None
        self._is_timer, self._source = False, ("", "")
        self._changed = False
        self.state_services: tuple[object, ...] = (self._windowed,)
        self.bolt.prepare(conf, context, self._windowed)

    def init_state(self, state: KeyValueState) -> None:
        """Takes the state; part of it is the bolt's."""
        self._state = state
        found: M | None = state.get(MANAGER)
        if found is not None and not isinstance(found, self.manages):
            raise CheckpointError(
                f'the windows of "{self._context.this_component_id}" in the checkpoint hold something else than now '
                f"(a {type(found).__name__}, not a {self.manages.__name__}): with or without aggregations, or columns; "
                "define the window as before, or start afresh with --reset-checkpoint"
            )
        if found is not None and found.definition.event_time != self._window_definition.event_time:
            raise CheckpointError(
                f'the windows of "{self._context.this_component_id}" were by {_time(found.definition)} and are now by '
                f"{_time(self._window_definition)}, which the tuples in the checkpoint don't have; define the window "
                "as before, or start afresh with --reset-checkpoint"
            )

    def execute(self, tup: Tuple) -> None:
        """Adds a tuple to the windows, or advances the time; evaluates the windows that are due."""
        manager: M | None = self._state.get(MANAGER)
        if manager is None or manager is not self._attached or not self._changed:
            manager = self._manager()
            # It changes in place, and a state larger than memory forgets entries that are not known to have changed.
            self._state.put(MANAGER, manager)
            self._changed = True
        now = self._now
        delivery = tup._delivery  # noqa: SLF001 # a property would cost what this saves
        if delivery is not self._delivery:
            # Most tuples have the same delivery as the previous one.
            self._delivery, self._is_timer = delivery, tup.is_timer
            self._source = tup.source_component, tup.source_stream
        if self._is_timer:
            self._evaluate(manager, manager.on_watermark(now) if self._stamp_of is not None else manager.on_time(now))
        elif self._stamp_of is None:
            self._evaluate(manager, self._add(manager, tup, now))
        else:
            stamp = self._stamp_of(tup)
            if stamp.__class__ is not int:
                _check_stamp(stamp, tup)
            if not self._add_event(manager, tup, self._source, stamp, now):
                self._tell_late(tup, stamp, manager.watermark.last)

    @property
    def _now(self) -> int:
        return self._context.time_ms if self._timed else 0

    def _tell_late(self, tup: Tuple, stamp: int, watermark: int) -> None:
        assert self._late is not None, "only tuples that bring their time are late"
        self._late.count()
        stream = self._window_definition.late_stream
        if stream is not None:
            self._collector.emit([detached(tup)], anchors=tup, stream=stream)
        else:
            self._late.tell(tup, stamp, watermark)
        self._collector.ack(tup)

    def _call(self, number: int, window: Any) -> None:
        """Makes the bolt evaluate a window."""
        try:
            self.bolt.execute(window)
        except Exception:
            self._poison.add(number)
            raise

    def _manager(self) -> M:
        manager: M | None = self._state.get(MANAGER)
        if manager is None:
            manager = self._new_manager(self._window_definition, self._now)
        if manager is not self._attached:
            # It is new, or the runtime has read or reset it.
            self._attach(manager, self._now)
            self._attached = manager
        return manager

    def finish_micro_batch(self) -> None:
        """Writes the changes of the windows."""
        if self._changed:
            self._changed = False
            manager = self._manager()
            manager.settle()
            self._state.put(MANAGER, manager)

    def cleanup(self) -> None:
        """Ends the bolt."""
        self.bolt.cleanup()


class WindowedBoltExecutor(WindowExecutor[WindowManager]):
    """Executes a windowed bolt whose windows hold tuples."""

    manages = WindowManager

    def init_state(self, state: KeyValueState) -> None:
        """Takes the state; part of it is the bolt's."""
        super().init_state(state)
        if isinstance(self.bolt, StatefulWindowedBolt):
            view = UsersState(state)
            self.state_services = (self._windowed, view)
            self.bolt.init_state(view)

    def _new_manager(self, definition: WindowDefinition, now: int) -> WindowManager:
        return WindowManager(definition, self._streams, now)

    def _attach(self, manager: WindowManager, now: int) -> None:
        manager.queue.attach(self._state)
        if manager.definition != self._window_definition:
            manager.define(self._window_definition, now)

    def _add(self, manager: WindowManager, tup: Tuple, now: int) -> Iterable[Activation]:
        return manager.add(tup, now)

    def _add_event(self, manager: WindowManager, tup: Tuple, source: Source, stamp: int, now: int) -> bool:
        return manager.add_event(tup, source, stamp, now)

    def _evaluate(self, manager: WindowManager, due: Iterable[Activation]) -> None:
        for activation in due:
            window = TupleWindow(manager.queue, activation)
            if activation.window and activation.number in self._poison:
                for tup in window:
                    self._collector.fail(tup)
                manager.drop(activation.window)
            elif activation.window:
                self._windowed.window = window
                try:
                    self._call(activation.number, window)
                finally:
                    self._windowed.window = None
            for tup in window.expired:
                self._collector.ack(tup)

    def pre_prepare(self, txid: int) -> None:
        """Tells a bolt with state."""
        if isinstance(self.bolt, StatefulWindowedBolt):
            self.bolt.pre_prepare(txid)

    def pre_commit(self, txid: int) -> None:
        """Tells a bolt with state."""
        if isinstance(self.bolt, StatefulWindowedBolt):
            self.bolt.pre_commit(txid)

    def pre_rollback(self) -> None:
        """Tells a bolt with state."""
        if isinstance(self.bolt, StatefulWindowedBolt):
            self.bolt.pre_rollback()


def _time(definition: WindowDefinition) -> str:
    return "the time that tuples bring" if definition.event_time else "the time at which tuples come"


def _extractor(how: TimestampExtractor | str | None) -> TimestampExtractor | None:
    return itemgetter(how) if isinstance(how, str) else how


def _check_stamp(stamp: object, tup: Tuple) -> None:
    if isinstance(stamp, bool) or not isinstance(stamp, int):
        raise TupleError(f"the time of a tuple must be an int, in milliseconds, not {kind_of(stamp)}: {tup!r:.200}")


class WindowedOutputCollector(OutputCollector):
    """The collector of a windowed bolt: what it emits is anchored to the tuples of the window.

    Args:
        collector: the task's.
    """

    def __init__(self, collector: OutputCollector) -> None:
        self._collector = collector
        self._window: TupleWindow | None = None
        self._anchors: JointAnchors | None = None

    @property
    def window(self) -> TupleWindow | None:
        """The window that is evaluated."""
        return self._window

    @window.setter
    def window(self, window: TupleWindow | None) -> None:
        self._window, self._anchors = window, None if window is None else window.anchors

    def emit(self, values: Sequence[Any], anchors: Anchors = None, stream: str = DEFAULT_STREAM) -> list[int]:
        """Emits a tuple, anchored to the window if no anchors are given."""
        return self._collector.emit(values, self._anchors if anchors is None else anchors, stream)

    def emit_direct(
        self, task: int, values: Sequence[Any], anchors: Anchors = None, stream: str = DEFAULT_STREAM
    ) -> None:
        """Emits a tuple to one task, anchored to the window if no anchors are given."""
        self._collector.emit_direct(task, values, self._anchors if anchors is None else anchors, stream)

    def ack(self, tup: Tuple) -> None:
        """Does nothing: a tuple of a window is acked when it leaves the window."""

    def fail(self, tup: Tuple) -> None:
        """Fails a tuple at once; it stays in the window."""
        self._collector.fail(tup)

    def reset_timeout(self, tup: Tuple) -> None:
        """Restarts a tuple's message timeout."""
        self._collector.reset_timeout(tup)

    def report_error(self, error: BaseException) -> None:
        """Shows an error in the topology's status."""
        self._collector.report_error(error)


class UsersState(KeyValueState):
    """The part of a windowed bolt's state that is the user's.

    Args:
        state: all of it.
    """

    def __init__(self, state: KeyValueState) -> None:
        self._state = state

    def get(self, key: Any, default: Any = None) -> Any:
        """Returns the value of `key`, or `default`."""
        return self._state.get(key, default)

    def put(self, key: Any, value: Any) -> None:
        """Sets the value of `key`."""
        self._state.put(key, value)

    def delete(self, key: Any) -> Any:
        """Removes `key`; returns its value or None."""
        return self._state.delete(key)

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Yields all pairs."""
        for key, value in self._state.items():
            if not _is_own(key):
                yield key, value

    def ahead(self, keys: Iterable[Any]) -> Iterator[Any]:
        """Yields keys in the order in which they are best read."""
        return self._state.ahead(keys)

    def __contains__(self, key: object) -> bool:
        return key in self._state

    def __len__(self) -> int:
        manager: WindowManager | None = self._state.get(MANAGER)
        return len(self._state) - (0 if manager is None else 1 + manager.queue.own_keys)


def _is_own(key: object) -> bool:
    return isinstance(key, tuple) and len(key) > 1 and key[0] == OWN
