"""Whether Kafka would take records, asked by Kafka's own client in Spark's JVM before a topology starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from storm_on_spark.connectors.kafka.clients import described

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ANSWER_MS: Final = 10_000
_ADMIN: Final = "org.apache.kafka.clients.admin"


def refusal(spark: SparkSession, settings: Mapping[str, str], topic: str | None) -> str | None:
    """Returns why records can't be written, without secrets; None if nothing speaks against it.

    Args:
        spark: a session that has the jars of Kafka's client.
        settings: of a producer.
        topic: where all records go; None where that is not known yet.
    """
    from py4j.protocol import Py4JJavaError

    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001 # no public way to ask for a class
    unknown = sorted(set(settings) - set(jvm.org.apache.kafka.clients.producer.ProducerConfig.configNames()))
    if unknown:
        return f"Kafka's producer has no setting {', '.join(map(repr, unknown))}"
    known = set(jvm.org.apache.kafka.clients.admin.AdminClientConfig.configNames())
    properties = jvm.java.util.Properties()
    for name, value in settings.items():
        if name in known:
            properties.setProperty(name, value)
    for name in "request.timeout.ms", "default.api.timeout.ms":
        properties.setProperty(name, str(_ANSWER_MS))
    where = f"Kafka at {settings['bootstrap.servers']}"
    admin = None
    try:
        admin = jvm.org.apache.kafka.clients.admin.Admin.create(properties)
        if topic is None:
            admin.describeCluster().clusterId().get()
        else:
            topics = jvm.java.util.ArrayList()
            topics.add(topic)
            admin.describeTopics(topics).allTopicNames().get()
    except Py4JJavaError as error:
        return f"{where}: {_words(error.java_exception)}"
    finally:
        if admin is not None:
            admin.close()
    return None


def _words(error: Any) -> str:
    """Returns what the innermost cause says."""
    while error.getCause() is not None:
        error = error.getCause()
    name = error.getClass().getSimpleName()
    if name == "UnknownTopicOrPartitionException":
        return "there is no such topic: create it first"
    return described(Exception(f"{name}: {error.getMessage()}"))
