"""Unclean elections: a replica leads that had missed records, so a log is cut off and continues with others."""

from __future__ import annotations

import contextlib
import logging
import uuid
from collections.abc import Iterator

import pytest
from kafka_broker import read, until
from replicas import Replicas, replicas

from storm_on_spark.connectors.kafka import KafkaSpoutError, PlainKafkaSpout
from storm_on_spark.connectors.kafka.lag import Reading, lags
from storm_on_spark.testing import SpoutTester
from storm_on_spark.xd.bus.journal import Message, Record
from storm_on_spark.xd.bus.kafka import Clients, KafkaBus, Seals
from storm_on_spark.xd.bus.port import ChannelFeed, ModuleFeed, Place, Port
from storm_on_spark.xd.dsl import Channel

pytestmark = [pytest.mark.integration, pytest.mark.slow]

QUEUE = Channel("queue", "orders")


@pytest.fixture(scope="module")
def brokers() -> Iterator[Replicas]:
    # Its records hold the sockets that are refused.
    logging.getLogger("kafka").setLevel(logging.CRITICAL + 1)
    with replicas() as found:
        yield found
    logging.getLogger("kafka").setLevel(logging.NOTSET)


def test_a_spout_goes_on_as_auto_offset_reset_says_and_its_lag_reaches_zero(
    brokers: Replicas, caplog: pytest.LogCaptureFixture
) -> None:
    kafka, resets, testers = brokers.kafka, ("earliest", "latest", "none"), {}
    brokers.make("cut")
    try:
        for reset in resets:
            config = kafka.config("cut").set_group_id(reset).set_prop("auto.offset.reset", reset).build()
            testers[reset] = SpoutTester(PlainKafkaSpout(config)), config
        brokers.lose_follower("cut")
        kafka.send("cut", "a", "lost", "lost too")
        for tester, _ in testers.values():
            for emission in read(tester, 3):
                tester.ack(emission.message_id)
        brokers.follower_leads("cut")
        kafka.send("cut", *map(str, range(5)))
        for reset, expected in (("earliest", [str(number) for number in range(5)]), ("latest", [])):
            tester, config = testers[reset]
            again: list[object] = []

            def step() -> None:
                for emission in tester.next_tuple():  # noqa: B023 # called at once
                    again.append(emission.values[0])  # noqa: B023 # called at once
                    tester.ack(emission.message_id)  # noqa: B023 # called at once

            until(lambda: kafka.committed(reset, "cut") == 5, step)  # noqa: B023 # called at once
            assert again == expected
            assert lags(Reading.of(config))["cut", 0].behind == 0
            assert f"offset 3 is not in Kafka (any more); continuing at the {reset}" in caplog.text
        with pytest.raises(KafkaSpoutError, match=r"offset 3 is not in Kafka .*; set auto.offset.reset"):
            read(testers["none"][0], 1)
    finally:
        for tester, _ in testers.values():
            tester.spout.close()


@pytest.mark.parametrize(
    "passed",
    [pytest.param(False, id="at a record", marks=pytest.mark.soak), pytest.param(True, id="behind an aborted one")],
)
def test_a_spout_that_did_not_run_meanwhile_notices_after_its_restart(
    brokers: Replicas, caplog: pytest.LogCaptureFixture, passed: bool
) -> None:
    """The new leader has more records than were read, so the offset to read next is there."""
    kafka, topic = brokers.kafka, f"cut-meanwhile-{passed}"
    brokers.make(topic)
    config = kafka.config(topic).set_group_id(topic).set_prop("auto.offset.reset", "earliest")
    with SpoutTester(PlainKafkaSpout(config.set_prop("isolation.level", "read_committed").build())) as tester:
        brokers.lose_follower(topic)
        kafka.send(topic, "a", "lost")
        if passed:
            kafka.transaction(topic, "aborted", commit=False)
        for emission in read(tester, 2):
            tester.ack(emission.message_id)
        position = 2 + 2 * passed  # the record, and the mark of its end
        until(lambda: tester.spout.offsets.committable() == {(topic, 0): position}, tester.next_tuple)
        tester.spout.close()
        brokers.follower_leads(topic)
        kafka.send(topic, *map(str, range(6)))

        tester.restart()

        assert [emission.values[0] for emission in read(tester, 6)] == [str(number) for number in range(6)]
    assert f"offset {position} is not in Kafka (any more); continuing at the earliest" in caplog.text


def test_the_bus_goes_on_where_the_logs_part(brokers: Replicas, caplog: pytest.LogCaptureFixture) -> None:
    clients = Clients((brokers.kafka.server.bootstrap_servers,), {})
    bus = KafkaBus(clients, Seals(uuid.uuid4().bytes * 2), replication=1, channel_partitions=1, most_bytes=1 << 20)
    source = Place("a-1-61", "time", readers=("a-1-61.log.1",))
    log = Place("a-1-61", "log", input=ModuleFeed("a-1-61", "time"))
    sender, file = Place("q-1-71", "time", output=QUEUE), Place("q-1-71", "file", input=ChannelFeed(QUEUE))
    topics = [bus.names.output("a-1-61", "time"), bus.names.channel(QUEUE)]
    states = [bus.names.state(each.stream, each.label) for each in (source, log, sender, file)]
    brokers.make(*topics, beside=states)

    def send(*payloads: int) -> None:
        for place in (source, sender):
            # Of its own, as in a container after Kafka has not answered in time.
            with contextlib.closing(bus.port(place)) as port:
                port.open()
                for payload in payloads:
                    port.commit(Record((Message(payload, {}),), {}, (None,), (), "1x1"), {})

    readers = [bus.port(place) for place in (log, file)]
    try:
        for reader in readers:
            reader.open()
        send(0)
        assert [take(reader, 1) for reader in readers] == [[0], [0]]
        brokers.lose_follower(*topics)
        send(1, 2)
        assert [take(reader, 2) for reader in readers] == [[1, 2], [1, 2]]
        brokers.follower_leads(*topics)
        send(*range(10, 20))
        assert [take(reader, 10) for reader in readers] == [list(range(10, 20))] * 2
        assert all(f"{topic}/0 had records to " in caplog.text for topic in topics)
    finally:
        for reader in readers:
            reader.close()
        bus.close()


def take(port: Port, count: int) -> list[int]:
    """Reads until so many messages have come, in steps that are committed."""
    found: list[int] = []

    def step() -> None:
        inputs = list(port.next(100))
        positions = {**port.positions, **{each.journal: each.following for each in inputs}}
        found.extend(each.message.payload for each in inputs if each.mine)
        if positions != port.positions:
            port.commit(Record((), positions, (), (), "1x1"), positions)

    until(lambda: len(found) >= count, step)
    return found
