"""`CoordinatedBolt`: counts the tuples of each request, and tells the bolt inside when there will be no more."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

from storm_on_spark.api.adapted import Adapted, component_class
from storm_on_spark.api.component import BaseBasicBolt, BaseRichBolt
from storm_on_spark.api.config import Config
from storm_on_spark.api.config.settings import Settings
from storm_on_spark.api.errors import FailedException, InvalidTopologyError, ReportedFailedException, TupleError
from storm_on_spark.api.state import BaseStatefulBolt
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.streams.stream import DEFAULT_STREAM, GlobalStreamId
from storm_on_spark.api.task.collector import BasicOutputCollector, OutputCollector
from storm_on_spark.api.text.wording import kind_of
from storm_on_spark.coordination.batch import BatchBoltExecutor, FinishedCallback, IBatchBolt, TimeoutCallback
from storm_on_spark.coordination.rules import Coordination

if TYPE_CHECKING:
    from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
    from storm_on_spark.api.task.collector import Anchors
    from storm_on_spark.api.task.context import TopologyContext
    from storm_on_spark.api.tuple import Tuple

log = logging.getLogger(__name__)

COORD_STREAM: Final = "coord-stream"
"""The direct stream of reports: a request's id, and how many tuples of it the receiving task has been sent."""
TIMER: Final = "coordination"
"""The timer by which unfinished requests expire."""
_STATE: Final = "_coordination"
"""The attribute of the inner bolt that holds the counts, so that they are saved with the bolt's own attributes."""


@dataclass(frozen=True)
class SourceArgs:
    """How an upstream component reports.

    Args:
        single: whether only one of its tasks has tuples of a request, and reports; otherwise each task does.
    """

    single: bool = False

    @classmethod
    def all(cls) -> SourceArgs:
        """Returns that each task reports."""
        return cls()

    @classmethod
    def one(cls) -> SourceArgs:
        """Returns that one task reports; Storm's `SourceArgs.single()`."""
        return cls(single=True)


@dataclass(frozen=True)
class IdStreamSpec:
    """The stream that announces each request to the task that gets its tuples."""

    source: GlobalStreamId

    @classmethod
    def make_detect_spec(cls, component: str, stream: str) -> IdStreamSpec:
        """Returns the specification of a stream of a component."""
        return cls(GlobalStreamId(component, stream))


@dataclass(frozen=True)
class _Timeout(Settings):
    timeout_secs: Annotated[int, Config.TOPOLOGY_MESSAGE_TIMEOUT_SECS]


