"""`KafkaSpout`, which compiles to Spark's own source, against a real broker."""

from __future__ import annotations

import re
import time
from contextlib import closing

import pytest
from kafka import KafkaConsumer, TopicPartition
from kafka.structs import OffsetAndMetadata
from kafka_broker import Kafka
from waiting import eventually

from storm_on_spark import (
    BaseBasicBolt,
    FailedException,
    Fields,
    TopologyBuilder,
    TopologyFailedError,
    compile_topology,
)
from storm_on_spark.connectors.kafka import (
    ByTopicRecordTranslator,
    DefaultRecordTranslator,
    FirstPollOffsetStrategy,
    KafkaSpout,
    KafkaSpoutConfigBuilder,
    KafkaSpoutError,
    ProcessingGuarantee,
    RetryBackoff,
    SimpleRecordTranslator,
)
from storm_on_spark.testing import running_topology
from storm_on_spark.testing.plugin import kafka_server

__all__ = ["kafka_server"]


def config(kafka: Kafka, *topics: str | re.Pattern[str], group: str = "native") -> KafkaSpoutConfigBuilder:
    return (
        kafka.config(*topics)
        .set_group_id(group)
        .set_partition_refresh_period_ms(2_000)
        .set_record_translator(SimpleRecordTranslator(whole, Fields("topic", "offset", "value", "key", "headers")))
    )


def whole(record):
    if record.value == "!":
        raise ValueError("not a word")
    assert abs(time.time() - record.timestamp / 1000) < 3600, "milliseconds"
    return [record.topic, record.offset, record.value, record.key, record.headers]


class Picky(BaseBasicBolt):
    """Fails "later" once and "never" always."""

    def prepare(self, conf, context):
        self.tried = set()

    def execute(self, tup, collector):
        if tup["value"] == "never" or (tup["value"] == "later" and tup["value"] not in self.tried):
            self.tried.add(tup["value"])
            raise FailedException("not now")


def test_records_are_committed_once_done_retried_alone_and_given_up_through_restarts(
    nothing_left_behind, spark_session, kafka, tmp_path
) -> None:
    topic = kafka.topic(2)
    kafka.send(topic, "to", "later", "never", "!", key=b"k", headers=[("h", b"x")])
    kafka.send(topic, "be", partition=1)

    def run(*values: str, committed: int):
        builder = TopologyBuilder()
        retry = RetryBackoff(1, 1, max_retries=1)
        spout = config(kafka, topic).set_retry(retry).set_dead_letter_stream("dead").build()
        builder.set_spout("kafka", KafkaSpout(spout))
        builder.set_bolt("picky", Picky()).shuffle_grouping("kafka")
        builder.set_bolt("dead", Seen()).shuffle_grouping("kafka", "dead")
        conf = {"topology.checkpoint.dir": str(tmp_path / "checkpoint")}
        with running_topology(builder.create_topology(), conf=conf, spark=spark_session) as running:
            kafka.send(topic, *values)
            consumer = KafkaConsumer(bootstrap_servers=kafka.server.bootstrap_servers, group_id="native")
            with closing(consumer):
                place = TopicPartition(topic, 0)
                eventually(lambda: consumer.committed(place) == committed, "the offset that is committed")
            return running.captured()

    first = run("or", committed=5)
    emitted = sorted(first.values("kafka"))
    again = [(topic, 1, "later"), (topic, 2, "never")]
    once = [(topic, 0, "be"), (topic, 0, "to"), (topic, 4, "or")]
    assert sorted(values[:3] for values in emitted) == sorted([*once, *again, *again]), "each failed one twice"
    assert {values[3:] for values in emitted if values[2] == "to"} == {("k", (("h", b"x"),))}
    assert kafka.committed("native", topic, 1) == 1
    dead = {values[2]: values for values in first.values("kafka", "dead")}
    assert {offset: (values[4], values[-1]) for offset, values in dead.items()} == {2: (b"never", 2), 3: (b"!", 1)}
    assert dead[3][-2] == "no tuple can be made of it: ValueError: not a word"

    from_checkpoint = run("not", committed=6).values("kafka")
    assert [values[2] for values in from_checkpoint] == ["not"]


class Seen(BaseBasicBolt):
    def execute(self, tup, collector): ...


def test_the_list_of_headers_is_never_null_for_that_would_take_thirty_times_as_long(spark_session, kafka) -> None:
    topic = kafka.topic(1)
    [headers] = KafkaSpout(config(kafka, topic).build()).read(spark_session).select("headers").schema
    assert not headers.nullable


