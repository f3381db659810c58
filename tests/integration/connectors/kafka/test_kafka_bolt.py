"""The Kafka bolt against a real broker."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from kafka_broker import records
from topologies import kafka_written

from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.streams.stream import StreamSpec
from storm_on_spark.connectors.kafka import FieldNameBasedTupleToKafkaMapper, FieldNameTopicSelector, PlainKafkaBolt
from storm_on_spark.connectors.kafka.java_classes import bolt_of, spout_of
from storm_on_spark.connectors.kafka.server import KafkaServer
from storm_on_spark.testing import BoltTester, SpoutTester, make_tuple, running_topology
from storm_on_spark.testing.plugin import kafka_server

__all__ = ["kafka_server"]

MAPPER = FieldNameBasedTupleToKafkaMapper("word", "count")
SOON = {"max.block.ms": 300, "request.timeout.ms": 1000, "delivery.timeout.ms": 1500, "bootstrap.timeout.ms": 300}


WORDS = [("to", None), ("be", "others"), ("über", "counts")]


def create(server: KafkaServer, *topics: str) -> None:
    with KafkaAdminClient(bootstrap_servers=server.bootstrap_servers) as admin:
        kinds = {name: {"num_partitions": 1, "replication_factor": 1} for name in topics}
        admin.create_topics(kinds, wait_for_metadata=True)


def pairs(server: KafkaServer, topic: str) -> list[tuple[bytes | None, bytes | None]]:
    return [(record.key, record.value) for record in records(server, topic)]


def bolt(server: KafkaServer, topic: str) -> PlainKafkaBolt:
    made = PlainKafkaBolt(server.bootstrap_servers).with_topic_selector(topic).with_tuple_to_kafka_mapper(MAPPER)
    return made.with_producer_properties(SOON)


def test_tuples_are_acked_once_their_records_are_in_the_topic(kafka_server: KafkaServer) -> None:
    create(kafka_server, "counts", "others")
    selector = FieldNameTopicSelector("topic", default="counts")
    with BoltTester(bolt(kafka_server, "counts").with_topic_selector(selector)) as tester:
        told = [make_tuple([word, "1", topic], ["word", "count", "topic"]) for word, topic in WORDS]
        tester.execute(*told)
        tester.tick()
        assert tester.collector.acked[: len(told)] == told
        assert not tester.collector.failed
    assert pairs(kafka_server, "counts") == [(b"to", b"1"), ("über".encode(), b"1")]
    assert pairs(kafka_server, "others") == [(b"be", b"1")]


def test_bolt_and_spout_of_java_objects_write_and_read(kafka_server: KafkaServer) -> None:
    create(kafka_server, "java")
    producer = {"bootstrap.servers": kafka_server.bootstrap_servers, "request.required.acks": "1"}
    written = [("a", "to be"), ("b", "or not")]
    with BoltTester(bolt_of([], {}, {"topic": "java", "kafka.broker.properties": producer})) as bench:
        bench.execute(*(make_tuple(list(record), ["key", "message"]) for record in written))
        assert len(bench.collector.acked) == len(written)
    consumer = {"kafka.consumer.properties": {"group.id": "java"}}
    streams = {"default": StreamSpec(Fields("value", "key"))}
    spout = spout_of([kafka_server.bootstrap_servers, "java"], streams, consumer)
    read: list[tuple[object, ...]] = []
    until = time.monotonic() + 30
    with SpoutTester(spout) as tester:
        while len(read) < len(written):
            assert time.monotonic() < until, read
            read += [emission.values for emission in tester.next_tuple()]
    assert read == [(value, key) for key, value in written]


def test_a_record_that_kafka_refuses_fails_alone(kafka_server: KafkaServer) -> None:
    with KafkaAdminClient(bootstrap_servers=kafka_server.bootstrap_servers) as admin:
        compacted = {"num_partitions": 2, "replication_factor": 1, "configs": {"cleanup.policy": "compact"}}
        admin.create_topics({"compacted": compacted}, wait_for_metadata=True)
    # A compacted topic takes no records without a key; the largest fits in no request.
    large = "x" * 2_000_000
    rows = [("a", "1"), (None, "2"), ("b", "3"), ("c", "4"), ("d", large), ("e", "5"), (None, "6"), ("f", "7")]
    with BoltTester(bolt(kafka_server, "compacted")) as tester:
        given = [make_tuple(list(row), ["word", "count"]) for row in rows]
        tester.execute(*given)
        bad = [given[1], given[4], given[6]]
        assert sorted(tester.collector.failed, key=given.index) == bad
        assert sorted(tester.collector.acked, key=given.index) == [tup for tup in given if tup not in bad]
        again = make_tuple(["g", "8"], ["word", "count"])
        tester.execute(again)
        assert tester.collector.acked[-1] is again
    assert sorted(pairs(kafka_server, "compacted")) == [
        (key.encode(), value.encode()) for key, value in [*rows, ("g", "8")] if key is not None and len(value) == 1
    ]


def test_what_can_not_be_written_fails_alone_with_the_reason(kafka_server: KafkaServer) -> None:
    create(kafka_server, "some")
    selector = FieldNameTopicSelector("topic")
    with BoltTester(bolt(kafka_server, "some").with_topic_selector(selector)) as tester:
        rows = [("a", "1", "some"), ("b", 2, "some"), ("c", "3", "not there"), ("d", "4", "no-topic"), ("e", "5", None)]
        given = [make_tuple(list(row), ["word", "count", "topic"]) for row in rows]
        tester.execute(*given)
        assert tester.collector.failed == given[1:4]
        assert sorted(tester.collector.acked, key=given.index) == [given[0], given[4]], "without a topic it is dropped"
        reasons = [str(error) for error in tester.collector.errors]
    assert len(reasons) == 3
    assert "value of a record is bytes, text or None, not 2 (int)" in reasons[0]
    assert "'not there' is not a topic's name" in reasons[1]
    assert pairs(kafka_server, "some") == [(b"a", b"1")]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[KafkaServer]:
    with KafkaServer(tmp_path / "kafka") as server:
        yield server


def test_nothing_is_lost_when_the_broker_is_killed_under_a_topology(broker: KafkaServer, spark_session) -> None:
    create(broker, "counts")
    total = 160
    conf = {"topology.profile": "latency", "topology.max.spout.pending": 40}
    with running_topology(kafka_written.make(total, bolt(broker, "counts")), conf=conf, spark=spark_session) as running:
        running.wait_until(lambda captured: len(captured.acked("words")) >= 40)
        broker.kill()
        running.wait_until(lambda captured: captured.failed("words"))
        broker.start()
        running.wait_until(lambda captured: len(captured.acked("words")) == total)
    written = Counter(key for key, _ in pairs(broker, "counts"))
    assert set(written) == {f"w{number}".encode() for number in range(total)}
