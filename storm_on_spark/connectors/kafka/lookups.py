"""Look-ups of partitions: which exist, where to begin, and the state of those being read.

A topic that was deleted and created again has its old name and a new id (Kafka's KIP-516). The id is in the spout's
state beside the offsets, and in what is committed to the group.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from storm_on_spark.connectors.kafka.assignment import assigned
from storm_on_spark.connectors.kafka.config import FirstPollOffsetStrategy, KafkaSpoutConfig
from storm_on_spark.connectors.kafka.errors import KafkaSpoutError
from storm_on_spark.connectors.kafka.offsets import Partition

_log = logging.getLogger(__name__)

_ANSWER_MS: Final = 10_000
_KEY: Final = "topicId"


@dataclass(frozen=True)
class LookUp:
    """An order to look for partitions."""

    known: frozenset[Partition]
    first: bool
    """Whether it is the first one of the topology, so that strategies that begin at the end apply."""
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    """The id of each topic whose partitions are known."""
    gone: Mapping[Partition, int] = field(default_factory=dict)
    """Partitions whose next offset is not in Kafka (any more), and that offset."""


@dataclass(frozen=True)
class ExistingTopics:
    """The spout's topics that exist, for all of its tasks."""

    partitions: frozenset[Partition]
    topic_ids: Mapping[str, str]
    """Brokers before 2.8 have none."""

    def has(self, partition: Partition, topic_id: str | None) -> bool:
        """Returns whether a partition exists, and is of the topic of that id, if both are known.

        Example:
            >>> existing = ExistingTopics(frozenset({("lines", 0)}), {"lines": "1-2"})
            >>> existing.has(("lines", 0), "1-2"), existing.has(("lines", 0), None)
            (True, True)
            >>> existing.has(("lines", 0), "3-4"), existing.has(("lines", 1), "1-2")
            (False, False)
        """
        known = self.topic_ids.get(partition[0])
        return partition in self.partitions and (known is None or topic_id is None or known == topic_id)


class NewPosition(NamedTuple):
    """The position from which a partition continues."""

    offset: int
    """As `auto.offset.reset` says."""
    why: str


@dataclass(frozen=True)
class Found:
    """The results of a look-up."""

    existing: ExistingTopics
    starts: Mapping[Partition, int]
    """Partitions of this task that were not known, and where to begin."""
    elsewhere: Mapping[Partition, NewPosition]
    """Known partitions that can't continue where they are."""
    removed: frozenset[Partition]
    """Known partitions that a topic does not have since it was made again."""


