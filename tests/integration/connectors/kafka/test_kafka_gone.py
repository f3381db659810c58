"""Offsets without a record: marks of transactions, what retention has removed, and topics that were made again."""

from __future__ import annotations

import struct

import pytest
from kafka_broker import Kafka, read, until

from storm_on_spark.connectors.kafka import (
    KafkaSpoutError,
    PlainKafkaSpout,
    ProcessingGuarantee,
    clients,
)
from storm_on_spark.connectors.kafka.lag import Reading, lags
from storm_on_spark.testing import Emission, SpoutTester
from storm_on_spark.testing.plugin import kafka_server

__all__ = ["kafka_server"]


def values(emissions: list[Emission]) -> list[object]:
    return [emission.values[0] for emission in emissions]


def ack(tester: SpoutTester, emissions: list[Emission]) -> None:
    for emission in emissions:
        tester.ack(emission.message_id)


def is_of_the_new(emission: Emission) -> bool:
    """Whether a record is of a topic that was made again: its message id says how often that happened."""
    return len(emission.message_id) == 4


def restart(tester: SpoutTester) -> None:
    old = tester.spout
    tester.restart()
    old.close()


@pytest.mark.parametrize("guarantee", list(ProcessingGuarantee))
def test_the_lag_of_a_topic_with_transactions_reaches_zero(kafka: Kafka, guarantee: ProcessingGuarantee) -> None:
    topic = kafka.topic()
    kafka.transaction(topic, "a", "b")
    kafka.transaction(topic, "x", commit=False)
    config = kafka.config(topic).set_group_id(topic).set_prop("isolation.level", "read_committed")
    config = config.set_processing_guarantee(guarantee).build()
    with SpoutTester(PlainKafkaSpout(config)) as tester:
        found = read(tester, 2)
        assert values(found) == ["a", "b"]
        if guarantee is ProcessingGuarantee.AT_LEAST_ONCE:
            ack(tester, found)
        until(lambda: kafka.committed(topic, topic) == 5, tester.next_tuple)
    assert lags(Reading.of(config))[topic, 0].behind == 0