def test_strategies_patterns_streams_by_topic_and_untracked_records(
    nothing_left_behind, spark_session, kafka, tmp_path
) -> None:
    lines, clicks = kafka.topic(), kafka.topic()
    kafka.send(lines, "old")
    kafka.send(lines, None, key=b"k")
    kafka.send(clicks, "click")
    by_topic = ByTopicRecordTranslator(
        SimpleRecordTranslator(lambda record: None if record.value is None else [record.value], Fields("value"))
    ).for_topic(clicks, SimpleRecordTranslator(lambda record: [record.value, 1], Fields("page", "n"), "clicks"))
    consumer = KafkaConsumer(bootstrap_servers=kafka.server.bootstrap_servers, group_id="was here")
    with closing(consumer):
        consumer.commit({TopicPartition(lines, 0): OffsetAndMetadata(1, "", -1)})
    time.sleep(0.01)
    between = int(time.time() * 1000)
    by = FirstPollOffsetStrategy
    spouts = {
        "earliest": config(kafka, lines, clicks)
        .set_first_poll_offset_strategy(by.EARLIEST)
        .set_record_translator(by_topic)
        .set_emit_null_tuples(True),
        "latest": config(kafka, lines, group="latest").set_first_poll_offset_strategy(by.LATEST),
        "uncommitted": config(kafka, lines, group="new").set_first_poll_offset_strategy(by.UNCOMMITTED_LATEST),
        "committed": config(kafka, lines, group="was here"),
        "timed": config(kafka, lines, group="timed")
        .set_first_poll_offset_strategy(by.TIMESTAMP)
        .set_start_timestamp(between),
        "pattern": config(kafka, re.compile(f"{lines[:-1].upper()}[{lines[-1]}]", re.IGNORECASE), group="pattern")
        .set_processing_guarantee(ProcessingGuarantee.NO_GUARANTEE)
        .set_record_translator(SimpleRecordTranslator(lambda record: [record.value], Fields("value"))),
    }
    builder = TopologyBuilder()
    for name, given in spouts.items():
        builder.set_spout(name, KafkaSpout(given.build()))
    with running_topology(builder.create_topology(), spark=spark_session) as running:
        eventually(lambda: len(running.captured().values("pattern")) == 2, "what was there")
        kafka.send(lines, "new")

        def seen(name):
            return running.captured().values(name)

        for name in ("latest", "uncommitted", "timed"):
            eventually(lambda name=name: seen(name), name)
        eventually(lambda: len(seen("earliest")) == 3, "all values")
        eventually(lambda: len(seen("committed")) == 2, "what the group had not committed")
        captured = running.captured()
    assert [seen_by for name in ("latest", "uncommitted", "timed") for seen_by in captured.values(name)] == [
        (lines, 2, "new", None, ())
    ] * 3
    assert sorted(captured.values("earliest"), key=str) == [("new",), ("old",), (None,)]
    assert sorted(values[1:3] for values in captured.values("committed")) == [(1, None), (2, "new")]
    assert captured.values("earliest", "clicks") == [("click", 1)]
    assert sorted(captured.values("pattern"), key=str) == [("new",), ("old",), (None,)]
    assert captured.acked("pattern") == []


def test_records_that_kafka_has_deleted_end_the_topology_or_are_passed_over(
    nothing_left_behind, spark_session, kafka, tmp_path
) -> None:
    topic = kafka.topic()
    conf = {"topology.checkpoint.dir": str(tmp_path / "checkpoint")}

    def run(count: int, reset: str):
        builder = TopologyBuilder()
        builder.set_spout("kafka", KafkaSpout(config(kafka, topic).set_prop("auto.offset.reset", reset).build()))
        with running_topology(builder.create_topology(), conf=conf, spark=spark_session) as running:
            running.wait_until(lambda captured: len(captured.values("kafka")) == count)
            return [values[2] for values in running.captured().values("kafka")]

    kafka.send(topic, "a")
    assert run(1, "none") == ["a"]
    kafka.send(topic, "b", "c")
    kafka.forget(topic, 2)
    with pytest.raises(
        TopologyFailedError, match=f"OffsetOutOfRangeException: .* out of range for partition {topic}-0"
    ):
        run(1, "none")
    assert run(1, "earliest") == ["c"]


def test_without_a_topic_or_a_broker_the_topology_does_not_start_and_says_why(spark_session, kafka) -> None:
    builder = TopologyBuilder()
    builder.set_spout("kafka", KafkaSpout(config(kafka, "missing").build()))
    with (
        pytest.raises(KafkaSpoutError, match="has no topic missing: create it first"),
        running_topology(builder.create_topology(), spark=spark_session),
    ):
        pass