class LookUps:
    """Carries look-ups out.

    Args:
        config: of the spout.
        task_index: of the task among those of the spout.
        tasks: how many there are.
        name: how logs call the task.
    """

    def __init__(self, config: KafkaSpoutConfig, task_index: int, tasks: int, name: str) -> None:
        self._config, self._share, self._name = config, (task_index, tasks), name
        #: Topics that were read and are gone.
        self._missed: set[str] = set()

    def find(self, client: Any, order: LookUp) -> Found:
        """Asks Kafka.

        Args:
            client: a consumer of the spout's group.
            order: what to look for.

        Raises:
            KafkaSpoutError: a partition can't continue where it is, and no other position is configured.
        """
        from kafka.structs import TopicPartition

        there = self.existing_topics(client)
        self._tell_missing({topic for topic, _ in there.partitions}, order)
        present, ids = there.partitions, there.topic_ids
        again = {topic for topic, known in ids.items() if order.topic_ids.get(topic, known) != known}
        new = [TopicPartition(*each) for each in assigned(present - order.known, *self._share)]
        elsewhere = self._elsewhere(client, order, present, again)
        starts = self._starts(client, [each for each in new if each.topic not in again], order.first, ids)
        starts |= self._resets(client, [each for each in new if each.topic in again])
        removed = {each for each in order.known - present if each[0] in again}
        return Found(there, starts, elsewhere, frozenset(removed))

    def existing_topics(self, client: Any) -> ExistingTopics:
        """Asks Kafka which of the spout's topics there are."""
        names, config = client.topics(), self._config
        topics = [topic for topic in names if topic in config.topics or config.matches(topic)]
        partitions = {(topic, number) for topic in topics for number in client.partitions_for_topic(topic)}
        ids = {topic: known for topic in topics if (known := topic_id(client, topic)) is not None}
        return ExistingTopics(frozenset(partitions), ids)

    def _tell_missing(self, topics: Collection[str], order: LookUp) -> None:
        if order.first and (missing := sorted(set(self._config.topics) - set(topics))):
            text = ", ".join(missing)
            _log.warning("%s: not in Kafka yet: %s; read from the first record on once there", self._name, text)
        missed = {topic for topic, _ in order.known} - set(topics)
        for topic in sorted(missed - self._missed):
            _log.warning("%s: topic %s is no longer in Kafka; waiting until it is there again", self._name, topic)
        self._missed = missed

    def _elsewhere(
        self, client: Any, order: LookUp, present: Collection[Partition], again: Collection[str]
    ) -> dict[Partition, NewPosition]:
        from kafka.structs import TopicPartition

        reset = self._config.auto_offset_reset
        reasons = {}
        for topic, number in sorted(order.known.intersection(present)):
            if topic in again:
                why = f"topic {topic} was deleted and created again: the records of partition {number} are others now"
            elif (offset := order.gone.get((topic, number))) is not None:
                why = f"topic {topic} partition {number}: offset {offset} is not in Kafka (any more)"
            else:
                continue
            if reset == "none":
                raise KafkaSpoutError(
                    f'{self._name}: {why}; set auto.offset.reset to "earliest" or "latest" to continue from there'
                )
            reasons[topic, number] = why
        found = self._resets(client, [TopicPartition(*each) for each in reasons])
        return {
            each: NewPosition(offset, f"{reasons[each]}; continuing at the {reset}") for each, offset in found.items()
        }

    def _resets(self, client: Any, partitions: list[Any]) -> dict[Partition, int]:
        """Returns the positions from which partitions continue according to `auto.offset.reset`."""
        if not partitions:
            return {}
        at_end = self._config.auto_offset_reset == "latest"
        return _ours((client.end_offsets if at_end else client.beginning_offsets)(partitions, _ANSWER_MS))

    def _starts(
        self, client: Any, partitions: list[Any], first: bool, topic_ids: Mapping[str, str]
    ) -> dict[Partition, int]:
        """Returns the positions from which unread partitions begin."""
        if not partitions:
            return {}
        strategy = self._config.first_poll_offset_strategy
        at_end = first and strategy in (FirstPollOffsetStrategy.LATEST, FirstPollOffsetStrategy.UNCOMMITTED_LATEST)
        starts: dict[Any, int] = (client.end_offsets if at_end else client.beginning_offsets)(partitions, _ANSWER_MS)
        if strategy is FirstPollOffsetStrategy.TIMESTAMP:
            times = dict.fromkeys(partitions, self._config.start_timestamp_ms)
            ends = client.end_offsets(partitions, _ANSWER_MS)
            for partition, answer in client.offsets_for_times(times, _ANSWER_MS).items():
                starts[partition] = ends[partition] if answer is None else answer.offset
        elif strategy.name.startswith("UNCOMMITTED"):
            for partition in partitions:
                committed = committed_offset(client, partition, topic_ids.get(partition.topic), self._name)
                if committed is not None:
                    starts[partition] = committed
        return _ours(starts)


def committed_offset(client: Any, partition: Any, id_now: str | None, name: str) -> int | None:
    """Returns what a group has committed of a partition; None for nothing, also of a topic that was made again since.

    Args:
        client: a consumer of the group.
        partition: Kafka's.
        id_now: of the topic; None where the broker has none.
        name: how the log calls the group's reader.
    """
    committed = client.committed(partition, metadata=True, timeout_ms=_ANSWER_MS)
    if committed is None:
        return None
    was = id_in(committed.metadata)
    if was is not None and id_now is not None and was != id_now:
        _log.warning(
            "%s: topic %s was deleted and created again since offset %d of its partition %d was committed: "
            "beginning as if none was",
            name, partition.topic, committed.offset, partition.partition,
        )  # fmt: skip
        return None
    return int(committed.offset)


def topic_id(client: Any, topic: str) -> str | None:
    """Returns the id of a topic as a client of kafka-python has heard it last; None from brokers before 2.8."""
    found = client._cluster.topic_id(topic)  # noqa: SLF001 # no public way to ask a consumer
    return str(found) if found is not None and found.int else None


def note_of(topic_id: str | None) -> str:
    """Returns what is committed beside an offset, so that a later reader knows of which topic it is.

    Example:
        >>> note_of("1-2"), note_of(None)
        ('{"topicId": "1-2"}', '')
    """
    return "" if topic_id is None else json.dumps({_KEY: topic_id})


def id_in(note: str | None) -> str | None:
    """Returns the topic's id in what was committed beside an offset; None where others have committed, such as Storm.

    Example:
        >>> id_in(note_of("1-2")), id_in('{"topologyId": "words"}'), id_in("by hand")
        ('1-2', None, None)
    """
    try:
        found = json.loads(note or "")
    except (ValueError, RecursionError):
        return None
    known = found.get(_KEY) if isinstance(found, dict) else None
    return known if isinstance(known, str) else None


def _ours(offsets: Mapping[Any, int]) -> dict[Partition, int]:
    return {(where.topic, where.partition): offset for where, offset in offsets.items()}
