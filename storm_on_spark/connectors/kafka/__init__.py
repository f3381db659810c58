"""Kafka: topics as spouts, and bolts that write to topics.

`KafkaSpout` and `KafkaBolt` compile to Spark's own source and sink, whose jars are fetched. `PlainKafkaSpout` reads and
`PlainKafkaBolt` writes by kafka-python (extra `kafka`), without a jar.
"""

from __future__ import annotations

from storm_on_spark.connectors.kafka.config import (
    DEAD_LETTER_FIELDS,
    FirstPollOffsetStrategy,
    KafkaSpoutConfig,
    KafkaSpoutConfigBuilder,
    ProcessingGuarantee,
)
from storm_on_spark.connectors.kafka.errors import KafkaBoltError, KafkaSpoutError
from storm_on_spark.connectors.kafka.reading.by_spark import KafkaSpout
from storm_on_spark.connectors.kafka.reading.plain import PlainKafkaSpout
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
from storm_on_spark.connectors.kafka.writing.plain import PlainKafkaBolt
from storm_on_spark.connectors.kafka.writing.record_mapping import (
    FieldNameBasedTupleToKafkaMapper,
    FieldNameTopicSelector,
)
from storm_on_spark.connectors.kafka.writing.sink import KafkaBolt
from storm_on_spark.connectors.sources.retry import RetryBackoff

__all__ = [
    "DEAD_LETTER_FIELDS",
    "ByTopicRecordTranslator",
    "DefaultRecordTranslator",
    "FieldNameBasedTupleToKafkaMapper",
    "FieldNameTopicSelector",
    "FirstPollOffsetStrategy",
    "KafkaBolt",
    "KafkaBoltError",
    "KafkaRecord",
    "KafkaSpout",
    "KafkaSpoutConfig",
    "KafkaSpoutConfigBuilder",
    "KafkaSpoutError",
    "KafkaTuple",
    "PlainKafkaBolt",
    "PlainKafkaSpout",
    "ProcessingGuarantee",
    "RecordTranslator",
    "RetryBackoff",
    "SimpleRecordTranslator",
    "as_bytes",
    "as_text",
]
