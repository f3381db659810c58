"""The pending messages of an instance's sink: kept with the step, and written once the step is committed.

An interrupted step is not repeated exactly: it may get other messages, or another instance may take them. So
a sink writes nothing before the commit. The record of the step has the messages for the sink, with a number. After the
commit they are written under that number, and after a crash again: the target recognises the number.
"""

from __future__ import annotations

import pickle
import secrets
import uuid
from collections.abc import Callable, Sequence
from typing import Final

from storm_on_spark.api.errors import CheckpointError, InvalidTopologyError
from storm_on_spark.api.sink import SinkBolt, SinkContext
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.xd.bus.journal import Message
from storm_on_spark.xd.modules.messages.message import FIELDS

Refused = list[tuple[Message, str]]
"""Messages whose rows the target refuses, with the reasons."""
_INPUTS: Final = (Fields(*FIELDS),)
_MOST_BYTES: Final = 4 << 20
MOST_MESSAGE_BYTES: Final = 11 << 20
"""The messages of a step and one more must fit into a record of the bus, which in Kafka is limited to 16 MB."""
_LONGEST_NAME: Final = 200
"""Characters of an instance's name by which a target knows it."""


class _RowsRefusedError(Exception):
    """The target refused rows. No row was written."""

    def __init__(self, rows: Sequence[tuple[int, str]]) -> None:
        super().__init__(f"{len(rows)} rows are refused")
        self.rows = rows


class Outbox:
    """The messages that a sink has taken and not written yet. It also implements `Plans` for its sink.

    Args:
        name: of the instance and the sink.
        sink: prepared.
        execute: makes the sink execute a message that needs no ack.
        report: called with errors that don't stop the instance.

    Raises:
        InvalidTopologyError: the sink needs Spark.
    """

    def __init__(
        self, name: str, sink: SinkBolt, execute: Callable[[Message], object], report: Callable[[str], None]
    ) -> None:
        if sink.needs_spark:
            raise InvalidTopologyError(
                f"{name}: the driver writes its tuples through Spark, and a container has none; deploy the stream with "
                "--fused"
            )
        self._sink = sink
        self._execute = execute
        self._report = report
        #: An instance that has lost its state is a new writer, whose numbers begin at 0.
        self._writer = f"{name[:_LONGEST_NAME]}-{uuid.uuid4().hex}"
        self._number, self._plan = 0, 0
        #: The messages of the last step, as long as they may be unwritten.
        self._messages: tuple[Message, ...] = ()
        #: The sink's result for them; None if it has not executed them in this process.
        self._written: bytes | None = b""
        #: The messages of the present step with the numbers of their inputs, and their bytes.
        self._taken: list[tuple[int, Message]] = []
        self._bytes = 0
        #: Whether the sink has executed messages that are not in `_taken`.
        self._differs = False

    @property
    def last(self) -> int:
        """See `Plans`."""
        return self._number

    def of(self, micro_batch: int) -> int | None:
        """See `Plans`."""
        return self._plan if micro_batch == self._number else None

    def open(self) -> None:
        """Asks the sink whether its target can be written to, and whether the state matches the target's data.

        Raises:
            SetupError: the target can't be written to.
            CheckpointError: the target has messages newer than the state.
        """
        self._asked(lambda: self._sink.open_sink(SinkContext(None, self._writer, inputs=_INPUTS, plans=self)))

    def take(self) -> bytes:
        """Returns the state at the end of a step."""
        return pickle.dumps((self._writer, self._number, self._plan, self._messages), pickle.HIGHEST_PROTOCOL)

    def restore(self, data: bytes) -> None:
        """Restores a state."""
        self._writer, self._number, self._plan, self._messages = pickle.loads(data)  # noqa: S301 # of our own journal
        self._written = None

    def add(self, message: Message, number: int, size: int) -> None:
        """Adds a message of `size_of` bytes that the sink has executed."""
        self._taken.append((number, message))
        self._bytes += size

    def full(self) -> bool:
        """Whether the step should end, as a record with more might be too large for the bus."""
        return self._bytes >= _MOST_BYTES

    def mark(self) -> int:
        """Returns how many messages the present step has, for `back_to`."""
        return len(self._taken)

    def back_to(self, mark: int) -> None:
        """Drops messages of the present step after a mark."""
        if len(self._taken) > mark:
            del self._taken[mark:]
            self._differs = True

    def end_step(self, failed: set[int]) -> None:
        """Makes the step's messages the next to be written.

        Args:
            failed: numbers of inputs that the sink has failed at the end of the step.
        """
        written = self._sink.take_written()
        taken, self._taken, self._bytes = self._taken, [], 0
        self._messages = tuple([message for number, message in taken if number not in failed])
        self._written, self._differs = None if self._differs else written, False
        if self._messages:
            self._number, self._plan = self._number + 1, secrets.randbits(63)

    def deliver(self, *, durable: bool) -> Refused:
        """Writes the messages of the last step, unless they have been written.

        Args:
            durable: whether written messages must survive the loss of the machine.

        Returns:
            The messages that the target refuses. If there are any, none is written, and only the others remain pending:
            commit that, so that no refused message is lost, and call this again.

        Raises:
            Exception: the target can't be written now.
        """
        if not self._messages:
            return []
        if self._written is None:
            self._written = self._made()
        context = SinkContext(
            None,
            self._writer,
            self._number,
            _INPUTS,
            plan=self._plan,
            durable=durable,
            report=self._report,
            refused=_refuse,
        )
        written = self._written
        try:
            if written:
                self._asked(lambda: self._sink.write([written], context))
        except _RowsRefusedError as refused:
            reasons = dict(refused.rows)
            found = [(self._messages[number], reason) for number, reason in sorted(reasons.items())]
            self._messages = tuple(each for number, each in enumerate(self._messages) if number not in reasons)
            self._written = None
            return found
        self._messages, self._written = (), b""
        return []

    def _made(self) -> bytes:
        for message in self._messages:
            self._execute(message)
        self._sink.finish_micro_batch()
        return self._sink.take_written()

    def _asked(self, ask: Callable[[], None]) -> None:
        try:
            ask()
        except CheckpointError as error:
            raise CheckpointError(
                f"{error}. Here the checkpoint is the instance's journal on the bus, and a micro-batch is a step: put "
                "back the bus's data that belong to it, or destroy the stream and create it again"
            ) from error


def size_of(message: Message) -> int:
    """Returns a message's size in bytes in the record of a step; at most `MOST_MESSAGE_BYTES` is allowed."""
    return len(pickle.dumps(message, pickle.HIGHEST_PROTOCOL))


def _refuse(rows: Sequence[tuple[int, str]]) -> None:
    raise _RowsRefusedError(rows)
