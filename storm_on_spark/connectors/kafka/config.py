"""The configuration of a Kafka spout, in storm-kafka-client's terms."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar, Final

from storm_on_spark.api.errors import ConfigError
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.connectors.kafka.names import StormNames
from storm_on_spark.connectors.kafka.records import DefaultRecordTranslator, RecordTranslator, as_text
from storm_on_spark.connectors.sources.retry import RetryBackoff

DEAD_LETTER_FIELDS: Final = Fields(
    "topic", "partition", "offset", "key", "value", "timestamp", "headers", "reason", "failures"
)
"""The fields of the dead-letter stream; key and value are bytes, as in Kafka."""

_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_SERVER: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:/,@\[\]]+):(\d{1,5})")
_MOST_PORT: Final = 65535
_OURS: Final[Mapping[str, str]] = {
    "bootstrap_servers": "they are the first argument of builder()",
    "enable_auto_commit": "offsets are committed as set_processing_guarantee says",
    "key_deserializer": "use set_key_deserializer",
    "value_deserializer": "use set_value_deserializer",
    "kafka_client": "it can't be replaced",
    "selector": "it can't be replaced",
    "max_poll_records": "use set_max_poll_records",
    "partition_assignment_strategy": "partitions belong to tasks by their number, without a group's rebalancing",
    "session_timeout_ms": "partitions belong to tasks by their number, without a group's sessions",
    "heartbeat_interval_ms": "partitions belong to tasks by their number, without a group's heartbeats",
    "max_poll_interval_ms": "partitions belong to tasks by their number, without a group's sessions",
    "group_instance_id": "partitions belong to tasks by their number, without a group's members",
    "consumer_timeout_ms": "the spout never waits for records",
}
_RESETS: Final = ("none", "earliest", "latest")


class FirstPollOffsetStrategy(Enum):
    """The position from which a partition is read if the topology's checkpoint does not know it."""

    EARLIEST = "earliest"
    """At its first record."""
    LATEST = "latest"
    """Behind its last record."""
    UNCOMMITTED_EARLIEST = "uncommitted_earliest"
    """At the offset that the group has committed; without one as `EARLIEST`."""
    UNCOMMITTED_LATEST = "uncommitted_latest"
    """At the offset that the group has committed; without one as `LATEST`."""
    TIMESTAMP = "timestamp"
    """At the first record that is as new as `set_start_timestamp` says."""


class ProcessingGuarantee(Enum):
    """The treatment of records when something fails."""

    AT_LEAST_ONCE = "at_least_once"
    """Its tuple is tracked and, if it fails, emitted again. Offsets are committed up to the first one not acked."""
    AT_MOST_ONCE = "at_most_once"
    """Its offset is committed before its tuple is emitted, untracked."""
    NO_GUARANTEE = "no_guarantee"
    """Its tuple is untracked; the position is committed from time to time."""


@dataclass(frozen=True)
class KafkaSpoutConfig:
    """The configuration of a Kafka spout; made by `KafkaSpoutConfig.builder`.

    Example:
        >>> config = KafkaSpoutConfig.builder("127.0.0.1:9092", "lines").set_group_id("count").build()
        >>> config.processing_guarantee.name, config.first_poll_offset_strategy.name
        ('AT_LEAST_ONCE', 'UNCOMMITTED_EARLIEST')
    """

    bootstrap_servers: tuple[str, ...]
    topics: tuple[str, ...]
    pattern: re.Pattern[str] | None
    group_id: str
    first_poll_offset_strategy: FirstPollOffsetStrategy
    start_timestamp_ms: int | None
    processing_guarantee: ProcessingGuarantee
    translator: RecordTranslator
    key_deserializer: Callable[[bytes], Any]
    value_deserializer: Callable[[bytes], Any]
    retry: RetryBackoff
    dead_letter_stream: str | None
    max_uncommitted_offsets: int
    max_poll_records: int
    emit_null_tuples: bool
    offset_commit_period_ms: int
    partition_refresh_period_ms: int
    auto_offset_reset: str
    properties: Mapping[str, Any] = field(repr=False)
    """More of kafka-python's settings of a consumer; they may hold secrets."""

    @staticmethod
    def builder(bootstrap_servers: str, *topics: str | re.Pattern[str]) -> KafkaSpoutConfigBuilder:
        """Returns a builder.

        Args:
            bootstrap_servers: `host:port,host:port,…`.
            topics: the names of topics, or one compiled pattern that whole names must match.
        """
        return KafkaSpoutConfigBuilder(bootstrap_servers, *topics)

    def matches(self, topic: str) -> bool:
        """Returns whether a topic is read because of the pattern."""
        return self.pattern is not None and self.pattern.fullmatch(topic) is not None


