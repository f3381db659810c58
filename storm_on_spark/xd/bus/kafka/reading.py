"""What an instance reads: partitions of topics, each from its own position."""

from __future__ import annotations

import logging
import time
import zlib
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple

from storm_on_spark.connectors.kafka.clients import parted_at, without_offset
from storm_on_spark.xd.bus.inputs import Share
from storm_on_spark.xd.bus.journal import Message, Positions
from storm_on_spark.xd.bus.kafka.clients import ANSWER_MS, close_consumer
from storm_on_spark.xd.bus.kafka.seals import Seals
from storm_on_spark.xd.bus.kafka.topics import Partition
from storm_on_spark.xd.bus.port import BusError, Input

logger = logging.getLogger(__name__)

_LOOK_SECS: Final = 1.0
_WAIT_MS: Final = 5
_NOTHING: Final = Message(None, {})

Accept = Callable[[str], bool]
"""Whether the messages of an instance, by its name, are read."""


class Chunk(NamedTuple):
    """A record of Kafka."""

    offset: int
    messages: tuple[Message, ...]


class Buffer:
    """Records that were read and that the positions have not passed yet.

    Args:
        seals: of the cluster.
        share: which messages are for the instance.
        accept: whether the messages of an instance are read.
        positions: where to begin.
    """

    def __init__(self, seals: Seals, share: Share, accept: Accept, positions: Positions) -> None:
        self._seals, self._share, self._accept = seals, share, accept
        self.positions = dict(positions)
        self._chunks: dict[str, deque[Chunk]] = {}
        self._turn = 0

    def next(self, most: int) -> Iterator[Input]:
        """Yields messages after the positions; the caller advances the positions."""
        left, names = most, list(self._chunks)
        # Start with another partition each time: one that always has messages would use up `most`.
        self._turn = (self._turn + 1) % max(1, len(names))
        for name in names[self._turn :] + names[: self._turn]:
            offset, index = self.positions.get(name, (0, 0))
            for chunk in self._chunks[name]:
                if left <= 0:
                    return
                if chunk.offset >= offset:
                    for each in self._inputs(name, chunk, index if chunk.offset == offset else 0)[:left]:
                        yield each
                        left -= 1

    def count(self) -> int:
        """Returns the number of messages that the positions have not passed."""
        for name, chunks in self._chunks.items():
            offset = self.positions.get(name, (0, 0))[0]
            while chunks and chunks[0].offset < offset:
                chunks.popleft()
        return sum(len(chunk.messages) for chunks in self._chunks.values() for chunk in chunks)

    def add(self, found: Mapping[Any, list[Any]]) -> None:
        """Adds records in the form in which a consumer returns them.

        Raises:
            BusError: one is not of this cluster.
        """
        for where, records in found.items():
            name = named((where.topic, where.partition))
            behind = self.behind(name)
            if records and behind is not None and records[0].offset < behind:
                self._cut_off(name, records[0].offset, behind)
            chunks = self._chunks.setdefault(name, deque())
            for record in records:
                taken = self._accept((record.key or b"").decode("utf-8", "replace"))
                messages = self._seals.opened(where.topic, record.value) if taken else ()
                chunks.append(Chunk(record.offset, messages))

    def _cut_off(self, name: str, offset: int, behind: int) -> None:
        """Returns to where a truncated log continues; the records from there on are those of another leader."""
        logger.warning("%s had records to %d and was truncated: continuing at record %d", name, behind - 1, offset)
        kept = [chunk for chunk in self._chunks.get(name, ()) if chunk.offset < offset]
        self._chunks[name] = deque(kept)
        if name in self.positions:
            self.positions[name] = min(self.positions[name], (offset, 0))

    def behind(self, name: str) -> int | None:
        """Returns the offset of the record that is to be read next; None if nothing is known."""
        if chunks := self._chunks.get(name):
            return chunks[-1].offset + 1
        return self.positions[name][0] if name in self.positions else None

    def names(self) -> set[str]:
        """Returns the partitions that records were read from."""
        return set(self._chunks)

    def forget(self, name: str) -> None:
        """Forgets the records of a partition."""
        self._chunks.pop(name, None)

    def _inputs(self, name: str, chunk: Chunk, index: int) -> list[Input]:
        end = (chunk.offset + 1, 0)
        if index >= len(chunk.messages):
            # One input stands for the whole record, so that the position advances.
            return [Input(name, chunk.offset, 0, _NOTHING, end, False)]
        # Transaction markers have offsets too, so the offsets of records alone may all be even.
        number = zlib.crc32(chunk.offset.to_bytes(8, "big"))
        last = len(chunk.messages) - 1
        return [
            Input(
                name,
                chunk.offset,
                place,
                chunk.messages[place],
                end if place == last else (chunk.offset, place + 1),
                self._share.takes(number, place, chunk.messages[place].key),
            )
            for place in range(index, last + 1)
        ]


