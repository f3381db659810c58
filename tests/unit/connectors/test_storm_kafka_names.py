"""The tables of docs/connectors.md for those who come from storm-kafka-client: each row is there, or says why not."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from storm_on_spark import ConfigError
from storm_on_spark.connectors import kafka
from storm_on_spark.connectors.kafka import KafkaBolt, KafkaSpout, KafkaSpoutConfig, PlainKafkaBolt, PlainKafkaSpout
from storm_on_spark.connectors.kafka.names import StormNames

PAGE = Path(__file__).parents[3] / "docs" / "connectors.md"
HEAD = "| storm-kafka-client | here |\n|---|---|\n"
SPOUT, BOLT = ([line.strip("| ").split(" | ", 1) for line in part.partition("\n\n")[0].splitlines()]
               for part in PAGE.read_text("utf-8").split(HEAD)[1:])  # fmt: skip
METHOD = re.compile(r"\b(?:set|with)[A-Z]\w+")
PROP = re.compile(r'setProp\("([\w.]+)"')


def builder() -> kafka.KafkaSpoutConfigBuilder:
    return KafkaSpoutConfig.builder("a:9092", "lines").set_group_id("g")


def snake(name: str) -> str:
    return re.sub(r"([A-Z])", r"_\1", name).lower()


def check(told: StormNames, storm: str, row: str) -> None:
    """Storm's name leads to ours, or to the sentence of its row."""
    with pytest.raises(AttributeError) as caught:
        getattr(told, storm)
    said = str(caught.value)
    if row.startswith("no: "):
        assert said == f"there is no {storm} here: {row.removeprefix('no: ')}"
    else:
        own = said.removeprefix(f"{storm} is ").removesuffix(" here")
        assert callable(getattr(told, own))
        assert own in row or row.startswith("`SimpleRecordTranslator"), "the row names it"


@pytest.mark.parametrize(("storm", "here"), SPOUT, ids=[row[0] for row in SPOUT])
def test_a_row_of_the_spout(storm: str, here: str) -> None:
    if (prop := PROP.search(storm)) is not None:
        values = {"auto.offset.reset": "earliest", "group.id": "h", "security.protocol": "SSL"}
        if prop[1] in values:
            builder().set_prop(prop[1], values[prop[1]])
        else:  # the method that the row names is named by the refusal, too
            with pytest.raises(ConfigError) as caught:
                builder().set_prop(prop[1], 1)
            assert re.search(r"set_\w+", here)[0] in str(caught.value)
        return
    methods = METHOD.findall(storm)
    for method in methods:
        check(builder(), method, here)
    for ours in re.findall(r"`(set_\w+)", here):
        assert callable(getattr(builder(), ours))
    if not methods:
        OTHERS[storm]()


def _refused(told: Callable[[object], object]) -> None:
    with pytest.raises(ConfigError, match=r"is not a topic's name: up to|must be a RetryBackoff"):
        told(object())


def _tables_name(name: str) -> None:
    assert callable(getattr(kafka, name))


OTHERS = {
    "`builder(servers, topics…)`": lambda: KafkaSpoutConfig.builder("a:9092", "one", "two"),
    "`builder(servers, Pattern)`": lambda: KafkaSpoutConfig.builder("a:9092", re.compile("lines-.*")),
    "your own `TopicFilter`, `ManualPartitioner`": lambda: _refused(
        lambda topic: KafkaSpoutConfig.builder("a:9092", topic)
    ),
    "`ByTopicRecordTranslator`": lambda: _tables_name("ByTopicRecordTranslator"),
    "`KafkaTuple.routedTo`": lambda: kafka.KafkaTuple([1]).routed_to("s"),
    "your own `KafkaSpoutRetryService`": lambda: _refused(lambda service: builder().set_retry(service)),
    "nothing": lambda: builder().set_dead_letter_stream("dead"),
    "storm-kafka-monitor": lambda: __import__("storm_on_spark.connectors.kafka.lag"),
    # Nothing of that name is there to be called.
    "`KafkaTridentSpoutOpaque`, `KafkaTridentSpoutTransactional`, `TridentKafkaState`": lambda: None,
}


@pytest.mark.parametrize(("storm", "here"), BOLT, ids=[row[0] for row in BOLT])
def test_a_row_of_the_bolt(storm: str, here: str) -> None:
    for method in METHOD.findall(storm):
        check(PlainKafkaBolt("a:9092"), method, here)
        if (own := re.search(r"`KafkaBolt`: (no, .*)", here)) is not None:
            check(KafkaBolt("a:9092"), method, own[1].replace("no, ", "no: "))
    for name in re.findall(r"`(Field\w+)`", storm):
        assert callable(getattr(kafka, name, None)) or here.startswith("`lambda")
    for ours in re.findall(r"`(with_\w+)", here):
        assert callable(getattr(PlainKafkaBolt("a:9092"), ours))


SPARKS = [row for row in SPOUT if "`KafkaSpout`: no" in row[1]]


@pytest.mark.parametrize(("storm", "here"), SPARKS, ids=[row[0] for row in SPARKS])
def test_what_a_row_denies_to_spark_s_own_source_is_refused_by_that_alone(storm: str, here: str) -> None:
    changed = {
        "setProcessingGuarantee": lambda: builder().set_processing_guarantee(kafka.ProcessingGuarantee.AT_MOST_ONCE),
        "setMaxUncommittedOffsets": lambda: builder().set_max_uncommitted_offsets(5),
        "setPartitionRefreshPeriodMs": lambda: builder().set_partition_refresh_period_ms(5),
        'setProp("max.poll.records", …)': lambda: builder().set_max_poll_records(5),
        'setProp("auto.offset.reset", …)': lambda: builder().set_prop("auto.offset.reset", "latest"),
    }[storm.strip("`")]
    config = changed().build()
    PlainKafkaSpout(config)
    with pytest.raises(ConfigError):
        KafkaSpout(config)
