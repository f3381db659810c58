"""Word count from Kafka to Delta: the lines of a topic, counted by word in a table that has each word once.

What to look for: records that Spark reads itself (`KafkaSpout`), counts as plain state of a bolt, and a table that
always has the last committed count of each word (`DeltaBolt` with keys). A line may be read again after a crash; the
counts stay exact. A batch job, `by_plain_spark`, counts the same topic. It runs until Ctrl-C.

    storm-spark dev-kafka --topic lines:2 --load lines=README.md
    storm-spark run jobs/kafka_word_count.py --conf conf/kafka_word_count.yaml --checkpoint state/kafka-word-count
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from storm_on_spark import (
    BaseBasicBolt,
    BasicOutputCollector,
    ConfigError,
    Fields,
    OutputFieldsDeclarer,
    Topology,
    TopologyBuilder,
    TopologyContext,
    Tuple,
)
from storm_on_spark.connectors.delta import DeltaBolt
from storm_on_spark.connectors.kafka import KafkaRecord, KafkaSpout, KafkaSpoutConfig, SimpleRecordTranslator

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SERVERS = "kafka.word.count.servers"
"""Configuration key: Kafka's servers."""

TOPIC = "kafka.word.count.topic"
"""Configuration key: the topic that is read."""

GROUP = "kafka.word.count.group"
"""Configuration key: the consumer group that offsets are committed to."""

TABLE = "kafka.word.count.table"
"""Configuration key: the folder of the Delta table."""

DEFAULTS: Mapping[str, str] = {
    SERVERS: "127.0.0.1:9092",
    TOPIC: "lines",
    GROUP: "kafka-word-count",
    TABLE: "kafka_word_count",
}

conf = dict(DEFAULTS)


def text_of(conf: Mapping[str, Any], key: str, default: str) -> str:
    """Returns a text setting.

    Raises:
        ConfigError: it is not a text, or empty.
    """
    value = conf.get(key, default)
    if not isinstance(value, str) or not value or "\0" in value:
        raise ConfigError(f"{key} must be a text that is not empty, not {value!r:.80}", key=key)
    return value


def line_of(record: KafkaRecord) -> list[str] | None:
    """Returns the tuple of a record; None if it has no value."""
    return None if record.value is None else [record.value]


def lenient_text(data: bytes) -> str:
    """Returns a value as text; invalid UTF-8 is replaced, as when Spark casts bytes to a string."""
    return data.decode("utf-8", "replace")


class SplitLine(BaseBasicBolt):
    """Emits the words of a line."""

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        for word in tup["line"].split():
            collector.emit([word])

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("word"))


class CountWord(BaseBasicBolt):
    """Emits the count of a word so far."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self.counts: Counter[str] = Counter()

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        word = tup["word"]
        self.counts[word] += 1
        collector.emit([word, self.counts[word]])

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("word", "count"))


def build(conf: Mapping[str, Any]) -> Topology:
    """Returns the topology.

    Raises:
        ConfigError: a setting is invalid.
    """
    servers, topic, group, table = (text_of(conf, key, default) for key, default in DEFAULTS.items())
    lines = (
        KafkaSpoutConfig.builder(servers, topic)
        .set_group_id(group)
        .set_value_deserializer(lenient_text)
        .set_record_translator(SimpleRecordTranslator(line_of, Fields("line")))
        .build()
    )
    columns = {"word": "string", "count": "long"}
    builder = TopologyBuilder()
    builder.set_spout("lines", KafkaSpout(lines))
    builder.set_bolt("split", SplitLine(), 2).shuffle_grouping("lines")
    builder.set_bolt("count", CountWord(), 2).fields_grouping("split", Fields("word"))
    builder.set_bolt("table", DeltaBolt(table, columns, keys=["word"]), 2).fields_grouping("count", Fields("word"))
    return builder.create_topology()


def by_plain_spark(spark: SparkSession, servers: str, topic: str) -> DataFrame:
    """Returns how often each word is in a topic, counted by a batch job; the session has the jars of Spark's source."""
    from pyspark.sql import functions

    records = spark.read.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", topic).load()
    words = records.select(functions.explode(functions.split(records["value"].cast("string"), r"\s+")).alias("word"))
    return words.where("word != ''").groupBy("word").count()


if __name__ == "__main__":
    from storm_on_spark.spark.main import run_main

    run_main(build, conf)
