"""`KafkaSpout` without Kafka and without Spark: what Spark's source is told, what is refused, what may be committed."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from types import SimpleNamespace

import cloudpickle
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_on_spark import ConfigError, Fields
from storm_on_spark.connectors.kafka import (
    FirstPollOffsetStrategy,
    KafkaSpout,
    KafkaSpoutConfig,
    KafkaSpoutConfigBuilder,
    ProcessingGuarantee,
    RetryBackoff,
    SimpleRecordTranslator,
    as_bytes,
)
from storm_on_spark.connectors.kafka.options import kafka_properties, source_options
from storm_on_spark.connectors.sources import SparkSourceSpout


@pytest.fixture(autouse=True)
def no_clients() -> Iterator[None]:
    yield
    keepers = [thread.name for thread in threading.enumerate() if thread.name.startswith("kafka-keeper")]
    assert keepers == [], "a client tries to connect for ever"


def builder(*topics: str | re.Pattern[str]) -> KafkaSpoutConfigBuilder:
    return KafkaSpoutConfig.builder("a:9092,b:9093", *(topics or ("lines", "clicks"))).set_group_id("g")


def records(*offsets: int, topic: str = "lines", partition: int = 0, value: bytes | None = b"to") -> pa.RecordBatch:
    header = [{"key": "h", "value": b"x"}]
    rows = [
        {
            "topic": topic,
            "partition": partition,
            "offset": offset,
            "key": b"k",
            "value": value,
            "timestamp": 5,
            "headers": header,
        }
        for offset in offsets
    ]
    return pa.RecordBatch.from_pylist(rows)


def opened(config: KafkaSpoutConfig | None = None, emitted: list | None = None) -> KafkaSpout:
    spout = KafkaSpout(
        config or builder().set_retry(RetryBackoff(max_retries=0)).set_dead_letter_stream("dead").build()
    )

    def emit(values, message_id=None, stream="default"):
        (emitted if emitted is not None else []).append((list(values), message_id, stream))

    spout.open({}, SimpleNamespace(this_component_id="k", this_task_id=1), SimpleNamespace(emit=emit))
    return spout


def test_what_spark_is_told() -> None:
    config = builder().set_prop("security.protocol", "SSL").set_prop("fetch_max_bytes", 9).build()
    assert source_options(config, {}, 10, {"minPartitions": "4"}) == {
        "kafka.bootstrap.servers": "a:9092,b:9093",
        "subscribe": "lines,clicks",
        "startingOffsets": "earliest",
        "failOnDataLoss": "true",
        "maxOffsetsPerTrigger": "10",
        "includeHeaders": "true",
        "kafka.max.poll.records": "10000",
        "kafka.security.protocol": "SSL",
        "kafka.fetch.max.bytes": "9",
        "minPartitions": "4",
    }


def test_what_a_user_says_of_polls_wins_and_headers_are_read_where_somebody_sees_them() -> None:
    given = {"kafka.max.poll.records": "7"}
    found = source_options(builder().build(), {}, 10, given, headers=False)
    assert (found["kafka.max.poll.records"], found["includeHeaders"]) == ("7", "false")


@pytest.mark.parametrize(
    ("strategy", "committed", "told"),
    [
        ("EARLIEST", None, "earliest"),
        ("LATEST", None, "latest"),
        ("UNCOMMITTED_EARLIEST", {("lines", 0): 7, ("lines", 1): None}, {"lines": {"0": 7, "1": -2}}),
        ("UNCOMMITTED_LATEST", {("lines", 0): 7, ("clicks", 1): None}, {"lines": {"0": 7}, "clicks": {"1": -1}}),
        ("UNCOMMITTED_LATEST", {}, "latest"),
    ],
)
def test_where_spark_begins(strategy, committed, told) -> None:
    config = builder().set_first_poll_offset_strategy(FirstPollOffsetStrategy[strategy]).build()
    found = source_options(config, committed, 1, {})["startingOffsets"]
    assert (json.loads(found) if isinstance(told, dict) else found) == told


def test_a_time_to_begin_and_a_pattern() -> None:
    given = builder(re.compile("li.*", re.IGNORECASE)).set_first_poll_offset_strategy(FirstPollOffsetStrategy.TIMESTAMP)
    found = source_options(given.set_start_timestamp(99).set_prop("auto.offset.reset", "earliest").build(), None, 1, {})
    assert found["subscribePattern"] == "(?i)li.*"
    assert (found["startingTimestamp"], found["startingOffsetsByTimestampStrategy"]) == ("99", "latest")
    assert found["failOnDataLoss"] == "false"
    assert not {"subscribe", "startingOffsets"} & set(found)


def test_a_login_is_said_in_kafka_s_words_whatever_is_in_the_password() -> None:
    login = {"sasl_mechanism": "SCRAM-SHA-256", "sasl_plain_username": "me", "sasl_plain_password": 'a"b\\c'}
    assert kafka_properties(login) == {
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="me" password="a\\"b\\\\c";',
    }
    assert kafka_properties({"ssl_check_hostname": False}) == {"ssl.endpoint.identification.algorithm": ""}
    with pytest.raises(ConfigError, match="PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"):
        kafka_properties({"sasl_mechanism": "GSSAPI", "sasl_plain_username": "me"})


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: KafkaSpout("lines"), "takes a KafkaSpoutConfig"),
        (lambda: KafkaSpout(builder().build(), 0), "max_offsets_per_batch must be a whole number of 1 or more"),
        (
            lambda: KafkaSpout(builder().set_processing_guarantee(ProcessingGuarantee.AT_MOST_ONCE).build()),
            "take NO_GUARANTEE, or PlainKafkaSpout",
        ),
        (lambda: KafkaSpout(builder().set_prop("auto.offset.reset", "latest").build()), '"none" or "earliest"'),
        (lambda: KafkaSpout(builder().set_max_uncommitted_offsets(5).build()), "Spark reads on"),
        (lambda: KafkaSpout(builder().set_max_poll_records(5).build()), "max_offsets_per_batch bounds"),
        (lambda: KafkaSpout(builder().set_partition_refresh_period_ms(5).build()), "in each micro-batch"),
        (lambda: KafkaSpout(builder(re.compile("a", re.VERBOSE)).build()), "may ignore case and no more"),
        (
            lambda: KafkaSpout(builder().build(), options={"startingOffsets": "latest"}),
            "set_first_poll_offset_strategy",
        ),
        (lambda: KafkaSpout(builder().build(), options={"kafka.group.id": "x"}), "reads with its own group"),
        (lambda: KafkaSpout(builder().set_prop("ssl_keyfile", "x").build()), "say it in Kafka's own words"),
        (lambda: KafkaSpout(builder().set_prop("nonsense", 1).build()), "kafka-python has no setting 'nonsense'"),
    ],
)
def test_what_spark_s_source_cannot_do_is_refused_with_what_to_do(make, words) -> None:
    with pytest.raises(ConfigError) as error:
        make()
    assert words in str(error.value)


def test_settings_that_only_kafka_python_understands_go_with_options_for_spark() -> None:
    config = builder().set_prop("ssl_keyfile", "x").build()
    spout = cloudpickle.loads(cloudpickle.dumps(KafkaSpout(config, options={"kafka.ssl.keystore.location": "y"})))
    assert "x" not in source_options(config, None, 1, {}).values()
    assert spout.tuple_streams() == KafkaSpout(config, options={"kafka.ssl.keystore.location": "y"}).tuple_streams()


def test_records_are_columns_where_no_function_of_the_user_s_looks_at_them() -> None:
    columns = KafkaSpout(builder().build()).columns(records(1, 2))
    assert columns.to_pydict() == {
        "topic": ["lines"] * 2, "partition": [0, 0], "offset": [1, 2], "key": ["k"] * 2, "value": ["to"] * 2,
    }  # fmt: skip
    raw = KafkaSpout(builder().set_value_deserializer(as_bytes).build()).columns(records(1, value=None))
    assert raw.column("value").to_pylist() == [None]
    assert KafkaSpout(builder().build()).columns(records(1, value=b"\xff")) is None
    by_length = KafkaSpout(builder().set_key_deserializer(len).build())
    assert by_length.columns(records(1)) is None
    # Timestamps and headers are not read where nobody sees them.
    few = records(1).select(["topic", "partition", "offset", "key", "value"]).to_pylist()
    assert by_length.tuple_of(few[0]) == ["lines", 0, 1, 1, "to"]


def test_a_record_without_a_tuple_is_a_tuple_of_none_where_that_is_asked_for() -> None:
    given = builder().set_record_translator(SimpleRecordTranslator(lambda record: None, Fields("a", "b"), "s"))
    row = records(1).to_pylist()[0]
    assert KafkaSpout(given.build()).tuple_of(row) is None
    null = KafkaSpout(given.set_emit_null_tuples(True).build()).tuple_of(row)
    assert (null, null.stream) == ([None, None], "s")


def test_a_dead_letter_is_the_record_as_kafka_has_it() -> None:
    emitted = []
    spout = opened(emitted=emitted)
    spout.keep([1], records(7))
    spout.row_failed(1, "a bolt failed its tuple")
    SparkSourceSpout.next_tuple(spout)  # its own has offsets committed, too
    letter = ["lines", 0, 7, b"k", b"to", 5, (("h", b"x"),), "a bolt failed its tuple", 1]
    assert emitted == [(letter, ("lines", 0, 7), "dead")]
    assert spout.committable() == {("lines", 0): 7}, "not before it is acked"
    spout.ack(("lines", 0, 7))
    assert spout.committable() == {}


@given(
    st.lists(st.lists(st.sampled_from(["acked", "kept", "kept, acked", "kept, failed"]), max_size=5), max_size=5),
    st.data(),
)
def test_what_may_be_committed_is_the_first_offset_that_is_not_done(batches, data) -> None:
    """Against the plainest oracle: the set of all offsets that were read and are not done."""
    spout = opened(builder().build())
    open_offsets, end = set(), {0: 0, 1: 0}
    for batch in batches:
        partition = data.draw(st.integers(0, 1))
        offsets = range(end[partition], end[partition] + len(batch))
        if not batch:
            continue
        rows = records(*offsets, partition=partition)
        spout.passed(spout.position(rows))
        end[partition] = offsets.stop
        kept = [at for at, fate in enumerate(batch) if fate != "acked"]
        roots = [partition * 1000 + offsets[at] for at in kept]
        spout.keep(roots, rows.take(pa.array(kept, pa.int64())))
        for at, root in zip(kept, roots, strict=True):
            if batch[at] == "kept, acked":
                spout.row_acked(root)
                continue
            open_offsets.add((partition, offsets[at]))
            if batch[at] == "kept, failed":
                spout.row_failed(root, "x")
        wanted = {
            ("lines", number): min([offset for of, offset in open_offsets if of == number], default=end[number])
            for number in end
            if end[number]
        }
        assert spout.committable() == wanted
