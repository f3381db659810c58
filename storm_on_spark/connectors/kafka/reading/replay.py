"""Reading failed records again, beside the reading of new ones."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, Final

from storm_on_spark.connectors.kafka.clients import Clients, without_offset
from storm_on_spark.connectors.kafka.offsets import Offsets, Partition

_FAR: Final = 1000
"""Offsets between two records from which on a new fetch costs less than reading all in between."""

_SILENT_MS: Final = 10_000
"""Without a record for so long, the client is replaced. After its broker was killed under load, one of kafka-python
3.0.12 read nothing more for minutes, though the broker was back: 169 failed records waited."""


class Replay:
    """Fetches failed records when their retry is due.

    It uses a second client, so the reader of new records stays where it is.

    Args:
        clients: of the task.
        offsets: of the task; they say what is due.
    """

    def __init__(self, clients: Clients, offsets: Offsets) -> None:
        self._clients, self._offsets = clients, offsets
        #: The offsets that are being read again, in order.
        self._due: dict[Partition, deque[int]] = {}
        #: When the client was last told what to read, or had something.
        self._heard_ms = 0

    def step(self, now_ms: int) -> Iterator[tuple[Partition, int, Any]]:
        """Continues reading; yields each offset that was read, with its record, or None if it is no longer in Kafka."""
        if not self._due:
            due = self._offsets.due(now_ms)
            if not due:
                return
            if self._clients.replayer is None:
                self._clients.want_replayer()
                return
            self._begin(due)
            self._heard_ms = now_ms
        for found in self._poll():
            self._heard_ms = now_ms
            yield found
        self._due = {partition: due for partition, due in self._due.items() if due}
        if self._due and now_ms - self._heard_ms > _SILENT_MS:
            self._due = {}  # all of it is due still
            self._clients.renew_replayer()

    def _begin(self, due: dict[Partition, list[int]]) -> None:
        from kafka.structs import TopicPartition

        replayer = self._clients.replayer
        self._due = {partition: deque(offsets) for partition, offsets in due.items()}
        replayer.assign([TopicPartition(*partition) for partition in due])
        for partition, offsets in due.items():
            where = TopicPartition(*partition)
            replayer.seek(where, offsets[0])
            replayer.resume(where)

    def _poll(self) -> Iterator[tuple[Partition, int, Any]]:
        from kafka.errors import KafkaError

        replayer = self._clients.replayer
        try:
            polled = replayer.poll(0)
        except KafkaError as error:
            # Of other errors the keeper and the reader speak; here it is tried again.
            for where in without_offset(error):
                due = self._due.get((where.topic, where.partition))
                if due:
                    yield (where.topic, where.partition), due.popleft(), None
                    self._seek(where, due)
            return
        for where, records in polled.items():
            partition = where.topic, where.partition
            due = self._due.get(partition, deque())
            for record in records:
                while due and due[0] < record.offset:
                    yield partition, due.popleft(), None
                if due and due[0] == record.offset:
                    yield partition, due.popleft(), record
            if not due or due[0] > records[-1].offset + _FAR:
                self._seek(where, due)

    def _seek(self, where: Any, due: deque[int]) -> None:
        if due:
            self._clients.replayer.seek(where, due[0])
        else:
            self._clients.replayer.pause(where)
