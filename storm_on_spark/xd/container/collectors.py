"""The collectors of an instance's components: emits, acks and fails are gathered until the step is committed."""

from __future__ import annotations

import itertools
import logging
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from storm_on_spark.api.errors import TupleError
from storm_on_spark.api.streams.stream import DEFAULT_STREAM
from storm_on_spark.api.task.collector import Anchors, BasicOutputCollector, OutputCollector, SpoutOutputCollector
from storm_on_spark.api.text.traces import reported, summary
from storm_on_spark.api.tuple import Delivery, KnownLineage, Tuple
from storm_on_spark.runtime.reports.report import Failure, log_error
from storm_on_spark.runtime.reports.shown_values import input_text
from storm_on_spark.xd.bus.journal import Message
from storm_on_spark.xd.modules.messages.message import DEAD_LETTERS

logger = logging.getLogger(__name__)


class _Gathering:
    """The common part of all collectors.

    Args:
        component: the label, for messages.
    """

    def __init__(self, component: str) -> None:
        self.component = component
        #: Messages emitted since the last `take`.
        self.emitted: list[Message] = []
        self.executing: Tuple | None = None
        self.report: Callable[[Failure], None] = lambda failure: log_error(logger, failure)

    def take(self) -> list[Message]:
        """Returns the emitted messages and clears them."""
        found, self.emitted = self.emitted, []
        return found

    def message(self, values: Sequence[Any], stream: str) -> Message:
        """Returns values as a message.

        Raises:
            TupleError: they don't form a message.
        """
        if stream != DEFAULT_STREAM or len(values) != 2 or not isinstance(values[1], dict):
            raise TupleError(
                f'"{self.component}" must emit a payload and headers, a dict, on the default stream; '
                f"it emitted {len(values)} values on {stream!r:.50}"
            )
        return Message(values[0], values[1])

    def report_error(self, error: BaseException) -> None:
        """Logs an error with the tuple being executed."""
        given = "" if self.executing is None else input_text(self.executing)
        text = f"{self.component} reports: {summary(error)}"
        self.report(Failure(self.component, None, text, "", False, reported(error), given))

    def no_direct(self) -> TupleError:
        """Returns the error of an emit to one task."""
        return TupleError(f'"{self.component}" emits to one task, but modules do not know what follows them')


class SpoutCollector(_Gathering, SpoutOutputCollector):
    """The collector of a source."""

    def __init__(self, component: str) -> None:
        super().__init__(component)
        #: Message id, or None; the message; whether it is a dead letter.
        self.sent: list[tuple[Any, Message, bool]] = []
        self.pending = 0

    def emit(self, values: Sequence[Any], message_id: Any = None, stream: str = DEFAULT_STREAM) -> list[int]:
        """Gathers a message."""
        dead = stream == DEAD_LETTERS
        self.sent.append((message_id, self.message(values, DEFAULT_STREAM if dead else stream), dead))
        return []

    def emit_direct(
        self, task: int, values: Sequence[Any], message_id: Any = None, stream: str = DEFAULT_STREAM
    ) -> None:
        """Raises: there are no tasks to choose from."""
        raise self.no_direct()

    def pending_count(self) -> int:
        """Returns how many messages are not acked yet."""
        return self.pending + len(self.sent)


class BasicCollector(_Gathering, BasicOutputCollector):
    """The collector of a bolt that acks by returning."""

    def emit(self, values: Sequence[Any], stream: str = DEFAULT_STREAM) -> list[int]:
        """Gathers a message."""
        self.emitted.append(self.message(values, stream))
        return []

    def emit_direct(self, task: int, values: Sequence[Any], stream: str = DEFAULT_STREAM) -> None:
        """Raises: there are no tasks to choose from."""
        raise self.no_direct()

    def reset_timeout(self, tup: Tuple) -> None:
        """Does nothing: there is no timeout."""


class RichCollector(_Gathering, OutputCollector):
    """The collector of a bolt that acks explicitly, perhaps in a later `execute`."""

    def __init__(self, component: str) -> None:
        super().__init__(component)
        #: Edge of each tuple that was executed and neither acked nor failed -> the number of its input. A tuple has its
        #: edge also where a bolt's state was restored, which made a copy of it.
        self.open: dict[int, int] = {}
        #: Numbers of inputs that failed.
        self.failed: set[int] = set()
        # A tuple that an earlier process left in the state must not be taken for one of this process.
        self._edges = itertools.count(uuid.uuid4().int >> 66)

    def opened(self, values: Sequence[Any], delivery: Delivery, number: int) -> Tuple:
        """Returns the tuple of an input and holds it until it is acked or failed.

        Args:
            values: of the tuple.
            delivery: its delivery, without a lineage.
            number: of the input.
        """
        edge = next(self._edges)
        self.open[edge] = number
        component, stream, task, fields = delivery.component, delivery.stream, delivery.task, delivery.fields
        return Tuple.of(values, Delivery(component, stream, task, fields, KnownLineage([edge], [edge])))

    def emit(self, values: Sequence[Any], anchors: Anchors = None, stream: str = DEFAULT_STREAM) -> list[int]:
        """Gathers a message."""
        self.emitted.append(self.message(values, stream))
        return []

    def emit_direct(
        self, task: int, values: Sequence[Any], anchors: Anchors = None, stream: str = DEFAULT_STREAM
    ) -> None:
        """Raises: there are no tasks to choose from."""
        raise self.no_direct()

    def ack(self, tup: Tuple) -> None:
        """Notes that an input is done."""
        for edge in tup.message_id:
            self.open.pop(edge, None)

    def fail(self, tup: Tuple) -> None:
        """Notes that an input failed."""
        for edge in tup.message_id:
            if edge in self.open:
                self.failed.add(self.open.pop(edge))

    def reset_timeout(self, tup: Tuple) -> None:
        """Does nothing: there is no timeout."""