class CoordinatedBolt(BaseRichBolt):
    """Executes a bolt whose tuples all have a request's id as their first value, and counts them by request.

    Each task reports on the direct stream `coord-stream` how many tuples of a request it has sent to each downstream
    task; subscribe to it with a direct grouping. Counts are part of the inner bolt's attributes: exact after restarts.

    Args:
        delegate: the bolt: rich, basic, or a batch bolt. A `FinishedCallback` is told when a request is complete.
        sources: upstream component -> how it reports; empty if a task gets one tuple per request.
        id_stream: the stream that announces requests; None if none does.

    Raises:
        InvalidTopologyError: the bolt is of another kind, or says itself how it is pickled.

    Example:
        >>> from storm_on_spark.api import BaseBasicBolt, Fields
        >>> class Exclaim(BaseBasicBolt):
        ...     def execute(self, tup, collector):
        ...         collector.emit([tup[0], tup[1] + "!"])
        ...     def declare_output_fields(self, declarer):
        ...         declarer.declare(Fields("id", "result"))
        >>> from storm_on_spark.testing import make_tuple, run_bolt
        >>> run_bolt(CoordinatedBolt(Exclaim()), [make_tuple(["r1", "hello"], ["id", "word"])]).values()
        [('r1', 'hello!')]
    """

    stateless = False

    def __init__(
        self,
        delegate: BaseRichBolt | BaseBasicBolt | IBatchBolt,
        sources: Mapping[str, SourceArgs] | None = None,
        id_stream: IdStreamSpec | None = None,
    ) -> None:
        if isinstance(delegate, IBatchBolt):
            delegate = BatchBoltExecutor(delegate)
        given: object = delegate
        if not isinstance(given, BaseRichBolt | BaseBasicBolt) or isinstance(given, BaseStatefulBolt):
            raise InvalidTopologyError(
                f"CoordinatedBolt takes a rich, basic or batch bolt without a KeyValueState, not {kind_of(delegate)}"
            )
        if any("__getstate__" in vars(cls) for cls in type(delegate).__mro__ if cls is not object):
            raise InvalidTopologyError(
                f"CoordinatedBolt: {kind_of(delegate)} has a __getstate__ of its own, which would leave out the counts "
                "of requests; keep what is not to be saved in a helper object with a __getstate__"
            )
        self._delegate = delegate
        self._sources = dict(sources or {})
        self._id_stream = id_stream
        self.adapted = Adapted(component_class(delegate))

    @property
    def state_holder(self) -> object:
        """The object whose attributes are saved."""
        return self._delegate

    @property
    def state_services(self) -> tuple[object, ...]:
        """What the inner bolt was given."""
        return (self._counting, *getattr(self._delegate, "state_services", ()))

    @property
    def requests(self) -> Coordination[Tuple]:
        """The unfinished requests."""
        found: Coordination[Tuple] = vars(self._delegate)[_STATE]
        return found

    def declare_timers(self, conf: Mapping[str, Any]) -> Mapping[str, int]:
        """Declares the timer by which requests expire, beside the bolt's own."""
        return {**self._delegate.declare_timers(conf), TIMER: _Timeout.of(conf).timeout_secs * 500}

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Prepares the bolt."""
        reports = sum(
            1 if args.single else len(context.component_tasks(source)) for source, args in self._sources.items()
        )
        self._targets = sorted(
            {
                task
                for component in context.this_targets().get(COORD_STREAM, {})
                for task in context.component_tasks(component)
            }
        )
        vars(self._delegate)[_STATE] = Coordination(reports, self._id_stream is not None)
        self._collector = collector
        self._counting = _CountingCollector(self, collector)
        if isinstance(self._delegate, BaseBasicBolt):
            self._delegate.prepare(conf, context)
        else:
            self._delegate.prepare(conf, context, self._counting)

    def execute(self, tup: Tuple) -> None:
        """Gives a tuple to the bolt, or takes a report or an announcement."""
        if tup.is_timer and tup["name"] == TIMER:
            self._expire()
            self._collector.ack(tup)
        elif tup.is_timer or tup.is_tick:
            self._call(tup, self._collector)
        elif tup.source_stream == COORD_STREAM:
            self.requests.report(tup[0], tup[1])
            self._take(tup, held=self._id_stream is None)
        elif self._id_stream is not None and self._id_stream.source == GlobalStreamId(
            tup.source_component, tup.source_stream
        ):
            self.requests.announce(tup[0])
            self._take(tup, held=True)
        else:
            self.requests.begin(tup[0])
            self._call(tup, self._counting)

    def finish_micro_batch(self) -> None:
        """Tells a rich bolt."""
        if isinstance(self._delegate, BaseRichBolt):
            self._delegate.finish_micro_batch()

    def cleanup(self) -> None:
        """Ends the bolt."""
        self._delegate.cleanup()

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares the bolt's streams, and that of reports."""
        self._delegate.declare_output_fields(declarer)
        declarer.declare_stream(COORD_STREAM, Fields("id", "count"), direct=True)

    def get_component_configuration(self) -> Mapping[str, Any] | None:
        """Returns the bolt's."""
        return self._delegate.get_component_configuration()

    def settle(self, tup: Tuple, *, ack: bool) -> None:
        """Acks or fails a tuple of a request on behalf of the bolt."""
        key = tup[0]
        if ack:
            self.requests.acked(key)
        else:
            self.requests.fail(key)
        if self._check(tup) and ack:
            self._collector.ack(tup)
        else:
            self._collector.fail(tup)

    def _call(self, tup: Tuple, collector: OutputCollector) -> None:
        try:
            if isinstance(self._delegate, BaseBasicBolt):
                self._delegate.execute(tup, _AnchoringCollector(collector, tup))
                collector.ack(tup)
            else:
                self._delegate.execute(tup)
        except FailedException as error:
            if isinstance(error, ReportedFailedException):
                collector.report_error(error)
            collector.fail(tup)

    def _take(self, tup: Tuple, held: bool) -> None:
        """Goes on after a report or an announcement; the one that completes a request is acked with the request."""
        if held:
            self.requests.begin(tup[0]).held.append(tup)
        fine = self._check(tup)
        if not held:
            (self._collector.ack if fine else self._collector.fail)(tup)

    def _check(self, tup: Tuple) -> bool:
        """Ends the request of a tuple if it has failed or is complete; returns whether it has not failed."""
        requests, key = self.requests, tup[0]
        if key not in requests:
            return False
        if requests.begin(key).failed:
            self._fail(key)
            return False
        if not requests.is_complete(key):
            return True
        try:
            if isinstance(self._delegate, FinishedCallback):
                self._delegate.finished_id(key)
        except FailedException as error:
            log.warning("request %r failed at its end: %s", key, error)
            if isinstance(error, ReportedFailedException):
                self._collector.report_error(error)
            self._fail(key)
            return False
        request = requests.end(key)
        for task in self._targets:
            self._collector.emit_direct(task, [key, request.sent.get(task, 0)], tup, COORD_STREAM)
        for each in request.held:
            self._collector.ack(each)
        return True

    def _fail(self, key: Hashable) -> None:
        for each in self.requests.end(key).held:
            self._collector.fail(each)
        if isinstance(self._delegate, TimeoutCallback):
            # Storm keeps what the bolt has of a failed request until it would have timed out.
            self._delegate.timeout_id(key)

    def _expire(self) -> None:
        for key, request in self.requests.expired():
            for each in request.held:
                self._collector.fail(each)
            if isinstance(self._delegate, TimeoutCallback):
                self._delegate.timeout_id(key)


