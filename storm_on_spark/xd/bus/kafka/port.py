"""An instance's place on the bus in Kafka: each step is a transaction."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from storm_on_spark.xd.bus.inputs import Share
from storm_on_spark.xd.bus.journal import Message, Positions, Record
from storm_on_spark.xd.bus.kafka.backlog import Backlog
from storm_on_spark.xd.bus.kafka.clients import ANSWER_MS, COMMIT_MS, LARGEST_RECORD, close_consumer, close_producer
from storm_on_spark.xd.bus.kafka.members import Member
from storm_on_spark.xd.bus.kafka.reading import Accept, Assigned, Buffer, named
from storm_on_spark.xd.bus.kafka.seals import OVERHEAD
from storm_on_spark.xd.bus.kafka.shared import Shared
from storm_on_spark.xd.bus.kafka.states import Kept, begin, in_topics_that_are, last_kept
from storm_on_spark.xd.bus.kafka.topics import Partition
from storm_on_spark.xd.bus.port import (
    BusError,
    ChannelFeed,
    Feed,
    Input,
    Letter,
    Place,
    TapFeed,
    from_now_on,
    letter_body,
)

_UPKEEP_SECS: Final = 2.0
_FULL_UPKEEP_SECS: Final = 0.2
_LARGEST_CHUNK: Final = LARGEST_RECORD - (1 << 16)
_USUAL_CHUNK: Final = 1 << 20
_LONGEST_REMAINS: Final = 1_000


class KafkaPort:
    """A place on the bus; see `Port`.

    The partition of the instance's state has one writer. Kafka refuses transactions of an older owner of the name; this
    keeps other processes away.

    Args:
        bus: shared by the instances of a container.
        place: the place.
    """

    def __init__(self, bus: Shared, place: Place) -> None:
        self._bus, self._place = bus, place
        names = bus.names
        self._state: Partition = names.state(place.stream, place.label), place.sequence - 1
        self._backlog = Backlog(bus.topics, names, place, bus.most_bytes)
        self._producer: Any = None
        self._reader: Assigned | Member | None = None
        self._base: Positions = {}
        self._step = 0
        #: The offset of the last state; the topic has none before it.
        self._kept_at = self._trimmed = 0
        #: Positions to begin from after a crash.
        self._kept: Positions = {}
        self._published: dict[Partition, int] = {}
        self._output_is_there = False
        self._looked = 0.0

    @property
    def positions(self) -> Positions:
        """See `Port`."""
        return {} if self._reader is None else self._reader.buffer.positions

    def open(self) -> Record | None:
        """See `Port`."""
        with self._bus.clients.told(self._place.name):
            return self._open()

    def _open(self) -> Record | None:
        place, bus = self._place, self._bus
        bus.topics.ensure(self._state[0], max(place.sequence, place.count))
        self._ensure_output()
        self._producer = bus.clients.producer(bus.names.own(place.name))
        self._producer.init_transactions()
        consumer = bus.clients.consumer()
        try:
            partitions = bus.topics.known(fresh=True)[self._state[0]]
            ids = bus.topics.ids()
            found = last_kept(consumer, bus.seals, self._state[0], partitions)
            kept = in_topics_that_are({sequence: each for sequence, (_, each) in found.items()}, ids, place.name)
            own = kept.get(place.sequence)
            self._kept_at = found[place.sequence][0] if own is not None else 0
            if isinstance(place.input, ChannelFeed) and place.input.shared:
                self._join(place.input)
            elif place.input is not None:
                positions, self._base = begin(place.era, place.sequence, kept, partial(self._first, place.input))
                self._reader = self._assigned(consumer, place.input, positions, ids)
                self._kept = dict(positions)
                if own is None or own.record.generation != place.era:
                    record = Record() if own is None else own.record
                    self._write(replace(record, messages=(), positions=positions, generation=place.era), positions, ())
        finally:
            if not isinstance(self._reader, Assigned):
                close_consumer(consumer)
        self._looked = bus.clock()
        return None if own is None else own.record

    def next(self, most: int) -> Iterator[Input]:
        """See `Port`."""
        assert self._reader is not None
        with self._bus.clients.told(self._place.name):
            found = list(self._reader.next(most))
        return iter(found)

    def pass_by(self, positions: Positions) -> None:
        """See `Port`."""
        assert self._reader is not None
        self._reader.buffer.positions = dict(positions)

    def commit(self, record: Record, read: Positions, letters: Sequence[Letter] = ()) -> None:
        """See `Port`."""
        with self._bus.clients.told(self._place.name):
            self._write(record, read, letters)

    def full(self) -> bool:
        """See `Port`."""
        return self._backlog.full()

    def upkeep(self) -> None:
        """Records how far the instance has read, and removes the records that all readers have read."""
        now = self._bus.clock()
        if now - self._looked < (_FULL_UPKEEP_SECS if self.full() else _UPKEEP_SECS):
            return
        self._looked = now
        with self._bus.clients.told(self._place.name):
            self._publish()
            self._backlog.look()
            if self._kept_at > self._trimmed:
                self._bus.topics.trim({self._state: self._kept_at})
                self._trimmed = self._kept_at
            self._bus.topics.sweep()

    def close(self) -> None:
        """Ends its clients."""
        if self._producer is not None:
            close_producer(self._producer)
        if self._reader is not None:
            self._reader.close()

    def _ensure_output(self) -> None:
        place, bus = self._place, self._bus
        if place.output is not None:
            bus.ensure_channel(place.output)
        elif place.readers:
            bus.topics.ensure(bus.names.output(place.stream, place.label), max(place.sequence, place.count))
        self._output_is_there = place.output is not None or bool(place.readers)

    def _join(self, feed: ChannelFeed) -> None:
        bus = self._bus
        bus.ensure_channel(feed.channel)
        topic = bus.names.channel(feed.channel)
        consumer = bus.clients.member(topic, bus.names.own(self._place.name))
        buffer = Buffer(bus.seals, Share(1, 1), lambda sender: True, {})
        self._reader = Member(consumer, topic, buffer, bus.topics.ids)

    def _assigned(self, consumer: Any, feed: Feed, positions: Positions, ids: Mapping[str, str]) -> Assigned:
        place, bus = self._place, self._bus
        if isinstance(feed, ChannelFeed):
            bus.ensure_channel(feed.channel)
        buffer = Buffer(bus.seals, Share(place.sequence, place.count), _accepts(feed), positions)
        return Assigned(consumer, lambda: bus.partitions(feed), buffer, place.name, ids, bus.topics.ids, bus.clock)

    def _first(self, feed: Feed) -> Positions:
        """Returns where a module begins on its first run."""
        if not from_now_on(feed):
            return {}
        if isinstance(feed, ChannelFeed):
            self._bus.ensure_channel(feed.channel)
        self._bus.topics.known(fresh=True)
        bounds = self._bus.topics.bounds(self._bus.partitions(feed))
        return {named(each): (behind, 0) for each, (_, behind) in bounds.items()}

    def _write(self, record: Record, read: Positions, letters: Sequence[Letter]) -> None:
        bus, place, producer = self._bus, self._place, self._producer
        if record.messages and not self._output_is_there:
            bus.topics.ensure(bus.names.output(place.stream, place.label), place.sequence)
            self._output_is_there = True
        topic, partition = self._target()
        chunks, lost = self._chunks(topic, record.messages)
        letters = [*letters, *lost]
        kept = bus.seals.sealed(self._state[0], Kept(replace(record, messages=()), self._base, self._ids(record)))
        if len(kept) > _LARGEST_CHUNK:
            raise BusError(f"the state of {place.name} has {len(kept)} bytes; a record of Kafka has {_LARGEST_CHUNK}")
        if letters:
            bus.topics.ensure(bus.names.dead_letters, 1, bus.most_bytes)
        name = place.name.encode()
        producer.begin_transaction()
        for chunk in chunks:
            producer.send(topic, chunk, name, partition=partition)
        for letter in letters:
            body = json.dumps(letter_body(letter), ensure_ascii=False).encode("utf-8", "backslashreplace")
            producer.send(bus.names.dead_letters, body, name, partition=0)
        state = producer.send(self._state[0], kept, name, partition=self._state[1])
        # The producer's own methods wait for ever if no broker answers.
        transactions = producer._transaction_manager  # noqa: SLF001
        if isinstance(self._reader, Member):
            self._await(self._reader.send(transactions, record.positions))
        self._await(transactions.begin_commit())
        self._kept_at = state.get(ANSWER_MS / 1_000).offset
        self._step += 1
        if chunks:
            self._backlog.add(sum(map(len, chunks)), len(chunks) + 1)
        if self._reader is not None:
            self._reader.buffer.positions = dict(read)
            self._kept = dict(record.positions)

    def _await(self, result: Any) -> None:
        if result is None:
            return
        self._producer._sender.wakeup()  # noqa: SLF001
        if not result.wait(COMMIT_MS):
            raise BusError(f"Kafka at {', '.join(self._bus.clients.servers)} has not answered for {COMMIT_MS} ms")

    def _ids(self, record: Record) -> dict[str, str]:
        """Returns the ids of the topics of positions."""
        if not isinstance(self._reader, Assigned):
            return {}
        topics = {name.rpartition("/")[0] for name in (*record.positions, *self._base)}
        return {topic: each for topic, each in self._reader.ids.items() if topic in topics}

    def _target(self) -> Partition:
        """Returns where messages go."""
        place, names = self._place, self._bus.names
        if place.output is None:
            return names.output(place.stream, place.label), place.sequence - 1
        topic = names.channel(place.output)
        number = zlib.crc32(place.name.encode())
        # The readers of a queue divide its partitions among them; elsewhere the order of an instance's messages is
        # kept.
        turn = number + (self._step if place.output.kind == "queue" else 0)
        return topic, turn % self._bus.topics.known().get(topic, 1)

    def _chunks(self, topic: str, messages: tuple[Message, ...]) -> tuple[list[bytes], list[Letter]]:
        """Returns messages as records, and the messages that are too large for a record."""
        if not messages:
            return [], []
        whole = self._bus.seals.sealed(topic, messages)
        if len(whole) <= (_USUAL_CHUNK if len(messages) > 1 else _LARGEST_CHUNK):
            return [whole], []
        if len(messages) == 1:
            reason = f"the message has {len(whole) - OVERHEAD} bytes; a record of Kafka has at most {_LARGEST_CHUNK}"
            return [], [Letter(Message(repr(messages[0].payload)[:_LONGEST_REMAINS], {}), reason)]
        half = len(messages) // 2
        (first, lost), (second, more) = self._chunks(topic, messages[:half]), self._chunks(topic, messages[half:])
        return first + second, lost + more

    def _publish(self) -> None:
        if not isinstance(self._reader, Assigned):
            return
        read = {each: self._kept.get(named(each), (at, 0))[0] for each, at in self._reader.read().items()}
        if read != self._published:
            self._bus.topics.publish(self._bus.names.own(self._place.name), read, self._place.generation)
            self._published = read


def _accepts(feed: Feed) -> Accept:
    """Returns a test of whether a feed has an instance's messages."""
    if not isinstance(feed, TapFeed) or feed.channel is None:
        return lambda sender: True

    def accept(sender: str) -> bool:
        stream, _, rest = sender.partition(".")
        return stream.rsplit("-", 2)[0] == feed.stream and rest.rpartition(".")[0] == feed.label

    return accept
