"""Records sent one by one by Kafka's own producer in Spark's JVM, to learn which of them Kafka refuses."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any, Final

from storm_on_spark.connectors.kafka.clients import described
from storm_on_spark.connectors.kafka.errors import KafkaBoltError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

_REFUSALS: Final = frozenset(
    {
        "RecordTooLargeException",
        "RecordBatchTooLargeException",
        "InvalidRecordException",
        "InvalidTimestampException",
        "CorruptRecordException",
    }
)
"""Errors of Kafka's client that a record brings about, and not the topic, the login or the broker."""
_NEIGHBOUR: Final = "it was part of a batch which had"
"""What Kafka's client says of records beside one that the broker refuses; it has no class of errors for that."""
_AT_ONCE: Final = 1_000
"""Records that are rows of Python at a time."""


def is_refusal(kind: str, text: str) -> bool:
    """Returns whether an error of Kafka's client is about single records, from the name of its class and its text."""
    return kind in _REFUSALS or _NEIGHBOUR in text


def refused_records(
    spark: SparkSession, settings: Mapping[str, str], records: pa.Table
) -> Generator[tuple[dict[str, Any], str]]:
    """Sends all records in their order, and yields each that Kafka refuses and why.

    Args:
        spark: a session that has the jars of Kafka's client.
        settings: of a producer.
        records: as `KafkaBolt` hands them over.

    Raises:
        KafkaBoltError: Kafka fails otherwise.
    """
    from py4j.protocol import Py4JJavaError

    kafka: Any = spark.sparkContext._jvm.org.apache.kafka  # type: ignore[union-attr] # noqa: SLF001 # no public way
    java: Any = spark.sparkContext._jvm.java.util  # type: ignore[union-attr] # noqa: SLF001 # the same
    properties = java.Properties()
    for name, value in {**settings, "linger.ms": "0"}.items():
        properties.setProperty(name, value)

    def sent(row: Mapping[str, Any]) -> Any:
        headers = java.ArrayList()
        for header in row["headers"]:
            headers.add(kafka.common.header.internals.RecordHeader(header["key"], header["value"]))
        record = kafka.clients.producer.ProducerRecord(row["topic"], None, None, row["key"], row["value"], headers)
        return producer.send(record)

    serializers = (kafka.common.serialization.ByteArraySerializer() for _ in range(2))
    producer = kafka.clients.producer.KafkaProducer(properties, *serializers)
    try:
        for start in range(0, records.num_rows, _AT_ONCE):
            for row in records.slice(start, _AT_ONCE).to_pylist():
                try:
                    # One after the other: a broker refuses what is in one batch together, and order stays.
                    sent(row).get()
                except Py4JJavaError as error:
                    cause = error.java_exception.getCause() or error.java_exception
                    kind, text = cause.getClass().getSimpleName(), f"{cause.getMessage()}"
                    if not is_refusal(kind, text):
                        raise KafkaBoltError(
                            f"{records.num_rows} records were not written: {described(Exception(f'{kind}: {text}'))}"
                        ) from None
                    yield row, f"{kind}: {text}"
    finally:
        producer.close()
