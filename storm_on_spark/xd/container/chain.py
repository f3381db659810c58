"""The components of one instance: a module, the parts of a composed one, or a whole stream.

Messages go from one to the next by a call. The messages that the last one emits become one record of the journal,
together with the state of all components.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol, runtime_checkable

from storm_on_spark.api.building.builder import TopologyBuilder
from storm_on_spark.api.component import BaseBasicBolt, BaseRichBolt, BaseRichSpout
from storm_on_spark.api.config import effective_conf
from storm_on_spark.api.errors import FailedException, TupleError
from storm_on_spark.api.sink import SinkBolt
from storm_on_spark.api.streams.constants import SYSTEM_COMPONENT, SYSTEM_TASK, TICK_STREAM
from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.streams.stream import DEFAULT_STREAM
from storm_on_spark.api.task.collector import BasicOutputCollector
from storm_on_spark.api.task.context import TopologyContext
from storm_on_spark.api.tuple import Delivery, Tuple
from storm_on_spark.plan.compile import compile_graph, place
from storm_on_spark.runtime.reports.report import USER_ERRORS, Failure
from storm_on_spark.runtime.reports.shown_values import ids_text, input_text
from storm_on_spark.runtime.run.settings import BoltSettings
from storm_on_spark.runtime.run.wiring import Wiring
from storm_on_spark.runtime.state.snapshot import Snapshots
from storm_on_spark.xd.bus.journal import Message
from storm_on_spark.xd.container.collectors import BasicCollector, RichCollector, SpoutCollector
from storm_on_spark.xd.container.errors import ExecuteError, failure_of
from storm_on_spark.xd.container.outbox import MOST_MESSAGE_BYTES, Outbox, Refused, size_of
from storm_on_spark.xd.modules.declaration import Component
from storm_on_spark.xd.modules.messages.message import FIELDS

_INPUT: Final = "__bus"
_TICK_FIELDS: Final = Fields("rate_secs")

Holds = tuple[Mapping[int, int], ...]
"""Of each bolt: edges of tuples that wait for their ack -> numbers of their inputs."""


@runtime_checkable
class TakesBack(Protocol):
    """A sink whose writes are visible before a step is committed."""

    def take_back(self) -> None:
        """Removes messages written after its state was saved, because another reader of a queue may have them now."""


class Chain:
    """Components in the order of the flow; a source may be the first.

    Args:
        parts: label and component of each.
        name: of the instance.
        clock: seconds, for ticks.

    Raises:
        InvalidTopologyError: a component has an invalid declaration.
    """

    def __init__(
        self, parts: Sequence[tuple[str, Component]], name: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._name = name
        self._parts = list(parts)
        first = parts[0][1]
        self.source = first if isinstance(first, BaseRichSpout) else None
        self.sent = SpoutCollector(parts[0][0])
        self._contexts, self._confs = _contexts(self._parts, name)
        self._bolts = [
            _Bolt(label, component, name, clock)
            for label, component in parts
            if isinstance(component, BaseBasicBolt | BaseRichBolt)
        ]
        self._states: list[Snapshots | Outbox | None] = []

    def report_to(self, report: Callable[[Failure], None]) -> None:
        """Sets the receiver of errors that components report."""
        for collector in (self.sent, *(bolt.collector for bolt in self._bolts)):
            collector.report = report

    def open(self, state: Sequence[bytes | None]) -> None:
        """Opens all components and restores a state.

        Args:
            state: of each component, as `state` returned it. Empty for a new instance.
        """
        bolts = {bolt.label: bolt for bolt in self._bolts}
        for label, component in self._parts:
            conf, context = self._confs[label], self._contexts[label]
            if isinstance(component, BaseRichSpout):
                component.open(conf, context, self.sent)
                given: tuple[object, ...] = (conf, context, self.sent)
            else:
                given = bolts[label].prepare(conf, context)
            stateless = getattr(component, "stateless", None) is True
            outbox = bolts[label].outbox if label in bolts else None
            self._states.append(outbox or (None if stateless else Snapshots(component, f'"{label}"', given)))
        for snapshots, data in zip(self._states, state, strict=False):
            if snapshots is not None and data is not None:
                snapshots.restore(data)
        for _, component in self._parts:
            if isinstance(component, TakesBack):
                component.take_back()
        for outbox in self._outboxes:
            outbox.open()
        if self.source is not None:
            self.source.activate()

    def state(self) -> tuple[bytes | None, ...]:
        """Returns the state of each component."""
        return tuple(None if each is None else each.take() for each in self._states)

    def holds(self) -> Holds:
        """Returns which inputs each bolt holds, for `restore`."""
        return tuple(bolt.holds() for bolt in self._bolts)

    def restore(self, state: Sequence[bytes | None], holds: Holds = ()) -> None:
        """Restores the bolts to a state, or to their state after `prepare`. Sinks keep the messages of the step.

        Args:
            state: as `state` returned it; empty for none yet.
            holds: as `holds` returned it then. Empty if no input was held.
        """
        given = list(state) or [None] * len(self._states)
        for (_, component), snapshots, data in zip(self._parts, self._states, given, strict=True):
            if isinstance(snapshots, Snapshots) and component is not self.source:
                snapshots.restore(snapshots.prepared if data is None else data)
        for bolt, held in zip(self._bolts, holds or [{}] * len(self._bolts), strict=True):
            bolt.hold(held)

    @property
    def stateless(self) -> bool:
        """Whether all bolts are stateless."""
        return all(
            not isinstance(state, Snapshots) or component is self.source
            for (_, component), state in zip(self._parts, self._states, strict=True)
        )

    def next_tuple(self) -> None:
        """Calls the source.

        Raises:
            ExecuteError: the source raised an error.
        """
        assert self.source is not None
        self._ask("next_tuple", self.source.next_tuple)

    def ack(self, message_id: Any) -> None:
        """Tells the source that a message is done.

        Raises:
            ExecuteError: the source raised an error.
        """
        assert self.source is not None
        self._ask("ack", self.source.ack, message_id)

    def fail(self, message_id: Any) -> None:
        """Tells the source that a message failed.

        Raises:
            ExecuteError: the source raised an error.
        """
        assert self.source is not None
        self._ask("fail", self.source.fail, message_id)

    def execute(self, message: Message, number: int) -> list[Message]:
        """Passes a message through all bolts.

        Args:
            message: the input.
            number: the input's number, which `held` and `failed` return.

        Returns:
            The messages that the last bolt emitted for it.

        Raises:
            ExecuteError: a bolt failed it.
        """
        marks = [outbox.mark() for outbox in self._outboxes]
        try:
            return self._through(0, [message], number)
        except ExecuteError:
            for outbox, mark in zip(self._outboxes, marks, strict=True):
                outbox.back_to(mark)
            raise

    def full(self) -> bool:
        """Whether the step should end: a sink has enough to write."""
        return any(outbox.full() for outbox in self._outboxes)

    def forget(self) -> None:
        """Drops the step's messages from the sinks."""
        for outbox in self._outboxes:
            outbox.back_to(0)

    def deliver(self, *, durable: bool) -> Refused:
        """Makes the sinks write the messages of the last step; see `Outbox.deliver`."""
        return [refused for outbox in self._outboxes for refused in outbox.deliver(durable=durable)]

    def finish(self) -> list[Message]:
        """Ends a step: bolts finish their micro-batch. Returns the messages emitted by then."""
        found: list[Message] = []
        for index, bolt in enumerate(self._bolts):
            found += self._through(index + 1, bolt.finish(), -1)
        return found

    def tick(self) -> list[Message] | None:
        """Executes the tick tuples that are due; returns the emitted messages, or None if none was due."""
        due = [index for index, bolt in enumerate(self._bolts) if bolt.tick_due()]
        if not due:
            return None
        found: list[Message] = []
        for index in due:
            found += self._through(index + 1, self._bolts[index].tick(), -1)
        return found

    def held(self) -> set[int]:
        """Returns the numbers of inputs that a bolt has not yet acked or failed."""
        return {number for bolt in self._bolts for number in bolt.holds().values()}

    def failed(self) -> set[int]:
        """Returns, once, the numbers of inputs that a bolt held and then failed."""
        return {number for bolt in self._bolts for number in bolt.failed()}

    def close(self) -> None:
        """Ends all components that were opened."""
        for _, component in self._parts[: len(self._states)]:
            if isinstance(component, BaseRichSpout):
                component.deactivate()
                component.close()
            else:
                component.cleanup()

    def _ask(self, what: str, call: Callable[..., object], *message_ids: Any) -> None:
        try:
            call(*message_ids)
        except USER_ERRORS as error:
            given = "".join(map(ids_text, message_ids))
            raise ExecuteError(failure_of(self._parts[0][0], f"failed in {what}", error, given)) from error

    @property
    def _outboxes(self) -> list[Outbox]:
        return [bolt.outbox for bolt in self._bolts if bolt.outbox is not None]

    def _through(self, first: int, messages: list[Message], number: int) -> list[Message]:
        for bolt in self._bolts[first:]:
            passed: list[Message] = []
            for message in messages:
                passed += bolt.execute(message, number)
            messages = passed
        return messages