def test_a_topic_that_was_made_again_ends_the_topology_and_its_old_offsets_count_no_more(
    nothing_left_behind, spark_session, kafka, tmp_path
) -> None:
    topic = kafka.topic()
    kafka.send(topic, "a", "b", "c")

    def topology():
        builder = TopologyBuilder()
        made = config(kafka, topic, group=topic).set_prop("auto.offset.reset", "earliest")
        builder.set_spout("kafka", KafkaSpout(made.build()))
        return builder.create_topology()

    def conf(name: str) -> dict[str, str]:
        return {"topology.checkpoint.dir": str(tmp_path / name)}

    with running_topology(topology(), conf=conf("old"), spark=spark_session) as running:
        running.wait_until(lambda captured: len(captured.values("kafka")) == 3)
        eventually(lambda: kafka.committed(topic, topic) == 3 and kafka.note(topic, topic), "the id that is committed")
        # The id is saved with the next micro-batch.
        kafka.send(topic, "d")
        running.wait_until(lambda captured: len(captured.values("kafka")) == 4)
        eventually(lambda: kafka.committed(topic, topic) == 4, "the offset that is committed")
    note = kafka.note(topic, topic)
    kafka.make_again(topic)
    kafka.send(topic, *"ABCDE")
    # As a topology that was late would.
    kafka.commit(topic, topic, 3, note)
    with (
        pytest.raises(TopologyFailedError, match=f"topic {topic} was deleted and created again, and Spark's source"),
        running_topology(topology(), conf=conf("old"), spark=spark_session) as running,
    ):
        running.wait_until(lambda captured: False)
    with running_topology(topology(), conf=conf("new"), spark=spark_session) as running:
        running.wait_until(lambda captured: len(captured.values("kafka")) == 5)
        assert {values[2] for values in running.captured().values("kafka")} == set("ABCDE")


@pytest.mark.parametrize("profile", ["latency", "realtime"])
def test_keys_and_values_that_are_no_text_are_bytes_and_aborted_records_are_left_out(
    nothing_left_behind, spark_session, kafka, profile
) -> None:
    topic = kafka.topic()
    kafka.transaction(topic, "a")
    kafka.transaction(topic, "x", commit=False)
    kafka.send_bytes(topic, b"\x80", b"\xff\xfe", [("h", b"")])
    builder = TopologyBuilder()
    made = config(kafka, topic, group=topic).set_prop("isolation.level", "read_committed")
    builder.set_spout("translated", KafkaSpout(made.build()))
    plain = made.set_group_id(f"{topic}-columns").set_record_translator(DefaultRecordTranslator())
    builder.set_spout("columns", KafkaSpout(plain.build()))
    conf = {"topology.profile": profile}
    with running_topology(builder.create_topology(), conf=conf, spark=spark_session) as running:
        captured = running.wait_until(
            lambda found: len(found.values("translated")) == len(found.values("columns")) == 2, 60
        )
    assert sorted(captured.values("translated"))[0][2:] == ("a", None, ())
    assert sorted(captured.values("translated"))[1][2:] == (b"\xff\xfe", b"\x80", (("h", b""),))
    assert [values[3:] for values in sorted(captured.values("columns"))] == [(None, "a"), (b"\x80", b"\xff\xfe")]


def test_a_spout_that_continues_inactive_after_a_crash_reads_once_it_is_active(
    nothing_left_behind, spark_session, kafka, tmp_path
) -> None:
    topic, commits = kafka.topic(), tmp_path / "checkpoint" / "commits"
    builder = TopologyBuilder()
    builder.set_spout("kafka", KafkaSpout(config(kafka, topic, group=topic).build()))
    builder.set_bolt("seen", Seen()).shuffle_grouping("kafka")
    compiled = compile_topology(builder.create_topology())
    kafka.send(topic, "a")
    query = compiled.start(spark_session, "inactive", commits.parent)
    try:
        eventually(lambda: query.status_info().acked == 1, "the first record")
        eventually(lambda: list(commits.glob("[0-9]*")), "its commit")
    finally:
        query.stop()
    # As if the driver had been killed before: the last micro-batch runs again, and its source is held at once.
    last = max(commits.glob("[0-9]*"), key=lambda path: int(path.name))
    last.unlink()
    last.with_name(f".{last.name}.crc").unlink(missing_ok=True)
    query = compiled.start(spark_session, "inactive", commits.parent, active=False)
    try:
        eventually(last.exists, "the last micro-batch again")
        kafka.send(topic, "b")
        query.activate()
        eventually(lambda: query.failure is not None or kafka.committed(topic, topic) == 2, "the next record")
        assert query.failure is None
    finally:
        query.stop()