class _CountingCollector(OutputCollector):
    """The collector of the inner bolt: it counts by request what goes out, and what is acked.

    Args:
        bolt: whose counts they are.
        collector: the task's.
    """

    def __init__(self, bolt: CoordinatedBolt, collector: OutputCollector) -> None:
        self._bolt = bolt
        self._collector = collector

    def emit(self, values: Sequence[Any], anchors: Anchors = None, stream: str = DEFAULT_STREAM) -> list[int]:
        """Emits a tuple of a request."""
        tasks = self._collector.emit(values, anchors, stream)
        self._bolt.requests.sent(_id_of(values), tasks)
        return tasks

    def emit_direct(
        self, task: int, values: Sequence[Any], anchors: Anchors = None, stream: str = DEFAULT_STREAM
    ) -> None:
        """Emits a tuple of a request to one task."""
        self._collector.emit_direct(task, values, anchors, stream)
        self._bolt.requests.sent(_id_of(values), [task])

    def ack(self, tup: Tuple) -> None:
        """Acks a tuple, and with the last one the request."""
        if tup.is_tick or tup.is_timer:
            self._collector.ack(tup)
        else:
            self._bolt.settle(tup, ack=True)

    def fail(self, tup: Tuple) -> None:
        """Fails a tuple, and with it the request."""
        if tup.is_tick or tup.is_timer:
            self._collector.fail(tup)
        else:
            self._bolt.settle(tup, ack=False)

    def reset_timeout(self, tup: Tuple) -> None:
        """Restarts a tuple's message timeout."""
        self._collector.reset_timeout(tup)

    def report_error(self, error: BaseException) -> None:
        """Shows an error in the topology's status."""
        self._collector.report_error(error)


class _AnchoringCollector(BasicOutputCollector):
    """The collector of a basic bolt for one tuple.

    Args:
        collector: what emits.
        tup: what is emitted for.
    """

    def __init__(self, collector: OutputCollector, tup: Tuple) -> None:
        self._collector = collector
        self._tup = tup

    def emit(self, values: Sequence[Any], stream: str = DEFAULT_STREAM) -> list[int]:
        """Emits a tuple that is anchored to the input."""
        return self._collector.emit(values, self._tup, stream)

    def emit_direct(self, task: int, values: Sequence[Any], stream: str = DEFAULT_STREAM) -> None:
        """Emits a tuple to one task."""
        self._collector.emit_direct(task, values, self._tup, stream)

    def reset_timeout(self, tup: Tuple) -> None:
        """Restarts a tuple's message timeout."""
        self._collector.reset_timeout(tup)

    def report_error(self, error: BaseException) -> None:
        """Shows an error in the topology's status."""
        self._collector.report_error(error)


def _id_of(values: Sequence[Any]) -> Hashable:
    if not len(values):
        raise TupleError("a coordinated bolt emitted a tuple without values; the first one must be the request's id")
    found: Hashable = values[0]
    return found
