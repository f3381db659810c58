"""Kafka: topics as source and as sink."""

from __future__ import annotations

import dataclasses
from typing import Any, Final, Literal, get_args

from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.tuple import Tuple
from storm_on_spark.connectors.kafka import (
    FirstPollOffsetStrategy,
    KafkaRecord,
    KafkaSpoutConfig,
    PlainKafkaBolt,
    PlainKafkaSpout,
    RetryBackoff,
    SimpleRecordTranslator,
)
from storm_on_spark.connectors.kafka.config import checked_servers, checked_topic
from storm_on_spark.xd.expressions import Expression
from storm_on_spark.xd.modules.declaration import STREAM_NAME, ModuleDeclaration, Option
from storm_on_spark.xd.modules.messages.message import DEAD_LETTERS, FIELDS, written

Start = Literal["earliest", "latest"]

_STARTS: Final = {
    "earliest": FirstPollOffsetStrategy.UNCOMMITTED_EARLIEST,
    "latest": FirstPollOffsetStrategy.UNCOMMITTED_LATEST,
}
_RETRY: Final = RetryBackoff(initial_delay_ms=1_000, delay_period_ms=2_000, max_delay_ms=10_000)


class KafkaSource(PlainKafkaSpout):
    """Emits the value of each record as payload; the headers are its topic, partition, offset, timestamp and key."""

    def __init__(self, brokers: str, topic: str, group: str, start: Start) -> None:
        config = (
            KafkaSpoutConfig.builder(brokers, topic)
            .set_group_id(group)
            .set_first_poll_offset_strategy(_STARTS[start])
            .set_record_translator(SimpleRecordTranslator(_message, Fields(*FIELDS)))
            .set_retry(_RETRY)
            .build()
        )
        super().__init__(config)
        self.config = config

    def give_up_after(self, attempts: int) -> None:
        """Sets how often a record may fail before it becomes a dead letter; called before the topology is made."""
        retry = dataclasses.replace(_RETRY, max_retries=attempts - 1)
        config = dataclasses.replace(self.config, retry=retry, dead_letter_stream=DEAD_LETTERS)
        super().__init__(config)
        self.config = config


def _message(record: KafkaRecord) -> list[Any]:
    if isinstance(record.value, bytes):
        raise ValueError(f"expected a text in UTF-8, got {len(record.value)} bytes that are not")
    key = record.key
    headers = {
        "kafka_topic": record.topic,
        "kafka_partition": record.partition,
        "kafka_offset": record.offset,
        "kafka_timestamp": record.timestamp,
        # A header is a text. Bytes of a key that are not UTF-8 become U+FFFD, as in Java's StringDeserializer.
        "kafka_key": key.decode("utf-8", "replace") if isinstance(key, bytes) else key,
    }
    return [record.value, headers]


class KeyMapper:
    """Makes a record's key from an expression, and its value from the payload."""

    def __init__(self, key: Expression) -> None:
        self.key = key

    def __call__(self, tup: Tuple) -> tuple[str | None, str | None]:
        """Returns key and value."""
        key, payload = self.key.value(tup["payload"], tup["headers"]), tup["payload"]
        return None if key is None else written(key), None if payload is None else written(payload)


def _sink(brokers: str, topic: str, key: Expression) -> PlainKafkaBolt:
    return PlainKafkaBolt(brokers).with_topic_selector(topic).with_tuple_to_kafka_mapper(KeyMapper(key))


def _a_topic(text: str) -> None:
    checked_topic(text, "topic")


def _a_group(text: str) -> None:
    if not 0 < len(text) <= 249:
        raise ValueError(f"Expected a group of 1 to 249 characters, got {text!r:.300}")


_BROKERS: Final = Option(
    "brokers",
    "text",
    "127.0.0.1:9092",
    "host:port of brokers, separated by commas.",
    check=checked_servers,
    also=("brokerList",),
)
_TOPIC: Final = Option(
    "topic",
    "text",
    STREAM_NAME,
    "The topic; by default the stream's name.",
    check=_a_topic,
)

SOURCE: Final = ModuleDeclaration(
    "source",
    "kafka",
    "Emits the value of each record of a topic, a UTF-8 text.",
    KafkaSource,
    (
        _BROKERS,
        _TOPIC,
        Option(
            "group",
            "text",
            STREAM_NAME,
            "The consumer group that offsets are committed to.",
            check=_a_group,
            also=("groupId",),
        ),
        Option("start", "text", "earliest", "Where to begin without committed offsets.", choices=get_args(Start)),
    ),
)

SINK: Final = ModuleDeclaration(
    "sink",
    "kafka",
    "Writes each payload as a record; a list or a map becomes JSON.",
    _sink,
    (_BROKERS, _TOPIC, Option("key", "expression", "null", "The key of a record; null for none.")),
)