class _Bolt:
    """A bolt and its collector."""

    def __init__(
        self, label: str, component: BaseBasicBolt | BaseRichBolt, name: str, clock: Callable[[], float]
    ) -> None:
        self.label = label
        self._component = component
        #: Of a sink whose tuples are written after the commit.
        self.outbox: Outbox | None = None
        self.collector = BasicCollector(label) if isinstance(component, BaseBasicBolt) else RichCollector(label)
        self._delivery = Delivery(_INPUT, DEFAULT_STREAM, 1, Fields(*FIELDS))
        if isinstance(component, SinkBolt):
            self.outbox = Outbox(f"{name}/{label}", component, self._unawaited, self._report)
        self._clock = clock
        self._tick_secs: int | None = None
        self._ticked = clock()

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> tuple[object, ...]:
        """Prepares the bolt; returns the arguments of its `prepare`."""
        self._tick_secs = BoltSettings.of(conf).tick_secs
        if isinstance(self._component, BaseBasicBolt):
            self._component.prepare(conf, context)
            return conf, context
        assert isinstance(self.collector, RichCollector)
        self._component.prepare(conf, context, self.collector)
        return conf, context, self.collector

    def execute(self, message: Message, number: int) -> list[Message]:
        """Executes one message; returns the emitted messages."""
        values, collector = (message.payload, message.headers), self.collector
        size = 0 if self.outbox is None else self._size(message)
        if not isinstance(collector, RichCollector) or number == -1:
            found = self._unawaited(message)
            self._add(message, number, size)
            return found
        try:
            found = self._execute(collector.opened(values, self._delivery, number))
            if number in collector.failed:
                raise ExecuteError(
                    failure_of(self.label, "failed it", given=input_text(Tuple.of(values, self._delivery)))
                )
        except ExecuteError:
            collector.open = {edge: each for edge, each in collector.open.items() if each != number}
            collector.failed.discard(number)
            raise
        self._add(message, number, size)
        return found

    def tick_due(self) -> bool:
        """Whether a tick is due."""
        return self._tick_secs is not None and self._clock() - self._ticked >= self._tick_secs

    def tick(self) -> list[Message]:
        """Executes a tick tuple."""
        self._ticked = self._clock()
        delivery = Delivery(SYSTEM_COMPONENT, TICK_STREAM, SYSTEM_TASK, _TICK_FIELDS)
        return self._execute(Tuple.of((self._tick_secs,), delivery))

    def finish(self) -> list[Message]:
        """Ends a step."""
        if isinstance(self._component, BaseRichBolt):
            self._component.finish_micro_batch()
        if self.outbox is not None:
            assert isinstance(self.collector, RichCollector)
            self.outbox.end_step(self.collector.failed)
        return self.collector.take()

    def holds(self) -> Mapping[int, int]:
        """Returns the edges of tuples that wait for their ack, with the numbers of their inputs."""
        return dict(self.collector.open) if isinstance(self.collector, RichCollector) else {}

    def failed(self) -> set[int]:
        """Returns the numbers of inputs that were held and then failed, and forgets them."""
        if not isinstance(self.collector, RichCollector):
            return set()
        found, self.collector.failed = self.collector.failed, set()
        return found

    def hold(self, held: Mapping[int, int]) -> None:
        """Restores the tuples that wait for their ack, and drops emitted messages."""
        self.collector.take()
        if isinstance(self.collector, RichCollector):
            self.collector.open = dict(held)
            self.collector.failed.clear()

    def _size(self, message: Message) -> int:
        size = size_of(message)
        if size > MOST_MESSAGE_BYTES:
            most = f"{MOST_MESSAGE_BYTES:,} bytes are the most that it can keep until its step is committed"
            raise ExecuteError(failure_of(self.label, f"can't take a message of {size:,} bytes: {most}"))
        return size

    def _add(self, message: Message, number: int, size: int) -> None:
        if self.outbox is not None:
            self.outbox.add(message, number, size)

    def _unawaited(self, message: Message) -> list[Message]:
        return self._execute(Tuple.of((message.payload, message.headers), self._delivery))

    def _report(self, text: str) -> None:
        self.collector.report_error(TupleError(text))

    def _execute(self, tup: Tuple) -> list[Message]:
        collector = self.collector
        collector.executing = tup
        try:
            if isinstance(self._component, BaseBasicBolt):
                assert isinstance(collector, BasicOutputCollector)
                self._component.execute(tup, collector)
            else:
                self._component.execute(tup)
        except USER_ERRORS as error:
            collector.take()
            given = input_text(tup)
            if isinstance(error, FailedException):
                raise ExecuteError(failure_of(self.label, f"failed it: {error}", given=given)) from error
            raise ExecuteError(failure_of(self.label, "failed in execute", error, given)) from error
        finally:
            collector.executing = None
        return collector.take()


class _Input(BaseRichSpout):
    """Represents the bus when contexts are made."""

    def next_tuple(self) -> None:
        """Emits nothing."""

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares payload and headers."""
        declarer.declare(Fields(*FIELDS))


def _contexts(
    parts: Sequence[tuple[str, Component]], name: str
) -> tuple[dict[str, TopologyContext], dict[str, Mapping[str, Any]]]:
    """Returns the contexts and configurations that a topology of these components would have."""
    builder = TopologyBuilder()
    # No label ends with a dot.
    before = "input."
    if not isinstance(parts[0][1], BaseRichSpout):
        builder.set_spout(before, _Input())
    for label, component in parts:
        if isinstance(component, BaseRichSpout):
            builder.set_spout(label, component)
        else:
            builder.set_bolt(label, component).local_or_shuffle_grouping(before)
        before = label
    plan = place(compile_graph(builder.create_topology(), effective_conf({})), 1)
    wiring = Wiring(plan)
    tasks = {component.id: component.tasks for component in plan.components.values()}
    contexts, confs = {}, {}
    for label, _ in parts:
        confs[label] = wiring.conf(label)
        contexts[label] = TopologyContext(plan.topology, confs[label], tasks, tasks[label][0], name, name)
    return contexts, confs
