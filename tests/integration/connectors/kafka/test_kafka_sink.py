"""`KafkaBolt`, which compiles to Spark's own sink, against a real broker."""

from __future__ import annotations

import json
import re
from collections import Counter

import psutil
import pytest
from kafka_broker import records
from processes import kill_group, killed, script
from topologies import kafka_numbers
from topologies.parts import Numbers
from waiting import eventually

from storm_on_spark import Fields, LocalCluster, SetupError, SinkContext, TopologyBuilder, TopologyFailedError
from storm_on_spark.connectors.kafka import FieldNameTopicSelector, KafkaBolt
from storm_on_spark.testing import BoltTester, ListSpout, make_tuple, run_topology, running_topology
from storm_on_spark.testing.plugin import kafka_server

__all__ = ["kafka_server"]


def headers(tup):
    return [("from", tup["key"]), ("empty", None)]


def test_records_are_written_as_told_in_the_order_of_tuples_and_what_is_none_fails_alone(
    nothing_left_behind, spark_session, kafka
):
    lines, others = kafka.topic(3), kafka.topic()
    rows = [(f"k{number % 5}", str(number), None) for number in range(200)]
    wrong = [("k1", 7, None), ("k1", "7", "no topic"), ("k1", "dropped", "")]
    builder = TopologyBuilder()
    given = [*rows, ("other", None, others), *wrong]
    builder.set_spout("rows", ListSpout(given, fields=["key", "message", "topic"]))
    selector = FieldNameTopicSelector("topic", default=lines)
    bolt = KafkaBolt(kafka.server.bootstrap_servers).with_headers(headers)
    bolt.with_topic_selector(lambda tup: None if tup["topic"] == "" else selector(tup))
    builder.set_bolt("kafka", bolt, 2).fields_grouping("rows", Fields("key"))
    captured = run_topology(builder.create_topology(), spark=spark_session, capture=[])

    assert (len(set(captured.acked())), set(captured.failed())) == (202, {201, 202})
    written = records(kafka.server, lines)
    assert {record.partition for record in written} > {0}
    for key in {row[0] for row in rows}:
        of_key = [record.value.decode() for record in written if record.key.decode() == key]
        assert of_key == [message for each, message, _ in rows if each == key]
    assert {record.headers[0] == ("from", record.key) for record in written} == {True}
    (tombstone,) = records(kafka.server, others)
    assert (tombstone.key, tombstone.value, tombstone.headers[1]) == (b"other", None, ("empty", None))


def test_what_is_wrong_with_topic_servers_or_settings_is_said_before_a_spout_opens(spark_session, kafka):
    servers = kafka.server.bootstrap_servers
    good = KafkaBolt(servers).with_topic_selector("not-there")
    unknown = KafkaBolt(servers).with_topic_selector("x").with_producer_properties({"no.such": 1})
    for bolt, words in ((good, "there is no such topic: create it first"), (unknown, "has no setting 'no.such'")):
        builder = TopologyBuilder()
        builder.set_spout("rows", Numbers(1))
        builder.set_bolt("kafka", bolt).shuffle_grouping("rows")
        with (
            pytest.raises(SetupError, match=f'bolt "kafka" can\'t write: .*{words}'),
            running_topology(builder.create_topology(), spark=spark_session),
        ):
            pass


def test_a_broker_that_does_not_answer_ends_the_topology_and_a_restart_goes_on_with_the_same_micro_batch(
    nothing_left_behind, spark_session, kafka, tmp_path
):
    topic, total = kafka.topic(), 120
    soon = {"max.block.ms": 500, "request.timeout.ms": 500, "delivery.timeout.ms": 1000}
    conf = {"topology.batch.max.tuples": 20, "topology.checkpoint.dir": str(tmp_path / "checkpoint")}
    bolt = KafkaBolt(kafka.server.bootstrap_servers).with_topic_selector(topic).with_producer_properties(soon)
    bolt.with_tuple_to_kafka_mapper(kafka_numbers.as_text)
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(total, burst=5))
    builder.set_bolt("kafka", bolt, 2).shuffle_grouping("numbers")
    topology = builder.create_topology()
    broker = psutil.Process(kafka.server.pid)
    try:
        with running_topology(topology, conf=conf, spark=spark_session, capture=[]) as running:
            running.wait_until(lambda captured: len(captured.acked()) >= 20)
            broker.suspend()
            eventually(lambda: not running.query.isActive, "the end")
            failure = str(running.query.failure)
            acked = set(running.captured().acked())
    finally:
        broker.resume()
    assert re.search(r'bolt "kafka" could not write micro-batch .*: \d+ records were not written: \w+', failure)
    assert 20 <= len(acked) < total
    assert acked <= {int(record.value) for record in records(kafka.server, topic)}, "acked is written"
    captured = run_topology(topology, conf=conf, spark=spark_session, capture=[])
    assert set(captured.acked()) == set(range(total)) - acked
    assert {int(record.value) for record in records(kafka.server, topic)} == set(range(total))


