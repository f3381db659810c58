"""How far a Kafka spout is behind: the committed offsets of its group, compared with the ends of the partitions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from storm_on_spark.connectors.kafka.clients import consumer, consumer_settings, described, kafka_python
from storm_on_spark.connectors.kafka.config import KafkaSpoutConfig
from storm_on_spark.connectors.kafka.errors import KafkaSpoutError
from storm_on_spark.connectors.kafka.lookups import committed_offset, topic_id
from storm_on_spark.connectors.kafka.offsets import Partition

_ANSWER_MS: Final = 10_000


@dataclass(frozen=True)
class Lag:
    """The lag of one partition."""

    committed: int | None
    """The offset that the group continues with; None if it has committed nothing."""
    end: int
    """The offset of the next record that is written."""
    behind: int
    """The number of offsets between them; counted from the first existing record if nothing was committed."""


@dataclass(frozen=True)
class Reading:
    """The topics that a spout reads, and its consumer group."""

    servers: tuple[str, ...]
    topics: tuple[str, ...]
    pattern: re.Pattern[str] | None
    group: str
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Settings of a consumer; they may hold secrets."""

    @classmethod
    def of(cls, config: KafkaSpoutConfig) -> Reading:
        """Returns that of a spout's configuration."""
        return cls(
            config.bootstrap_servers, config.topics, config.pattern, config.group_id, dict(consumer_settings(config))
        )


def shown(config: KafkaSpoutConfig) -> dict[str, Any]:
    """Returns what others may know of a spout, without secrets: its component configuration, in Storm's words."""
    by_name = config.pattern is None
    return {
        "config.bootstrap.servers": ",".join(config.bootstrap_servers),
        "config.topics": ",".join(config.topics) if config.pattern is None else config.pattern.pattern,
        "config.groupid": config.group_id,
        "config.security.protocol": str(config.properties.get("security_protocol", "PLAINTEXT")),
        # Ours: in Storm one can't tell a pattern from a name.
        **({} if by_name else {"config.topics.pattern": True}),
    }


def lags(reading: Reading) -> dict[Partition, Lag]:
    """Asks Kafka how far a group is behind, by topic and partition.

    Raises:
        KafkaSpoutError: Kafka doesn't answer, refuses, or has not all topics that are named.
        SetupError: kafka-python is not installed, or too old.
    """
    errors = kafka_python("spout").errors
    from kafka.structs import TopicPartition

    where = f"Kafka at {', '.join(reading.servers)}"
    settings = {"bootstrap_timeout_ms": _ANSWER_MS, "request_timeout_ms": _ANSWER_MS, **reading.settings}
    settings |= {"bootstrap_servers": list(reading.servers), "enable_auto_commit": False}
    try:
        client = consumer(group_id=reading.group, **settings)
        try:
            present = client.topics()
            if missing := sorted(set(reading.topics) - set(present)):
                raise KafkaSpoutError(f"{where} has no topic {', '.join(missing)}")
            pattern = reading.pattern
            topics = [name for name in present if name in reading.topics or (pattern and pattern.fullmatch(name))]
            places = [TopicPartition(name, n) for name in topics for n in client.partitions_for_topic(name)]
            if not places:
                return {}
            begins, ends = client.beginning_offsets(places, _ANSWER_MS), client.end_offsets(places, _ANSWER_MS)
            found = {}
            for place in sorted(places):
                # Not of a topic that was made again since.
                committed = committed_offset(client, place, topic_id(client, place.topic), f"group {reading.group}")
                end = ends[place]
                behind = end - (begins[place] if committed is None else committed)
                found[place.topic, place.partition] = Lag(committed, end, max(0, behind))
            return found
        finally:
            client.close(autocommit=False, timeout_ms=0)
    except errors.KafkaError as error:
        raise KafkaSpoutError(f"{where} does not answer: {described(error)}") from None
