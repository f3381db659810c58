"""Writers beside aborted transactions, with keys that are no text, and in topics that are made again under them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kafka_broker import Kafka, read, records, until

from storm_on_spark import SinkContext
from storm_on_spark.connectors.kafka import FieldNameBasedTupleToKafkaMapper, KafkaBolt, PlainKafkaBolt
from storm_on_spark.testing import BoltTester, SpoutTester, make_tuple
from storm_on_spark.testing.plugin import kafka_server
from storm_on_spark.xd.expressions import parse_expression
from storm_on_spark.xd.modules.outside.kafka import SINK, SOURCE

__all__ = ["kafka_server"]

Write = Callable[[str, Any, str], None]
"""Writes a record in its own micro-batch: to a topic, with key and value; again until it is done."""


@pytest.fixture(params=["plain", "spark"])
def write(request: pytest.FixtureRequest, kafka: Kafka, spark_session: Any) -> Iterator[Write]:
    """Of one bolt, which continues from call to call."""
    kinds = {"plain": PlainKafkaBolt, "spark": KafkaBolt}
    bolt = kinds[request.param](kafka.server.bootstrap_servers).with_topic_selector(lambda tup: tup["topic"])
    bolt.with_tuple_to_kafka_mapper(FieldNameBasedTupleToKafkaMapper())
    tester = BoltTester(bolt)
    if request.param == "spark":
        bolt.open_sink(SinkContext(spark_session, "words-1/out"))

    def written(topic: str, key: Any, value: str) -> None:
        given = make_tuple([topic, key, value], ["topic", "key", "message"])
        until(lambda: given in tester.collector.acked, lambda: tester.execute(given))
        if request.param == "spark":
            bolt.write([tester.bolt.take_written()], SinkContext(spark_session, "words-1/out", 1))

    with tester:
        yield written


def test_a_bolt_goes_on_in_a_topic_that_was_made_again_while_it_runs(kafka: Kafka, write: Write) -> None:
    topic = kafka.topic()
    for value in "abc":
        write(topic, None, value)
    kafka.make_again(topic)
    for value in "de":
        write(topic, None, value)
    assert [record.value for record in records(kafka.server, topic)][-2:] == [b"d", b"e"]


def test_a_bolt_writes_keys_that_are_no_text_beside_aborted_records(kafka: Kafka, write: Write) -> None:
    topic = kafka.topic()
    kafka.transaction(topic, "kept")
    kafka.transaction(topic, "aborted", commit=False)
    write(topic, b"\x80\xff", "a")
    kafka.transaction(topic, "aborted", commit=False)
    write(topic, b"", "b")
    found = [(record.key, record.value) for record in records(kafka.server, topic, isolation_level="read_committed")]
    assert found == [(None, b"kept"), (b"\x80\xff", b"a"), (b"", b"b")]


def test_a_stream_reads_and_writes_keys_that_are_no_text_and_passes_marks_of_transactions(kafka: Kafka) -> None:
    topic, out, servers = kafka.topic(), kafka.topic(), kafka.server.bootstrap_servers
    kafka.transaction(topic, "first")
    kafka.send(topic, "second", key=b"k\x80")
    source = SOURCE.component(servers, topic, topic, "earliest")
    key = parse_expression("headers['kafka_key']")
    with SpoutTester(source) as spout, BoltTester(SINK.component(servers, out, key)) as sink:
        for each in read(spout, 2):
            given = make_tuple(list(each.values), ["payload", "headers"])
            until(lambda given=given: given in sink.collector.acked, lambda given=given: sink.execute(given))
            spout.ack(each.message_id)
        kafka.make_again(out)
        again = make_tuple(["third", {"kafka_key": "k"}], ["payload", "headers"])
        until(lambda: again in sink.collector.acked, lambda: sink.execute(again))
    found = [(record.key, record.value) for record in records(kafka.server, out)]
    assert found[-1] == (b"k", b"third")
    other = kafka.topic()
    with BoltTester(SINK.component(servers, other, key)) as sink:
        sink.execute(make_tuple(["second", {"kafka_key": "k\ufffd"}], ["payload", "headers"]))
    assert [record.key for record in records(kafka.server, other)] == ["k\ufffd".encode()]
