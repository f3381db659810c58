"""A reader of a queue: Kafka distributes the partitions among all readers.

Positions are the group's offsets, written by the transactions of steps. An instance that has lost a partition can't
commit what it read from it, because the group's generation is part of the transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple

from storm_on_spark.xd.bus.journal import Positions
from storm_on_spark.xd.bus.kafka.clients import ANSWER_MS, close_consumer
from storm_on_spark.xd.bus.kafka.reading import Buffer, named, note_ids
from storm_on_spark.xd.bus.port import BusError, Input

_WAIT_MS: Final = 5
_JOIN_MS: Final = 3_000
"""Longer than two seconds: the other members notice at their next heartbeat that they have to join again."""


class _Assignment(NamedTuple):
    metadata: Any
    """The group's generation in which the partitions were assigned."""
    partitions: frozenset[Any]


class _Given:
    """The latest assignment; None while Kafka rebalances."""

    assignment: _Assignment | None = None


def _listener(consumer: Any, given: _Given) -> Any:
    from kafka import ConsumerRebalanceListener

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
        def on_partitions_revoked(self, revoked: Any) -> None:
            given.assignment = None

        def on_partitions_assigned(self, assigned: Any) -> None:
            given.assignment = _Assignment(consumer.group_metadata(), frozenset(assigned))

    return Listener()


class Member:
    """Reads the partitions of a topic that Kafka assigns to it.

    Args:
        consumer: of the group.
        topic: of the queue.
        buffer: of the records that were read.
        ids: returns topic -> id of the existing topics.
    """

    def __init__(self, consumer: Any, topic: str, buffer: Buffer, ids: Callable[[], Mapping[str, str]]) -> None:
        self._consumer, self._topic = consumer, topic
        self._ids_now = ids
        self._ids = dict(ids())
        self.buffer = buffer
        self._given = _Given()
        #: The part of `_given` that it has taken over.
        self._assignment: _Assignment | None = None
        #: The positions that the group has of this instance, by the partition's name.
        self._committed: Positions = {}
        consumer.subscribe([topic], listener=_listener(consumer, self._given))

    def next(self, most: int) -> Iterator[Input]:
        """Yields messages after the positions; none while Kafka rebalances."""
        note_ids(self._ids, [self._topic], self._ids_now())
        there = self.buffer.count()
        if there < most:
            found = self._consumer.poll(0 if there else _WAIT_MS)
            if self._given.assignment is None:
                # kafka-python drops an assignment that arrives between two polls, and makes the group rebalance again.
                found = self._consumer.poll(_JOIN_MS)
            assignment = self._given.assignment
            if assignment is None:
                return
            if assignment is self._assignment:
                self.buffer.add(found)
            else:
                # The partitions that were found may begin elsewhere.
                self._take_over(assignment)
        yield from self.buffer.next(most)

    def send(self, transactions: Any, positions: Positions) -> Any:
        """Adds positions to a transaction; returns the result to wait for, or None if no position has changed.

        Args:
            transactions: the manager of the producer's.
            positions: where to begin after a crash.
        """
        from kafka.structs import OffsetAndMetadata

        if self._assignment is None:
            return None
        own = {named((each.topic, each.partition)): each for each in self._assignment.partitions}
        moved = {name: positions[name] for name in own if name in positions}
        moved = {name: at for name, at in moved.items() if at != self._committed.get(name)}
        if not moved:
            return None
        self._committed |= moved
        offsets = {own[name]: OffsetAndMetadata(offset, str(index), -1) for name, (offset, index) in moved.items()}
        return transactions.send_offsets_to_transaction(offsets, self._assignment.metadata)

    def close(self) -> None:
        """Ends the consumer; the group reserves its partitions for a few seconds."""
        close_consumer(self._consumer)

    def _take_over(self, assignment: _Assignment) -> None:
        """Takes over a new assignment; partitions that it already had continue."""
        names = {named((each.topic, each.partition)): each for each in assignment.partitions}
        positions = self.buffer.positions
        found: Positions = {}
        for name, each in names.items():
            committed = self._consumer.committed(each, metadata=True, timeout_ms=ANSWER_MS)
            if committed is not None:
                found[name] = committed.offset, int(committed.metadata or 0)
        for name in {*self._committed, *positions, *self.buffer.names()}:
            kept = name in names and self._committed.get(name) == found.get(name)
            if not kept:
                if name in positions and positions[name] != self._committed.get(name):
                    # A bolt holds messages of this partition, which now belong to another reader.
                    raise BusError(f"{name} was given to another reader: beginning again without it")
                self.buffer.forget(name)
                positions.pop(name, None)
        for name in names:
            if name not in positions and name in found:
                positions[name] = found[name]
        self._committed = found
        self._assignment = assignment
        self._seek(assignment.partitions)

    def _seek(self, partitions: Collection[Any]) -> None:
        for each in partitions:
            at = self.buffer.behind(named((each.topic, each.partition)))
            if at is not None:
                self._consumer.seek(each, at)
            else:
                self._consumer.seek_to_beginning(each)
