"""The configuration of a Kafka spout: defaults, and what is refused with which words."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable

import cloudpickle
import pytest

from storm_on_spark import ConfigError, Fields
from storm_on_spark.connectors.kafka import (
    ByTopicRecordTranslator,
    FirstPollOffsetStrategy,
    KafkaRecord,
    KafkaSpoutConfig,
    KafkaSpoutConfigBuilder,
    KafkaTuple,
    PlainKafkaSpout,
    ProcessingGuarantee,
    RetryBackoff,
    SimpleRecordTranslator,
)
from storm_on_spark.connectors.kafka.clients import consumer_settings


def builder() -> KafkaSpoutConfigBuilder:
    return KafkaSpoutConfig.builder("a:9092, b:9093", "lines").set_group_id("g")


def test_defaults_are_storm_kafka_clients() -> None:
    config = builder().build()
    assert config.bootstrap_servers == ("a:9092", "b:9093")
    assert config.first_poll_offset_strategy is FirstPollOffsetStrategy.UNCOMMITTED_EARLIEST
    assert config.processing_guarantee is ProcessingGuarantee.AT_LEAST_ONCE
    assert config.max_uncommitted_offsets == 10_000_000
    assert config.offset_commit_period_ms == 30_000
    assert config.partition_refresh_period_ms == 2_000
    assert not config.emit_null_tuples
    assert config.retry == RetryBackoff(0, 2, None, 10_000)
    assert dict(config.translator.streams()) == {"default": Fields("topic", "partition", "offset", "key", "value")}


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: KafkaSpoutConfig.builder("a", "t"), "host:port, separated by commas (given 'a')"),
        (lambda: KafkaSpoutConfig.builder("a:70000", "t"), "host:port"),
        (lambda: KafkaSpoutConfig.builder("a:1"), "name topics, or one pattern"),
        (lambda: KafkaSpoutConfig.builder("a:1", "t", re.compile("x")), "name topics, or one pattern"),
        (lambda: KafkaSpoutConfig.builder("a:1", "no blank"), "'no blank' is not a topic's name"),
        (lambda: KafkaSpoutConfig.builder("a:1", "t").build(), "set_group_id"),
        (lambda: builder().set_group_id(""), "1 to 249 characters"),
        (lambda: builder().set_max_uncommitted_offsets(0), "max_uncommitted_offsets must be a whole number of 1"),
        (lambda: builder().set_offset_commit_period_ms(True), "offset_commit_period_ms must be"),
        (lambda: builder().set_processing_guarantee("AT_LEAST_ONCE"), "must be a ProcessingGuarantee"),
        (lambda: builder().set_emit_null_tuples(1), "must be a bool"),
        (lambda: builder().set_value_deserializer("str"), "must be a function of bytes"),
        (lambda: builder().set_prop("enable.auto.commit", True), "as set_processing_guarantee says"),
        (lambda: builder().set_prop("auto.offset.reset", "newest"), "none, earliest, latest (given 'newest')"),
        (lambda: builder().set_start_timestamp(5).build(), "belong together"),
        (
            lambda: builder().set_first_poll_offset_strategy(FirstPollOffsetStrategy.TIMESTAMP).build(),
            "belong together",
        ),
        (
            lambda: (
                builder()
                .set_processing_guarantee(ProcessingGuarantee.NO_GUARANTEE)
                .set_dead_letter_stream("dead")
                .build()
            ),
            "needs AT_LEAST_ONCE",
        ),
        (lambda: builder().set_dead_letter_stream("default").build(), 'stream "default" is the translator\'s'),
        (lambda: RetryBackoff(max_retries=-1), "max_retries must be a whole number of 0 or more (given -1)"),
        (lambda: PlainKafkaSpout("lines"), "takes a KafkaSpoutConfig (given 'lines')"),
        (
            lambda: PlainKafkaSpout(builder().set_prop("sasl.plain.pasword", "hush").build()),
            "no setting 'sasl_plain_pas",
        ),
    ],
)
def test_nonsense_is_refused(build: Callable[[], object], words: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(words)) as caught:
        build()
    assert "hush" not in str(caught.value)


def test_properties_reach_the_client_and_secrets_are_not_shown() -> None:
    config = (
        builder()
        .set_prop("security.protocol", "SASL_SSL")
        .set_prop("sasl_plain_password", "hush-hush")
        .set_prop("auto.offset.reset", "latest")
        .build()
    )
    settings = consumer_settings(config)
    assert (settings["security_protocol"], settings["sasl_plain_password"]) == ("SASL_SSL", "hush-hush")
    # Ours: the spout itself decides where to go on.
    assert (settings["auto_offset_reset"], config.auto_offset_reset) == ("none", "latest")
    assert "hush-hush" not in repr(config) + str(config)
    assert "hush-hush" not in repr(PlainKafkaSpout(config))


def test_a_configuration_travels() -> None:
    translator = SimpleRecordTranslator(lambda record: [record.value], Fields("line"))
    config = builder().set_record_translator(translator).build()
    there = pickle.loads(cloudpickle.dumps(PlainKafkaSpout(config)))
    assert isinstance(there, PlainKafkaSpout)


def test_streams_by_topic() -> None:
    lines = SimpleRecordTranslator(lambda record: [record.value], Fields("line"))
    clicks = SimpleRecordTranslator(lambda record: None if record.key is None else [record.key], Fields("user"), "c")
    translator = ByTopicRecordTranslator(lines).for_topic("clicks", clicks)
    record = KafkaRecord("clicks", 0, 0, "ann", "x", -1)
    chosen = translator.apply(record)
    assert isinstance(chosen, KafkaTuple)
    assert (chosen, chosen.stream) == (["ann"], "c")
    assert translator.apply(KafkaRecord("clicks", 0, 0, None, "x", -1)) is None
    assert translator.apply(KafkaRecord("other", 0, 0, None, "x", -1)) == ["x"]
    assert dict(translator.streams()) == {"default": Fields("line"), "c": Fields("user")}
    with pytest.raises(ConfigError, match="has a translator already"):
        translator.for_topic("clicks", lines)
    with pytest.raises(ConfigError, match="name another stream"):
        translator.for_topic("more", SimpleRecordTranslator(lambda record: [1, 2], Fields("a", "b")))


def test_routed_to_is_storms_way() -> None:
    assert KafkaTuple([1]).routed_to("side").stream == "side"
