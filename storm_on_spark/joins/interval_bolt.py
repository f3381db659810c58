"""`IntervalJoinBolt`: joins two streams by key and time, without a common window."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from storm_on_spark.api.errors import InvalidTopologyError, TupleError
from storm_on_spark.api.state import BaseStatefulBolt, KeyValueState
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.text.wording import kind_of, name_fault
from storm_on_spark.api.tuple import Tuple, detached
from storm_on_spark.joins.interval import Interval, IntervalJoin
from storm_on_spark.joins.results import Results, first_stream
from storm_on_spark.joins.rules import JoinPlan, Kind, Step
from storm_on_spark.joins.selectors import Key
from storm_on_spark.windowing.definition import Duration
from storm_on_spark.windowing.late import LATE_TUPLE_FIELD, LateTuples
from storm_on_spark.windowing.rules.watermark import WatermarkGenerator

if TYPE_CHECKING:
    from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
    from storm_on_spark.api.task.collector import OutputCollector
    from storm_on_spark.api.task.context import TopologyContext

J = TypeVar("J", bound="IntervalJoinBolt")

_WATERMARK = ("watermark",)


class IntervalJoinBolt(Results, BaseStatefulBolt):
    """Joins each tuple of one stream with those of another within an interval around its time; Storm has no such bolt.

    Group both streams by the fields on which they are joined. Each tuple brings its time, in ms. It is kept in the
    bolt's state until the watermark shows that no partner can come any more. The watermark is the earlier of the two
    streams' latest times, minus the lag. A tuple earlier than the watermark is late: it is counted, acked, and emitted
    on the stream for late tuples; without such a stream it is logged.

    A tuple is acked as soon as it is in the state, which is exact. So no message timeout limits the interval. A pair is
    anchored to the tuple that completes it. A result without a partner is anchored to the tuple that moves the
    watermark, or to nothing if the watermark moves because a stream is idle.

    Args:
        args: an optional `Selector`; the left stream; the field on which it is joined, or a list of fields.

    Example:
        >>> from storm_on_spark.testing import BoltTester, make_tuple
        >>> join = IntervalJoinBolt("shown", "ad").left_join("clicked", "ad", after=Duration.minutes(10))
        >>> join = join.with_timestamp_field("ts").select("ad, user")
        >>> shown = make_tuple([7, 1000], ["ad", "ts"], "shown")
        >>> clicked = make_tuple([7, 4000, "ann"], ["ad", "ts", "user"], "clicked")
        >>> tester = BoltTester(join, [shown, clicked])
        >>> tester.execute(shown, clicked)
        >>> tester.collector.values()
        [(7, 'ann')]
    """

    stateless = False
    state_layout = "interval join, version 1"

    def __init__(self, *args: Any) -> None:
        selector, stream, fields = first_stream(args, 'IntervalJoinBolt("shown", "ad")')
        self._plan = JoinPlan(selector, (Step(stream, Key.of(stream, fields)),))
        self._interval = Interval(0, 0)
        self._timestamp_field: str | None = None
        self._lag = 0
        self._idle_ms: int | None = None
        self._late_stream: str | None = None

    def join(
        self: J,
        stream: str,
        field: str | Iterable[str],
        *,
        before: Duration = Duration(0),  # noqa: B008 # immutable
        after: Duration = Duration(0),  # noqa: B008
    ) -> J:
        """Sets the right stream.

        Args:
            stream: the stream.
            field: the field on which it is joined, or a list of as many fields as the left one has.
            before: how much earlier than the left tuple the right one may be.
            after: how much later.
        """
        return self._with(Kind.INNER, stream, field, before, after)

    def left_join(
        self: J,
        stream: str,
        field: str | Iterable[str],
        *,
        before: Duration = Duration(0),  # noqa: B008
        after: Duration = Duration(0),  # noqa: B008
    ) -> J:
        """Sets the right stream. A left tuple without a partner becomes a result when none can come any more."""
        return self._with(Kind.LEFT, stream, field, before, after)

    def right_join(
        self: J,
        stream: str,
        field: str | Iterable[str],
        *,
        before: Duration = Duration(0),  # noqa: B008
        after: Duration = Duration(0),  # noqa: B008
    ) -> J:
        """Sets the right stream. A right tuple without a partner becomes a result when none can come any more."""
        return self._with(Kind.RIGHT, stream, field, before, after)

    def full_join(
        self: J,
        stream: str,
        field: str | Iterable[str],
        *,
        before: Duration = Duration(0),  # noqa: B008
        after: Duration = Duration(0),  # noqa: B008
    ) -> J:
        """Sets the right stream. Any tuple without a partner becomes a result when none can come any more."""
        return self._with(Kind.FULL, stream, field, before, after)

    def with_timestamp_field(self: J, field: str) -> J:
        """Sets the field that holds the time of a tuple, in both streams: an integer, in ms."""
        if fault := name_fault(field):
            raise InvalidTopologyError(f"the timestamp field {fault}")
        self._timestamp_field = field
        return self

    def with_lag(self: J, lag: Duration) -> J:
        """Sets how far the times of one stream may be out of order. By default they must be in order."""
        self._lag = _ms(lag, "lag")
        return self

    def with_idle_timeout(self: J, timeout: Duration) -> J:
        """Sets how long a stream may be silent before it no longer holds back the watermark.

        By default there is no limit: while one stream is silent, all tuples of the other are kept. A tuple that comes
        later on a stream that was idle may be late.
        """
        milliseconds = _ms(timeout, "idle timeout")
        if not milliseconds:
            raise InvalidTopologyError(f"the idle timeout must be positive, not {timeout}")
        self._idle_ms = milliseconds
        return self

    def with_late_tuple_stream(self: J, stream: str) -> J:
        """Sets the stream on which late tuples are emitted, in one field `late_tuple`; the bolt declares it."""
        if fault := name_fault(stream):
            raise InvalidTopologyError(f"the stream for late tuples {fault}")
        self._late_stream = stream
        return self

    def _with(self: J, kind: Kind, stream: str, field: str | Iterable[str], before: Duration, after: Duration) -> J:
        (left, *others) = self._plan.steps
        if others or stream == left.stream:
            raise InvalidTopologyError("an interval join is of two different streams")
        key = Key.of(stream, field)
        if len(key.fields) != len(left.key.fields):
            raise InvalidTopologyError(
                f'{kind.value} of "{stream}" with "{left.stream}": {len(key.fields)} and {len(left.key.fields)} fields '
                "don't match"
            )
        self._plan = JoinPlan(self._plan.selector, (left, Step(stream, key, left.stream, kind)))
        keeps = (kind.keeps_left, kind.keeps_right)
        self._interval = Interval(_ms(before, "time before"), _ms(after, "time after"), keeps)
        return self

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares the selected fields, once all that a join needs is set."""
        for given, what in (
            (len(self._plan.steps) > 1, "right stream; call join or another of its kinds"),
            (self._select, 'output fields; call select("field, stream:field, ...")'),
            (self._timestamp_field, 'times; call with_timestamp_field("field")'),
        ):
            if not given:
                raise InvalidTopologyError(f"the interval join has no {what}")
        declarer.declare_stream(self._stream, Fields([field.name for field in self._select]))
        if self._late_stream is not None:
            declarer.declare_stream(self._late_stream, Fields(LATE_TUPLE_FIELD))

    def declare_timers(self, conf: Mapping[str, Any]) -> Mapping[str, int]:
        """Declares the timer that notices an idle stream while no tuple comes."""
        return {} if self._idle_ms is None else {"idle": self._idle_ms}

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Keeps the collector, the context and the streams, and registers the counter of late tuples."""
        self._collector, self._context = collector, context
        self._late = LateTuples(context)
        self._streams = list(context.this_sources())

    def init_state(self, state: KeyValueState) -> None:
        """Keeps the state, and creates the join over it."""
        self._state = state
        self._join = IntervalJoin(self._interval, state)

    def execute(self, tup: Tuple) -> None:
        """Emits the pairs that a tuple completes, and the results without a partner that are due now."""
        now = 0 if self._idle_ms is None else self._context.time_ms
        watermark: WatermarkGenerator[Any] | None = self._state.get(_WATERMARK)
        if watermark is None:
            watermark = WatermarkGenerator(self._streams, self._lag, self._idle_ms, now)
        # The saved watermark may have another lag and idle timeout, from before a restart.
        watermark.define(self._lag, self._idle_ms)
        if not tup.is_timer:
            time = self._time(tup)
            if not watermark.track(tup.source_global_stream_id, time, now):
                self._tell_late(tup, time, watermark.last)
            else:
                self._join_one(time, tup)
        if (reached := watermark.advance(now)) is not None:
            for pair in self._join.expire(reached):
                self._emit(pair, None if tup.is_timer else tup)
        self._state.put(_WATERMARK, watermark)
        if not tup.is_timer:
            self._collector.ack(tup)

    def _tell_late(self, tup: Tuple, time: int, watermark: int) -> None:
        self._late.count()
        if self._late_stream is not None:
            self._collector.emit([detached(tup)], anchors=tup, stream=self._late_stream)
        else:
            self._late.tell(tup, time, watermark)

    def _join_one(self, time: int, tup: Tuple) -> None:
        for side, step in enumerate(self._plan.steps):
            if step.stream == self._plan.selector.of(tup):
                self._add(side, step, time, tup)
                return
        raise TupleError(f"{tup!r:.200} is of none of the streams {', '.join(self._plan.streams())}")

    def _add(self, side: int, step: Step, time: int, tup: Tuple) -> None:
        key = step.key.value(lambda field: self._plan.look_up(field, (tup,)))
        if key is not None:
            for pair in self._join.add(side, key, time, detached(tup)):
                self._emit(pair, tup)

    def _emit(self, pair: tuple[Any, Any], anchor: Tuple | None) -> None:
        record = tuple(part for part in pair if part is not None)
        self._collector.emit(self._plan.project(record, self._select), anchors=anchor, stream=self._stream)

    def _time(self, tup: Tuple) -> int:
        assert self._timestamp_field is not None, "checked when the fields were declared"
        time = tup[self._timestamp_field]
        if isinstance(time, bool) or not isinstance(time, int):
            raise TupleError(f"the time of a tuple must be an int, in milliseconds, not {kind_of(time)}: {tup!r:.200}")
        return time


def _ms(given: object, what: str) -> int:
    if not isinstance(given, Duration):
        raise InvalidTopologyError(f"the {what} must be a Duration, as Duration.seconds(10), not {kind_of(given)}")
    return given.value
