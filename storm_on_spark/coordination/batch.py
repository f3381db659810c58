"""Batch bolts: one instance per request, which is told when it has got all tuples of the request."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from storm_on_spark.api.adapted import Adapted
from storm_on_spark.api.component import BaseComponent, BaseRichBolt
from storm_on_spark.api.errors import FailedException, InvalidTopologyError, ReportedFailedException
from storm_on_spark.api.streams.stream import DEFAULT_STREAM
from storm_on_spark.api.text.wording import kind_of

if TYPE_CHECKING:
    from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
    from storm_on_spark.api.task.collector import OutputCollector
    from storm_on_spark.api.task.context import TopologyContext
    from storm_on_spark.api.tuple import Tuple


class FinishedCallback(ABC):
    """A bolt that is told when a request is complete."""

    @abstractmethod
    def finished_id(self, request_id: Hashable) -> None:
        """Called once the task has processed all tuples of a request; it may still emit."""


class TimeoutCallback(ABC):
    """A bolt that is told when a request is given up."""

    @abstractmethod
    def timeout_id(self, request_id: Hashable) -> None:
        """Called when a request stayed incomplete for longer than `topology.message.timeout.secs`."""


class BatchBoltCollector:
    """The collector of a batch bolt. What it emits is not anchored: the request is acked or failed as a whole.

    Args:
        collector: the task's.
    """

    def __init__(self, collector: OutputCollector) -> None:
        self._collector = collector

    def emit(self, values: Sequence[Any], stream: str = DEFAULT_STREAM) -> list[int]:
        """Emits a tuple, whose first value must be the request's id; returns the tasks that get it."""
        return self._collector.emit(values, stream=stream)

    def emit_direct(self, task: int, values: Sequence[Any], stream: str = DEFAULT_STREAM) -> None:
        """Emits a tuple to one task, over a stream that was declared direct."""
        self._collector.emit_direct(task, values, stream=stream)

    def report_error(self, error: BaseException) -> None:
        """Shows an error in the topology's status."""
        self._collector.report_error(error)


class IBatchBolt(BaseComponent):
    """A bolt of which every request gets its own instance.

    The instance that the topology is built with is the template: each task copies it for every request, and calls
    `prepare` of the copy. What an instance keeps has to be picklable: it is state, like the attributes of any bolt.

    Example:
        >>> class CountOfRequest(BaseBatchBolt):
        ...     def prepare(self, conf, context, collector, batch_id):
        ...         self.collector, self.id, self.count = collector, batch_id, 0
        ...     def execute(self, tup):
        ...         self.count += tup[1]
        ...     def finish_batch(self):
        ...         self.collector.emit([self.id, self.count])
        ...     def declare_output_fields(self, declarer):
        ...         declarer.declare(Fields("id", "count"))
        >>> from storm_on_spark.api import Fields
    """

    @abstractmethod
    def prepare(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: BatchBoltCollector, batch_id: Any
    ) -> None:
        """Called with the first tuple of a request.

        Args:
            conf: the topology's configuration merged with the component's.
            context: the identity and place of the task.
            collector: emits tuples; keep it.
            batch_id: the request's id, the first value of all its tuples.
        """

    @abstractmethod
    def execute(self, tup: Tuple) -> None:
        """Processes a tuple of the request, which is acked afterwards.

        Raises:
            FailedException: fails the request.
        """

    @abstractmethod
    def finish_batch(self) -> None:
        """Called after the last tuple of the request.

        Raises:
            FailedException: fails the request.
        """


class BaseBatchBolt(IBatchBolt):
    """Base class of batch bolts."""


class BatchBoltExecutor(BaseRichBolt, FinishedCallback, TimeoutCallback):
    """Executes a batch bolt. `CoordinatedBolt` tells it when requests are complete.

    Args:
        bolt: the template.

    Raises:
        InvalidTopologyError: it is not a batch bolt.
    """

    stateless = False

    def __init__(self, bolt: IBatchBolt) -> None:
        if not isinstance(bolt, IBatchBolt):
            raise InvalidTopologyError(f"BatchBoltExecutor takes an IBatchBolt, not {kind_of(bolt)}")
        self._template = bolt
        #: Request -> its instance.
        self._open: dict[Hashable, IBatchBolt] = {}
        self.adapted = Adapted(type(bolt))

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Keeps what instances are prepared with."""
        self._conf, self._context, self._collector = conf, context, collector
        self._given = BatchBoltCollector(collector)
        self.state_services: tuple[object, ...] = (conf, self._given)

    @property
    def state_holder(self) -> BatchBoltExecutor:
        """The object whose attributes are saved."""
        return self

    def execute(self, tup: Tuple) -> None:
        """Gives a tuple to the instance of its request."""
        if tup.is_tick or tup.is_timer:
            self._collector.ack(tup)
            return
        try:
            self._of(tup[0]).execute(tup)
        except FailedException as error:
            if isinstance(error, ReportedFailedException):
                self._collector.report_error(error)
            self._collector.fail(tup)
        else:
            self._collector.ack(tup)

    def finished_id(self, request_id: Hashable) -> None:
        """Finishes a request; one without tuples too."""
        bolt = self._of(request_id)
        del self._open[request_id]
        bolt.finish_batch()

    def timeout_id(self, request_id: Hashable) -> None:
        """Forgets a request."""
        self._open.pop(request_id, None)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares the bolt's streams."""
        self._template.declare_output_fields(declarer)

    def get_component_configuration(self) -> Mapping[str, Any] | None:
        """Returns the bolt's."""
        return self._template.get_component_configuration()

    def _of(self, request_id: Hashable) -> IBatchBolt:
        found = self._open.get(request_id)
        if found is None:
            found = copy.deepcopy(self._template)
            found.prepare(self._conf, self._context, self._given, request_id)
            self._open[request_id] = found
        return found
