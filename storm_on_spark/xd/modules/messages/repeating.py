"""The base of sources without a server that redelivers: a failed message is emitted again, later each time."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from storm_on_spark.api.component import BaseRichSpout
from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.task.collector import SpoutOutputCollector
from storm_on_spark.api.task.context import TopologyContext
from storm_on_spark.xd.modules.messages.message import DEAD_LETTERS, FIELDS
from storm_on_spark.xd.modules.saved_attributes import Kept

_FIRST_DELAY: Final = 1.0
_LONGEST_DELAY: Final = 10.0


class RepeatingSource(BaseRichSpout):
    """Emits messages with ids, and keeps each until it is acked.

    A message that fails is emitted again after 1 s, then 2 s, 4 s, 8 s and 10 s. With `max_attempts`, a message that
    has failed that often goes to the stream of dead letters, and is kept until it is acked there.
    """

    services: ClassVar[tuple[str, ...]] = ()
    """Attributes created by `open` that are neither shipped nor saved: files, sockets, threads."""
    max_attempts: int | None = None

    def __init__(self) -> None:
        self._count = 0
        #: Number of a message -> payload, headers, how often it has failed.
        self._pending: dict[int, tuple[Any, dict[str, Any], int]] = {}
        #: When each message that failed is due, in seconds since 1970, and its number.
        self._again: list[tuple[float, int]] = []

    def __getstate__(self) -> dict[str, Any]:
        left_out = {"_collector", *self.services}
        return {name: value for name, value in vars(self).items() if name not in left_out}

    @property
    def state_holder(self) -> Kept:
        """The attributes that are saved."""
        return Kept(self, self.services)

    @abstractmethod
    def produce(self) -> None:
        """Sends the next message, if there is one. Must not block."""

    def ended(self) -> bool:
        """Returns whether there will be no new message."""
        return False

    def now(self) -> float:
        """Returns the time, in seconds since 1970. Not a monotonic clock: saved times must be valid after restarts."""
        return time.time()

    def send(self, payload: Any, headers: dict[str, Any]) -> int:
        """Emits a new message; returns its number."""
        self._count += 1
        self._pending[self._count] = (payload, headers, 0)
        self._emit(self._count)
        return self._count

    def give_up_after(self, attempts: int) -> None:
        """Sets how often a message may fail before it becomes a dead letter; called before the topology is made."""
        self.max_attempts = attempts

    def open(self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector) -> None:
        """Keeps the collector."""
        self._collector = collector

    def next_tuple(self) -> None:
        """Emits a message that failed and is due, or a new one."""
        # If the clock was set back, no message waits longer than the longest delay.
        now = self.now() if self._again else 0.0
        for place, (due, number) in enumerate(self._again):
            if now >= due or due - now > _LONGEST_DELAY:
                del self._again[place]
                self._emit(number)
                return
        self.produce()

    def ack(self, message_id: Any) -> None:
        """Forgets a message."""
        self._pending.pop(message_id, None)

    def fail(self, message_id: Any) -> None:
        """Schedules a message to be emitted again."""
        if message_id not in self._pending:
            return
        payload, headers, failures = self._pending[message_id]
        self._pending[message_id] = (payload, headers, failures + 1)
        delay = min(_LONGEST_DELAY, _FIRST_DELAY * 2 ** min(failures, 10))
        self._again.append((self.now() + delay, message_id))

    def exhausted(self) -> bool:
        """Returns whether all messages were emitted, and none waits to be emitted again."""
        return self.ended() and not self._again

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares payload and headers, and the stream of dead letters if there is one."""
        declarer.declare(Fields(*FIELDS))
        if self.max_attempts is not None:
            declarer.declare_stream(DEAD_LETTERS, Fields(*FIELDS))

    def _emit(self, number: int) -> None:
        payload, headers, failures = self._pending[number]
        if self.max_attempts is not None and failures >= self.max_attempts:
            self._collector.emit([payload, headers], message_id=number, stream=DEAD_LETTERS)
        else:
            self._collector.emit([payload, headers], message_id=number)
