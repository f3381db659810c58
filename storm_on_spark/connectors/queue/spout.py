"""A spout that reads a queue of RabbitMQ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from storm_on_spark.api.component import BaseRichSpout
from storm_on_spark.api.errors import ConfigError
from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.task.collector import SpoutOutputCollector
from storm_on_spark.api.task.context import TopologyContext
from storm_on_spark.connectors.queue.errors import QueueSpoutError
from storm_on_spark.connectors.queue.link import Link, MessageId, QueueMessage, QueueServer, need_pika

BODY: Final = Fields("body")
_MOST_PREFETCH: Final = 65_535
_MOST_NAME: Final = 255


class _NoState:
    """The spout's state that the runtime saves; the queue itself knows the pending messages."""


def body_as_text(message: QueueMessage) -> list[str]:
    """Returns the body as UTF-8 text: the default translator."""
    return [message.body.decode("utf-8")]


class QueueSpout(BaseRichSpout):
    """Emits the messages of a queue, by the protocol of Storm's guide on guaranteed processing.

    A message that is handed over stays pending in the server. An ack deletes it, a fail puts it back, and so does the
    server when the client is gone: when a spout host is killed, its pending messages come again. So none is lost, and
    one may be processed twice.

    Args:
        server: where the queue is.
        queue: its name; it must be there.
        translate: makes the values of a tuple from a message; None deletes the message without a tuple. What it raises
            ends the topology, and the message stays in the queue.
        fields: names of the values.
        prefetch: how many messages of a task are pending at most, emitted or not.

    Raises:
        ConfigError: an argument makes no sense.
        SetupError: pika is not installed.

    Example:
        >>> spout = QueueSpout(QueueServer("127.0.0.1"), "tasks")
        >>> spout.fields
        Fields('body')
    """

    def __init__(
        self,
        server: QueueServer,
        queue: str,
        translate: Callable[[QueueMessage], Sequence[Any] | None] = body_as_text,
        fields: Fields = BODY,
        prefetch: int = 1_000,
    ) -> None:
        need_pika()
        name: Any = queue
        most: Any = prefetch
        if not isinstance(server, QueueServer):
            raise ConfigError(f"server is a QueueServer (given {server!r:.100})", key="server")
        if not isinstance(name, str) or not 0 < len(name.encode()) <= _MOST_NAME:
            raise ConfigError(f"a queue's name is a text of 1 to {_MOST_NAME} bytes (given {name!r:.300})", key="queue")
        if not callable(translate):
            raise ConfigError(f"translate is a function of a message (given {translate!r:.100})", key="translate")
        if type(most) is not int or not 0 < most <= _MOST_PREFETCH:
            raise ConfigError(f"prefetch is a number from 1 to {_MOST_PREFETCH} (given {most!r:.100})", key="prefetch")
        self._server, self._queue, self._translate, self._prefetch = server, queue, translate, prefetch
        self.fields = fields

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares the fields."""
        declarer.declare(self.fields)

    def committed_outside(self) -> str:
        """Returns nothing: acked messages are gone from the queue, and their number is unknown."""
        return ""

    def open(self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector) -> None:
        """Prepares the task; the first call of `next_tuple` connects."""
        self._collector = collector
        self._name = f'queue spout "{context.this_component_id}" (task {context.this_task_id})'
        self.state_holder = _NoState()
        self._link: Link | None = None
        self._told: str | None = None

    def next_tuple(self) -> None:
        """Emits the next message that the server has handed over. Never waits for it."""
        if self._link is None:
            self._link = Link(self._server, self._queue, self._prefetch, self._name)
        link = self._link
        if link.failure is not None:
            raise link.failure
        self._tell(link.trouble)
        try:
            message_id, message = link.messages.popleft()
        except IndexError:
            return
        try:
            values = self._translate(message)
        except Exception as error:  # whatever a user's function raises
            raise QueueSpoutError(
                f"{self._name}: no tuple can be made of a message: {type(error).__name__}: {error}"
            ) from error
        if values is None:
            link.settle(message_id, True)
        else:
            self._collector.emit(values, message_id)

    def ack(self, message_id: MessageId) -> None:
        """Deletes the message from the queue."""
        if self._link is not None:
            self._link.settle(message_id, True)

    def fail(self, message_id: MessageId) -> None:
        """Puts the message back into the queue."""
        if self._link is not None:
            self._link.settle(message_id, False)

    def close(self) -> None:
        """Ends the connection; pending messages return to the queue."""
        if self._link is not None:
            self._link.close()
            self._link = None

    def _tell(self, trouble: str | None) -> None:
        if trouble != self._told:
            self._told = trouble
            if trouble is not None:
                self._collector.report_error(QueueSpoutError(f"{self._name}: no connection to its queue: {trouble}"))