class KafkaSpoutConfigBuilder(StormNames):
    """Builds a `KafkaSpoutConfig`; every method returns the builder.

    Raises:
        ConfigError: a value makes no sense; the message says which, and what does.
    """

    refused: ClassVar[Mapping[str, str]] = {
        "set_tuple_tracking_enforced": "tuples are tracked only with `AT_LEAST_ONCE`",
        "set_poll_timeout_ms": "a poll never waits",
        "set_tuple_listener": "use task hooks (`topology.auto.task.hooks`), which are called for emits, acks and fails",
        "set_metrics_time_bucket_size_in_secs": "the spout registers no metrics",
    }

    def __init__(self, bootstrap_servers: str, *topics: str | re.Pattern[str]) -> None:
        self._servers = checked_servers(bootstrap_servers)
        patterns = [topic for topic in topics if isinstance(topic, re.Pattern)]
        if not topics or (patterns and len(topics) > 1):
            raise ConfigError(f"name topics, or one pattern (given {topics!r:.200})", key="topics")
        for topic in topics:
            if not isinstance(topic, re.Pattern):
                checked_topic(topic, "topics")
        names = [topic for topic in topics if isinstance(topic, str)]
        self._given: dict[str, Any] = {
            "topics": tuple(dict.fromkeys(names)),
            "pattern": patterns[0] if patterns else None,
            "group_id": None,
            "first_poll_offset_strategy": FirstPollOffsetStrategy.UNCOMMITTED_EARLIEST,
            "start_timestamp_ms": None,
            "processing_guarantee": ProcessingGuarantee.AT_LEAST_ONCE,
            "translator": DefaultRecordTranslator(),
            "key_deserializer": as_text,
            "value_deserializer": as_text,
            "retry": RetryBackoff(),
            "dead_letter_stream": None,
            "max_uncommitted_offsets": 10_000_000,
            "max_poll_records": 500,
            "emit_null_tuples": False,
            "offset_commit_period_ms": 30_000,
            "partition_refresh_period_ms": 2_000,
        }
        self._reset = "none"
        self._properties: dict[str, Any] = {}

    def set_group_id(self, group_id: str) -> KafkaSpoutConfigBuilder:
        """Sets the consumer group that offsets are committed to. It has no other members."""
        if not 0 < len(group_id) <= 249:
            raise ConfigError(f"a group id has 1 to 249 characters (given {group_id!r:.300})", key="group_id")
        return self._set("group_id", group_id)

    def set_first_poll_offset_strategy(self, strategy: FirstPollOffsetStrategy) -> KafkaSpoutConfigBuilder:
        """Sets the position from which a partition is read if the topology's checkpoint does not know it."""
        return self._set_one("first_poll_offset_strategy", strategy, FirstPollOffsetStrategy)

    def set_start_timestamp(self, timestamp_ms: int) -> KafkaSpoutConfigBuilder:
        """Sets the time for `FirstPollOffsetStrategy.TIMESTAMP`, in milliseconds since the epoch."""
        return self._set_number("start_timestamp_ms", timestamp_ms, 0)

    def set_processing_guarantee(self, guarantee: ProcessingGuarantee) -> KafkaSpoutConfigBuilder:
        """Sets the treatment of records when something fails."""
        return self._set_one("processing_guarantee", guarantee, ProcessingGuarantee)

    def set_record_translator(self, translator: RecordTranslator) -> KafkaSpoutConfigBuilder:
        """Sets the translator that makes tuples from records."""
        return self._set_one("translator", translator, RecordTranslator)

    def set_key_deserializer(self, function: Callable[[bytes], Any]) -> KafkaSpoutConfigBuilder:
        """Sets the deserializer of keys: by default keys become UTF-8 text, or bytes if they are not UTF-8."""
        return self._set_function("key_deserializer", function)

    def set_value_deserializer(self, function: Callable[[bytes], Any]) -> KafkaSpoutConfigBuilder:
        """Sets the deserializer of values: by default values become UTF-8 text, or bytes if they are not UTF-8."""
        return self._set_function("value_deserializer", function)

    def set_retry(self, retry: RetryBackoff) -> KafkaSpoutConfigBuilder:
        """Sets when failed records are emitted again, and when they are given up."""
        return self._set_one("retry", retry, RetryBackoff)

    def set_dead_letter_stream(self, stream: str) -> KafkaSpoutConfigBuilder:
        """Names the stream for records that are given up; without one they are dropped, and a warning is logged."""
        return self._set("dead_letter_stream", stream)

    def set_max_uncommitted_offsets(self, number: int) -> KafkaSpoutConfigBuilder:
        """Sets how far the position of a partition may be ahead of its first offset that is not done."""
        return self._set_number("max_uncommitted_offsets", number, 1)

    def set_max_poll_records(self, number: int) -> KafkaSpoutConfigBuilder:
        """Sets how many records one poll takes at most."""
        return self._set_number("max_poll_records", number, 1)

    def set_emit_null_tuples(self, emit: bool) -> KafkaSpoutConfigBuilder:
        """Sets whether a record for which the translator returns None is emitted, as a tuple of None."""
        return self._set_one("emit_null_tuples", emit, bool)

    def set_offset_commit_period_ms(self, period_ms: int) -> KafkaSpoutConfigBuilder:
        """Sets how often offsets are committed, in milliseconds; `AT_MOST_ONCE` commits before it emits."""
        return self._set_number("offset_commit_period_ms", period_ms, 1)

    def set_partition_refresh_period_ms(self, period_ms: int) -> KafkaSpoutConfigBuilder:
        """Sets how often new topics and partitions are looked for, in milliseconds."""
        return self._set_number("partition_refresh_period_ms", period_ms, 1)

    def set_prop(self, name: str, value: Any) -> KafkaSpoutConfigBuilder:
        """Sets one of kafka-python's settings of a consumer, such as `security_protocol`; dots stand for underscores.

        `auto.offset.reset` says what happens when the offset to read is not in Kafka any more, or when the topic was
        deleted and created again: "none" ends the topology with an error, "earliest" and "latest" continue there.
        """
        key = name.replace(".", "_")
        if key == "group_id":
            return self.set_group_id(value)
        if key == "auto_offset_reset":
            if value not in _RESETS:
                raise ConfigError(f"{name} is one of {', '.join(_RESETS)} (given {value!r:.100})", key=name)
            self._reset = value
            return self
        if key in _OURS:
            raise ConfigError(f"{name} can't be set here: {_OURS[key]}", key=name)
        self._properties[key] = value
        return self

    def build(self) -> KafkaSpoutConfig:
        """Returns the configuration.

        Raises:
            ConfigError: something is missing, or values contradict each other.
        """
        given = self._given
        by_time = given["first_poll_offset_strategy"] is FirstPollOffsetStrategy.TIMESTAMP
        if by_time != (given["start_timestamp_ms"] is not None):
            raise ConfigError(
                "FirstPollOffsetStrategy.TIMESTAMP and set_start_timestamp belong together; only one of them is given"
            )
        if given["group_id"] is None:
            raise ConfigError("offsets are committed to a consumer group: name one with set_group_id", key="group_id")
        stream = given["dead_letter_stream"]
        if stream is not None:
            if given["processing_guarantee"] is not ProcessingGuarantee.AT_LEAST_ONCE:
                raise ConfigError("a dead-letter stream needs AT_LEAST_ONCE: nothing else is retried")
            if stream in given["translator"].streams():
                raise ConfigError(f'stream "{stream}" is the translator\'s; the dead-letter stream needs another name')
        return KafkaSpoutConfig(
            bootstrap_servers=self._servers,
            auto_offset_reset=self._reset,
            properties=dict(self._properties),
            **given,
        )

    def _set(self, name: str, value: Any) -> KafkaSpoutConfigBuilder:
        self._given[name] = value
        return self

    def _set_one(self, name: str, value: Any, kind: type) -> KafkaSpoutConfigBuilder:
        if not isinstance(value, kind):
            raise ConfigError(f"{name} must be a {kind.__name__} (given {value!r:.100})", key=name)
        return self._set(name, value)

    def _set_number(self, name: str, value: Any, least: int) -> KafkaSpoutConfigBuilder:
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise ConfigError(f"{name} must be a whole number of {least} or more (given {value!r:.100})", key=name)
        return self._set(name, value)

    def _set_function(self, name: str, value: Any) -> KafkaSpoutConfigBuilder:
        if not callable(value):
            raise ConfigError(f"{name} must be a function of bytes (given {value!r:.100})", key=name)
        return self._set(name, value)


def checked_topic(name: object, key: str) -> str:
    """Returns the name of a topic.

    Raises:
        ConfigError: it can't be one.
    """
    if not isinstance(name, str) or not _TOPIC.fullmatch(name):
        raise ConfigError(f"{name!r:.300} is not a topic's name: up to 249 letters, digits, '.', '_' and '-'", key=key)
    return name


def checked_servers(text: str) -> tuple[str, ...]:
    """Returns the servers of `host:port,host:port,…`.

    Raises:
        ConfigError: the text is something else.
    """
    servers = tuple(part.strip() for part in text.split(","))
    for server in servers:
        found = _SERVER.fullmatch(server)
        if found is None or not 0 < int(found[2]) <= _MOST_PORT:
            raise ConfigError(
                f"bootstrap servers are host:port, separated by commas (given {server!r:.100})", key="bootstrap_servers"
            )
    return servers