def test_a_record_that_kafka_refuses_is_a_dead_letter_and_the_others_are_written_in_their_order(
    nothing_left_behind, spark_session, kafka, tmp_path
):
    topic = kafka.topic(2, cleanup_policy="compact")
    rows = [(f"k{number % 5}", str(number)) for number in range(1000)]
    rows[577] = (None, "577")  # the broker wants a key
    rows[900] = ("k0", "x" * 2_000_000)  # the client refuses it
    bolt = KafkaBolt(kafka.server.bootstrap_servers).with_topic_selector(topic)
    builder = TopologyBuilder()
    builder.set_spout("rows", ListSpout(rows, fields=["key", "message"]))
    builder.set_bolt("kafka", bolt, 2).fields_grouping("rows", Fields("key"))
    topology = builder.create_topology()
    conf = {"topology.checkpoint.dir": str(tmp_path / "checkpoint")}
    message = r"Kafka refuses a row: \w+Exception: .*\(the largest of \d+ is shown\).*with_dead_letters\(FOLDER\)"
    with pytest.raises(TopologyFailedError, match=message):
        run_topology(topology, conf=conf, spark=spark_session, capture=[])

    bolt.with_dead_letters(tmp_path / "refused")
    captured = run_topology(topology, conf=conf, spark=spark_session, capture=[])
    assert (captured.info.acked, captured.info.failed) == (1000, 0), "what is in a file is done"
    taken = [row for number, row in enumerate(rows) if number not in (577, 900)]
    written = records(kafka.server, topic)
    for key in {key for key, _ in taken}:
        of_key = [record.value.decode() for record in written if record.key.decode() == key]
        values = [value for each, value in taken if each == key]
        assert of_key[-len(values) :] == values, "what Spark had written before is there twice"
    refused = [json.loads(line) for file in (tmp_path / "refused").iterdir() for line in file.read_text().splitlines()]
    assert sorted((each["row"]["key"] or "", each["row"]["value"][:3]) for each in refused) == [
        ("", "577"),
        ("k0", "xxx"),
    ]
    kinds = {each["error"].split(":")[0] for each in refused}
    assert kinds == {"InvalidRecordException", "RecordTooLargeException"}
    assert {error.component for error in captured.info.errors} == {"kafka"}
    assert {"Kafka refuses" in error.message for error in captured.info.errors} == {True}


def test_a_micro_batch_with_a_refused_record_that_is_written_again_has_one_dead_letter(spark_session, kafka, tmp_path):
    topic, reported = kafka.topic(), []
    bolt = KafkaBolt(kafka.server.bootstrap_servers).with_topic_selector(topic).with_dead_letters(tmp_path / "refused")
    again = SinkContext(spark_session, "words-1/out", 7, plan=3, report=reported.append)
    bolt.open_sink(again)
    with BoltTester(bolt) as tester:
        rows = [("a", "1"), ("b", "x" * 2_000_000), ("c", "3")]
        tester.execute(*(make_tuple(list(row), ["key", "message"]) for row in rows))
        handed = tester.bolt.take_written()
    for _ in range(2):  # the driver died after the first, before the commit
        bolt.write([handed], again)
    assert {record.key for record in records(kafka.server, topic)} == {b"a", b"c"}
    (file,) = (tmp_path / "refused").iterdir()
    assert [json.loads(line)["row"]["key"] for line in file.read_text().splitlines()] == ["b"]
    assert ["Kafka refuses 1 row: RecordTooLargeException" in said for said in reported] == [True, True]


@pytest.mark.slow
def test_after_a_kill_between_write_and_commit_that_micro_batch_alone_is_in_the_topic_twice(
    spark_session, kafka, tmp_path
):
    topic, servers = kafka.topic(2), kafka.server.bootstrap_servers
    arguments = [servers, topic, str(tmp_path)]
    with script(tmp_path / "tmp", "-m", "topologies.kafka_numbers", *arguments) as process:
        eventually(lambda: (tmp_path / "halted").exists() or process.poll() is not None, "the third write")
        kill_group(process)
        assert killed(process), "the topology ended before the fault"
    before = Counter(int(record.value) for record in records(kafka.server, topic))
    assert max(before.values()) == 1

    with LocalCluster(spark_session) as cluster:
        cluster.submit_topology(
            "kafka-numbers", kafka_numbers.conf_of(tmp_path), kafka_numbers.kafka_numbers(*arguments)
        )
        assert cluster.await_completion("kafka-numbers", 120)
        info = cluster.get_topology_info("kafka-numbers")
    assert (info.status, info.failed) == ("COMPLETED", 0)
    found = Counter(int(record.value) for record in records(kafka.server, topic))
    assert set(found) == set(range(kafka_numbers.COUNT)), "none is lost"
    twice = {number for number, times in found.items() if times > 1}
    assert max(found.values()) == 2
    assert twice < set(before), "only what was written before the kill"
    batches = [
        int(note.name.split("-")[1]) for note in sorted(tmp_path.glob("written-*"), key=lambda n: n.name.split("-")[2])
    ]
    assert batches[2] == batches[3], "the third micro-batch was executed again"
    assert len(set(batches)) == len(batches) - 1