class Assigned:
    """Reads all partitions of topics; partitions may be added later.

    Args:
        consumer: of no group.
        find: returns the partitions.
        buffer: of what was read.
        name: of the instance.
        ids: topic -> id, of the topics of the positions.
        ids_now: returns topic -> id of the existing topics.
        clock: seconds.
    """

    def __init__(
        self,
        consumer: Any,
        find: Callable[[], Collection[Partition]],
        buffer: Buffer,
        name: str,
        ids: Mapping[str, str],
        ids_now: Callable[[], Mapping[str, str]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        #: Topic -> id, of all topics seen so far.
        self.ids = dict(ids)
        self._ids_now = ids_now
        self._consumer, self._find, self._name, self._clock = consumer, find, name, clock
        self.buffer = buffer
        self._looked: float | None = None
        self._assigned: set[Partition] = set()

    def next(self, most: int) -> Iterator[Input]:
        """Yields messages after the positions."""
        if self._looked is None or self._clock() - self._looked >= _LOOK_SECS:
            self._looked = self._clock()
            self._look()
        there = self.buffer.count()
        if there < most and self._assigned:
            self._poll(0 if there else _WAIT_MS)
        yield from self.buffer.next(most)

    def read(self) -> dict[Partition, int]:
        """Returns partition -> offset of the next record, for the partitions that were begun."""
        positions = self.buffer.positions
        return {each: positions[named(each)][0] for each in self._assigned if named(each) in positions}

    def close(self) -> None:
        """Ends the consumer."""
        close_consumer(self._consumer)

    def _look(self) -> None:
        found = set(self._find())
        note_ids(self.ids, {topic for topic, _ in found}, self._ids_now())
        if found == self._assigned:
            return
        self._consumer.assign([_kafka(each) for each in found])
        self._seek(found - self._assigned)
        self._assigned = found

    def _poll(self, wait_ms: int) -> None:
        from kafka.errors import KafkaError

        try:
            self.buffer.add(self._consumer.poll(wait_ms))
        except KafkaError as error:
            if not without_offset(error):
                raise
            self._seek(self._assigned, parted_at(error))

    def _seek(self, partitions: Collection[Partition], parted: Mapping[Any, int] | None = None) -> None:
        """Moves the consumer to the end of the buffer.

        Args:
            partitions: of the consumer.
            parted: partition of Kafka -> offset from which its log differs from what was read.
        """
        wanted = [_kafka(each) for each in partitions]
        if not wanted:
            return
        first = self._consumer.beginning_offsets(wanted, ANSWER_MS)
        behind = self._consumer.end_offsets(wanted, ANSWER_MS)
        for each in wanted:
            at = self.buffer.behind(named((each.topic, each.partition)))
            # A position after the last record refers to other records: the topic was created again, or the new leader
            # has fewer.
            offset = at if at is not None and first[each] <= at <= behind[each] else first[each]
            offset = max(min(offset, (parted or {}).get(each, offset)), first[each])
            if at is not None and offset != at:
                logger.warning(
                    "%s was at record %d of %s: Kafka has %d to %d; continuing at %d",
                    self._name, at, named((each.topic, each.partition)), first[each], behind[each] - 1, offset,
                )  # fmt: skip
            self._consumer.seek(each, offset)


def note_ids(seen: dict[str, str], topics: Collection[str], now: Mapping[str, str]) -> None:
    """Records the ids of topics that are read.

    Args:
        seen: topic -> id that it had.
        topics: that are read.
        now: topic -> id that it has.

    Raises:
        BusError: a topic was created again. Its positions refer to the old topic, so the instance must begin again.
    """
    for topic in sorted(topics):
        if topic in now and seen.setdefault(topic, now[topic]) != now[topic]:
            raise BusError(f"topic {topic} was deleted and created again: beginning again with its first record")


def named(partition: Partition) -> str:
    """Returns a partition's name, as positions have it.

    >>> named(("xd.t.queue.orders", 2))
    'xd.t.queue.orders/2'
    """
    return f"{partition[0]}/{partition[1]}"


def _kafka(partition: Partition) -> Any:
    from kafka.structs import TopicPartition

    return TopicPartition(*partition)
