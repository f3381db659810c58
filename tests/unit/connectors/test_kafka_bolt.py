"""The Kafka bolt without a broker: what is refused with which words, and what becomes of tuples."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import cloudpickle
import pytest

from storm_on_spark import ConfigError
from storm_on_spark.connectors.kafka import KafkaBolt, PlainKafkaBolt
from storm_on_spark.runtime.processes.server import free_port
from storm_on_spark.testing import BoltTester, make_tuple


def bolt() -> PlainKafkaBolt:
    return PlainKafkaBolt("127.0.0.1:9092").with_topic_selector("counts")


def native(properties: dict[str, object]) -> KafkaBolt:
    return KafkaBolt("127.0.0.1:9092").with_producer_properties(properties)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: PlainKafkaBolt("a"), "host:port, separated by commas"),
        (lambda: bolt().with_topic_selector("no blank"), "'no blank' is not a topic's name"),
        (lambda: bolt().with_topic_selector(3), "3 is not a topic's name"),
        (lambda: bolt().with_tuple_to_kafka_mapper("word"), "a mapper is a function of a tuple"),
        (lambda: bolt().with_producer_properties({"no.such": 1}), "no setting 'no.such' for a producer"),
        (lambda: bolt().with_producer_properties({"value.serializer": str}), "returns bytes or text"),
        (lambda: bolt().set_fire_and_forget(1), "fire_and_forget must be a bool"),
        (lambda: bolt().with_headers([("a", b"b")]), "headers are made by a function of a tuple"),
        (lambda: KafkaBolt("a"), "host:port, separated by commas"),
        (lambda: native({"value.serializer": "x"}), "returns bytes or text"),
        (lambda: native({"transactional_id": "x"}), "a transaction can't span the attempts"),
        (lambda: native({"sasl_plain_username": "ann", "sasl_mechanism": "GSSAPI"}), "belongs to the SASL mechanisms"),
    ],
)
def test_what_makes_no_sense_is_refused(build: Callable[[], object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        build()


def test_a_bolt_that_was_not_told_where_to_write_says_so() -> None:
    with pytest.raises(ConfigError, match="with_topic_selector"):
        BoltTester(PlainKafkaBolt("127.0.0.1:9092")).execute(make_tuple([1], ["n"]))


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ([("a", 1)], "the header of a record is bytes, text or None, not 1"),
        (["a"], "a header of a record is a tuple of name and value, not 'a'"),
    ],
)
def test_a_tuple_whose_headers_are_none_fails(headers: list[object], words: str) -> None:
    made = KafkaBolt("127.0.0.1:9092").with_topic_selector("counts").with_headers(lambda tup: headers)
    with BoltTester(made) as tester:
        tester.execute(make_tuple(["m"], ["message"]))
        assert len(tester.collector.failed) == 1
        assert words in str(tester.collector.errors[0])


def test_it_can_be_sent_to_workers() -> None:
    made = cloudpickle.loads(cloudpickle.dumps(bolt()))
    assert isinstance(made, PlainKafkaBolt)


ALONE = """
import sys
from storm_on_spark.connectors.kafka import FieldNameBasedTupleToKafkaMapper, PlainKafkaBolt
from storm_on_spark.testing import BoltTester, make_tuple
bolt = PlainKafkaBolt(f"127.0.0.1:{sys.argv[1]}").with_topic_selector("counts")
bolt.with_producer_properties({"bootstrap.timeout.ms": 200, "max.block.ms": 200})
bolt.with_tuple_to_kafka_mapper(FieldNameBasedTupleToKafkaMapper("key", "n"))
tuples = [make_tuple([str(number)], ["n"]) for number in range(500)]
with BoltTester(bolt) as tester:
    tester.execute(*tuples)
    assert tester.collector.failed == tuples
    (reason,) = tester.collector.errors
print(reason)
"""


def test_without_a_broker_all_tuples_fail_and_the_wait_is_for_the_first() -> None:
    # In its own process: kafka-python leaves the sockets of refused connections to the garbage collector.
    command = [sys.executable, "-c", ALONE, str(free_port())]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert "500 records were not written" in done.stdout, done.stderr
