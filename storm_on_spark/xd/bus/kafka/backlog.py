"""The progress of an instance's readers: whether the instance must wait, and which records all have read."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from storm_on_spark.xd.bus.kafka.names import Names
from storm_on_spark.xd.bus.kafka.topics import Partition, Read, Topics
from storm_on_spark.xd.bus.port import Place

_FIRST_GUESS: Final = 1_000.0
_LEAST_TRIMMED: Final = 1_000
"""Fewest offsets to remove at once, since each removal is a request."""


class Backlog:
    """The messages that an instance has emitted and its readers have not read.

    Args:
        topics: of the bus.
        names: of the cluster.
        place: of the instance.
        most_bytes: limit of unread messages; as many bytes of read messages are kept for taps.
    """

    def __init__(self, topics: Topics, names: Names, place: Place, most_bytes: int) -> None:
        self._topics, self._names, self._place, self._most_bytes = topics, names, place, most_bytes
        output = place.output
        self.shared = output is not None and output.kind == "queue"
        self.holds_back = bool(place.readers) or self.shared
        #: Bytes and offsets that were written, and bytes written since the last check.
        self._written, self._offsets, self._since = 0, 0, 0
        self._unread = 0.0
        self._trimmed: dict[Partition, int] = {}

    def add(self, size: int, offsets: int) -> None:
        """Records what a step has written."""
        self._written += size
        self._offsets += offsets
        self._since += size

    def full(self) -> bool:
        """Whether the instance must wait."""
        return self.holds_back and self._unread + self._since > self._most_bytes

    def look(self) -> None:
        """Asks Kafka how far readers are, and removes the records that all of them passed long ago."""
        if not self.holds_back:
            return
        since = self._since
        if self.shared:
            assert self._place.output is not None
            topic = self._names.channel(self._place.output)
            partitions = [(topic, number) for number in range(self._topics.known().get(topic, 0))]
            group = topic
            read = self._topics.read_by([group], partitions).get(group, {})
            needed = {each: at.offset for each, at in read.items()}
        else:
            partitions = [(self._names.output(self._place.stream, self._place.label), self._place.sequence - 1)]
            needed = self._needed(partitions[0])
        bounds = self._topics.bounds(partitions)
        size = self._written / self._offsets if self._offsets else _FIRST_GUESS
        unread = sum(behind - max(first, needed.get(each, 0)) for each, (first, behind) in bounds.items())
        self._unread = unread * size
        self._since -= since
        kept = int(self._most_bytes / size / max(1, len(partitions)))
        old = {
            each: needed[each] - kept
            for each, (first, _) in bounds.items()
            if each in needed and needed[each] - kept >= max(first, self._trimmed.get(each, 0)) + _LEAST_TRIMMED
        }
        if old:
            self._topics.trim(old)
            self._trimmed |= old

    def _needed(self, partition: Partition) -> dict[Partition, int]:
        """Returns the first offset that the next module needs; empty if one of its instances has not begun."""
        required = set(self._place.readers)
        module = self._place.readers[0].rsplit(".", 1)[0]
        stream, _, label = module.partition(".")
        # If the reader runs in every container, only its first instance is known in advance. Each that ever ran has a
        # state.
        count = self._topics.known().get(self._names.state(stream, label), 0)
        every = {f"{module}.{number + 1}" for number in range(count)} | required
        groups = {self._names.own(name): name for name in every}
        found = self._topics.read_by(groups, [partition])
        read = {groups[group]: at[partition] for group, at in found.items() if partition in at}
        return lowest(partition, read, required)


def lowest(partition: Partition, read: Mapping[str, Read], required: Collection[str]) -> dict[Partition, int]:
    """Returns the position of the slowest reader; empty if a required one has not begun.

    Args:
        partition: that is read.
        read: reader -> its position.
        required: readers of this deployment; others count if they belong to the newest one.

    Example:
        >>> read = {"s.log.1": Read(9, 2), "s.log.2": Read(7, 2), "s.log.3": Read(3, 1)}
        >>> lowest(("s", 0), read, ["s.log.1"]), lowest(("s", 0), read, ["s.log.4"])
        ({('s', 0): 7}, {})
    """
    if not set(required) <= read.keys():
        return {}
    newest = max((each.generation for each in read.values()), default=0)
    return {partition: min(at.offset for name, at in read.items() if at.generation == newest or name in required)}
