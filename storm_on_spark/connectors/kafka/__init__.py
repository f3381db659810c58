"""Kafka: topics as spouts.

`PlainKafkaSpout` reads by kafka-python (extra `kafka`), on Spark's executors, without a jar.
"""

from __future__ import annotations

from storm_on_spark.connectors.kafka.config import (
    DEAD_LETTER_FIELDS,
    FirstPollOffsetStrategy,
    KafkaSpoutConfig,
    KafkaSpoutConfigBuilder,
    ProcessingGuarantee,
)
from storm_on_spark.connectors.kafka.errors import KafkaSpoutError
from storm_on_spark.connectors.kafka.records import (
    ByTopicRecordTranslator,
    DefaultRecordTranslator,
    KafkaRecord,
    KafkaTuple,
    RecordTranslator,
    SimpleRecordTranslator,
    as_bytes,
    as_text,
)
from storm_on_spark.connectors.kafka.retry import RetryBackoff
from storm_on_spark.connectors.kafka.spout import PlainKafkaSpout

__all__ = [
    "DEAD_LETTER_FIELDS",
    "ByTopicRecordTranslator",
    "DefaultRecordTranslator",
    "FirstPollOffsetStrategy",
    "KafkaRecord",
    "KafkaSpoutConfig",
    "KafkaSpoutConfigBuilder",
    "KafkaSpoutError",
    "KafkaTuple",
    "PlainKafkaSpout",
    "ProcessingGuarantee",
    "RecordTranslator",
    "RetryBackoff",
    "SimpleRecordTranslator",
    "as_bytes",
    "as_text",
]