def test_what_was_passed_may_be_removed_before_a_restart_or_another_partition(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.transaction(topic, "a")
    kafka.transaction(topic, "x", commit=False)
    config = kafka.config(topic).set_group_id(topic).set_prop("isolation.level", "read_committed").build()
    with SpoutTester(PlainKafkaSpout(config)) as tester:
        ack(tester, read(tester, 1))
        until(lambda: tester.spout.offsets.committable() == {(topic, 0): 4}, tester.next_tuple)
        kafka.forget(topic, -1)
        kafka.grow(topic, 2)
        kafka.send(topic, "b", partition=1)
        assert values(read(tester, 1)) == ["b"]
        restart(tester)
        kafka.transaction(topic, "c")
        assert values(read(tester, 1)) == ["c"]


def test_records_that_were_read_are_emitted_though_retention_removes_them_and_a_partition_is_added(
    kafka: Kafka,
) -> None:
    topic = kafka.topic()
    kafka.send(topic, *map(str, range(5)))
    with SpoutTester(PlainKafkaSpout(kafka.config(topic).set_group_id(topic).build())) as tester:
        assert values(read(tester, 1)) == ["0"]
        kafka.forget(topic, -1)
        kafka.grow(topic, 2)
        until(lambda: (topic, 1) in tester.spout.offsets.partitions, tester.next_tuple)
        until(lambda: len(tester.collector.emitted) == 5, tester.next_tuple)


def test_a_pending_record_that_fails_after_it_was_removed_is_a_dead_letter(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.send(topic, "a", "b", "c")
    config = kafka.config(topic).set_group_id(topic).set_max_uncommitted_offsets(2)
    config = config.set_prop("auto.offset.reset", "earliest").set_dead_letter_stream("dead").build()
    with SpoutTester(PlainKafkaSpout(config)) as tester:
        (first,) = read(tester, 1)
        restart(tester)
        kafka.forget(topic, 2)
        until(lambda: tester.spout.offsets.partitions[topic, 0].position == 2, tester.next_tuple)
        tester.fail(first.message_id)
        (dead,) = read(tester, 1)
        assert (dead.stream, dead.values[-2]) == ("dead", "the record is no longer in Kafka")
        tester.ack(dead.message_id)
        assert values(read(tester, 1)) == ["c"]


@pytest.mark.parametrize("more", [2, 8])
@pytest.mark.parametrize("where", ["running", "restarted"])
def test_a_topic_that_was_made_again_is_read_as_it_is_said(
    kafka: Kafka, more: int, where: str, caplog: pytest.LogCaptureFixture
) -> None:
    topic = kafka.topic()
    kafka.send(topic, *(f"old{number}" for number in range(5)))
    config = kafka.config(topic).set_group_id(topic).set_prop("auto.offset.reset", "earliest")
    new = [f"new{number}" for number in range(more)]

    def make_again() -> None:
        kafka.make_again(topic)
        kafka.send(topic, *new)

    with SpoutTester(PlainKafkaSpout(config.build())) as tester:
        old = read(tester, 5)
        ack(tester, old[:-1])
        if where == "running":
            kafka.delete(topic)
            until(lambda: "no longer in Kafka; waiting" in caplog.text, tester.next_tuple)
            kafka.make(topic)
            kafka.send(topic, *new)
        else:
            make_again()
            restart(tester)
        # What was read by the old offsets before the spout looked at the topic comes once more, with all others.
        found = []
        until(lambda: len(found) >= more, lambda: found.extend(e for e in tester.next_tuple() if is_of_the_new(e)))
        assert values(found) == new
        # A tuple of the old topic is none of the new one.
        (tester.ack if where == "running" else tester.fail)(old[-1].message_id)
        assert tester.spout.offsets.partitions[topic, 0].pending == more
        ack(tester, found)
        until(lambda: kafka.committed(topic, topic) == more, tester.next_tuple)
        assert f"topic {topic} was deleted and created again" in caplog.text
        assert " records of" in caplog.text
    make_again()
    with SpoutTester(PlainKafkaSpout(config.set_prop("auto.offset.reset", "latest").build())) as tester:
        # Without the checkpoint; the broker has deleted the group's offsets with the topic.
        assert values(read(tester, more)) == new
        make_again()
        restart(tester)
        until(lambda: tester.spout.offsets.partitions[topic, 0].turn == 1, tester.next_tuple)
        kafka.send(topic, "later")
        assert values(read(tester, 1)) == ["later"]
    make_again()
    with SpoutTester(PlainKafkaSpout(config.set_prop("auto.offset.reset", "none").build())) as tester:
        read(tester, more)
        make_again()
        with pytest.raises(KafkaSpoutError, match=f"topic {topic} was deleted .*; set auto.offset.reset"):
            read(tester, 1)


def test_a_topic_that_was_made_again_may_have_fewer_partitions(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "_ANSWER_MS", 2_000)
    topic = kafka.topic(3)
    for partition in range(3):
        kafka.send(topic, "old", partition=partition)
    config = kafka.config(topic).set_group_id(topic).set_prop("auto.offset.reset", "earliest").build()
    with SpoutTester(PlainKafkaSpout(config)) as tester:
        ack(tester, read(tester, 3))
        kafka.make_again(topic)
        # Nothing of it can be committed any more, which must not keep the spout from hearing of the new topic.
        tester.spout.deactivate()
        kafka.send(topic, "new")
        assert values(read(tester, 1)) == ["new"]
        assert list(tester.spout.offsets.partitions) == [(topic, 0)]


def test_offsets_that_a_group_has_of_an_older_topic_do_not_count(
    kafka: Kafka, caplog: pytest.LogCaptureFixture
) -> None:
    topic = kafka.topic()
    kafka.send(topic, *map(str, range(5)))
    config = kafka.config(topic).set_group_id(topic)
    with SpoutTester(PlainKafkaSpout(config.build())) as tester:
        ack(tester, read(tester, 2))
        until(lambda: kafka.committed(topic, topic) == 2, tester.next_tuple)
    note = kafka.note(topic, topic)
    kafka.make_again(topic)
    kafka.send(topic, *map(str, range(5)))
    # As a spout that was late would.
    kafka.commit(topic, topic, 3, note)
    assert lags(Reading.of(config.build()))[topic, 0].behind == 5
    with SpoutTester(PlainKafkaSpout(config.build())) as tester:
        assert values(read(tester, 1)) == ["0"]
    assert f"topic {topic} was deleted and created again since offset 3" in caplog.text
    kafka.commit(topic, topic, 3, '{"topologyId": "of Storm"}')
    with SpoutTester(PlainKafkaSpout(config.build())) as tester:
        assert values(read(tester, 1)) == ["3"]


def test_a_topic_that_is_gone_holds_up_no_other(kafka: Kafka) -> None:
    gone, there = kafka.topic(), kafka.topic()
    kafka.send(gone, "a")
    kafka.send(there, "b")
    with SpoutTester(PlainKafkaSpout(kafka.config(gone, there).set_group_id(gone).build())) as tester:
        found = read(tester, 2)
        kafka.delete(gone)
        ack(tester, found)
        until(lambda: kafka.committed(gone, there) == 1, tester.next_tuple)
        kafka.send(there, "c")
        assert values(read(tester, 1)) == ["c"]


def test_keys_that_nobody_reads_may_be_anything(kafka: Kafka) -> None:
    topic = kafka.topic()
    for number in (1, 200, 3):
        kafka.send(topic, str(number), key=struct.pack(">q", number))

    def refuse(data: bytes) -> object:
        raise ValueError(data)

    config = kafka.config(topic).set_group_id(topic).set_key_deserializer(refuse).build()
    with SpoutTester(PlainKafkaSpout(config)) as tester:
        assert values(read(tester, 3)) == ["1", "200", "3"]


def test_a_topic_that_is_not_there_yet_hinders_no_start_without_a_checkpoint(kafka: Kafka) -> None:
    there, missing = kafka.topic(), "not-there-yet"
    spout = PlainKafkaSpout(kafka.config(there, missing).set_group_id(there).build())
    assert spout.committed_outside() == ""
    kafka.send(there, "a")
    kafka.commit(there, there, 1)
    assert spout.committed_outside() == f"consumer group {there} has committed offsets of {there} (1 partition)"
