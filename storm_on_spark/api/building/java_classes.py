"""Java classes that topologies name: Storm's common ones map to classes here; others are refused with a reason."""

from __future__ import annotations

from typing import Final

_OURS: Final = "storm_on_spark.flux.storm_classes"
_SHELL: Final = "storm_on_spark.multilang.flux_classes"
_KAFKA: Final = "storm_on_spark.connectors.kafka"
_KAFKAS: Final = "storm_on_spark.connectors.kafka.java_classes"

CLASSES: Final = {
    "org.apache.storm.Config": "storm_on_spark.api.config.Config",
    "org.apache.storm.tuple.Fields": "storm_on_spark.api.streams.fields.Fields",
    "org.apache.storm.grouping.PartialKeyGrouping": "storm_on_spark.api.streams.grouping.PartialKeyGrouping",
    "org.apache.storm.testing.NGrouping": f"{_OURS}.NGrouping",
    "org.apache.storm.testing.TestWordSpout": f"{_OURS}.TestWordSpout",
    "org.apache.storm.testing.TestWordCounter": f"{_OURS}.TestWordCounter",
    "org.apache.storm.testing.TestGlobalCount": f"{_OURS}.TestGlobalCount",
    "org.apache.storm.testing.TestAggregatesCounter": f"{_OURS}.TestAggregatesCounter",
    "org.apache.storm.flux.wrappers.bolts.LogInfoBolt": f"{_OURS}.LogInfoBolt",
    "org.apache.storm.flux.wrappers.bolts.FluxShellBolt": f"{_SHELL}.FluxShellBolt",
    "org.apache.storm.flux.wrappers.spouts.FluxShellSpout": f"{_SHELL}.FluxShellSpout",
    "org.apache.storm.kafka.spout.KafkaSpout": f"{_KAFKA}.PlainKafkaSpout",
    "org.apache.storm.kafka.spout.KafkaSpoutConfig": f"{_KAFKAS}.KafkaSpoutConfig",
    "org.apache.storm.kafka.spout.KafkaSpoutConfig$Builder": f"{_KAFKAS}.KafkaSpoutConfigBuilder",
    "org.apache.storm.kafka.spout.DefaultRecordTranslator": f"{_KAFKA}.DefaultRecordTranslator",
    "org.apache.storm.kafka.spout.ByTopicRecordTranslator": f"{_KAFKA}.ByTopicRecordTranslator",
    "org.apache.storm.kafka.bolt.KafkaBolt": f"{_KAFKAS}.KafkaBolt",
    "org.apache.storm.kafka.bolt.mapper.FieldNameBasedTupleToKafkaMapper": f"{_KAFKA}.FieldNameBasedTupleToKafkaMapper",
    "org.apache.storm.kafka.bolt.selector.DefaultTopicSelector": f"{_KAFKAS}.DefaultTopicSelector",
    "org.apache.storm.kafka.bolt.selector.FieldIndexTopicSelector": f"{_KAFKAS}.FieldIndexTopicSelector",
    "org.apache.storm.kafka.bolt.selector.FieldNameTopicSelector": f"{_KAFKA}.FieldNameTopicSelector",
    "java.util.Properties": f"{_KAFKAS}.Properties",
}
"""Java class -> the class that stands for it."""

MAKERS: Final = {
    "org.apache.storm.kafka.spout.KafkaSpout": f"{_KAFKAS}.spout_of",
    "org.apache.storm.kafka.bolt.KafkaBolt": f"{_KAFKAS}.bolt_of",
    "storm.kafka.bolt.KafkaBolt": f"{_KAFKAS}.bolt_of",
}
"""Java class -> a function of arguments, streams and configuration, for components whose arguments Thrift can't
describe."""

REFUSED: Final = {
    "org.apache.storm.kafka.trident.": "Trident topologies are written in Python, with storm_on_spark.trident",
    "org.apache.storm.kafka.": "of Storm's Kafka classes there are KafkaSpout, its KafkaSpoutConfig with the builder, "
    "KafkaBolt, and their usual translators, mappers and selectors; name a Python class",
    "storm.kafka.": "use org.apache.storm.kafka.spout.KafkaSpout, which needs no ZooKeeper",
    "org.apache.storm.hdfs.": "write the files in a Python bolt",
    "org.apache.storm.hbase.": "write to HBase in a Python bolt",
    "org.apache.storm.jdbc.": "use a database driver of Python in a Python bolt",
    "org.apache.storm.redis.": "use a Redis client of Python in a Python bolt",
    "org.apache.storm.elasticsearch.": "use a client of Python in a Python bolt",
    "org.apache.storm.trident.": "Trident topologies are written in Python, with storm_on_spark.trident",
    "org.apache.storm.topology.base.BaseWindowedBolt": "windowed bolts are not supported",
    "org.apache.storm.": "there is no class here that stands for it; name a Python class",
    "java.": "write the value itself in YAML: a list, a mapping, a number or a string",
}
"""Java class, or package with its trailing dot -> what to do instead; the first match counts."""


def refusal(name: str) -> str | None:
    """Returns why a Java class can't be used; `None` if `name` is not a known Java class.

    >>> refusal("org.apache.storm.jdbc.bolt.JdbcInsertBolt")
    'org.apache.storm.jdbc.bolt.JdbcInsertBolt is a Java class: use a database driver of Python in a Python bolt'
    >>> refusal("words.Count") is None
    True
    """
    for prefix, sentence in REFUSED.items():
        if name == prefix or (prefix.endswith(".") and name.startswith(prefix)):
            return f"{name} is a Java class: {sentence}"
    return None
