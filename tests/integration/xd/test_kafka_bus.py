"""The bus in Kafka, with a real broker: each message once, whoever is killed."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from waiting import eventually

from lab.streams.cluster import Cluster, numbers
from storm_on_spark.cluster.zookeeper.server import ZooKeeperServer
from storm_on_spark.connectors.kafka.server import KafkaServer
from storm_on_spark.testing.plugin import kafka_server
from storm_on_spark.xd.bus.journal import Message, Record, TakenError
from storm_on_spark.xd.bus.kafka import Clients, KafkaBus, Seals
from storm_on_spark.xd.bus.port import BusError, ChannelFeed, Feed, Letter, ModuleFeed, Place, Port, TapFeed
from storm_on_spark.xd.dsl import Channel

__all__ = ["kafka_server"]

pytestmark = [pytest.mark.integration]

MESSAGES = 1_200
QUEUE = Channel("queue", "orders")


class _Clock:
    """Real time, which a test may move on."""

    def __init__(self) -> None:
        self.more = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.more


@pytest.fixture
def bus(kafka_server: KafkaServer) -> Iterator[KafkaBus]:
    clients = Clients((kafka_server.bootstrap_servers,), {})
    bus = KafkaBus(
        clients,
        Seals(uuid.uuid4().bytes * 2),
        replication=1,
        channel_partitions=4,
        most_bytes=20_000,
        clock=_Clock(),
    )
    yield bus
    bus.close()


@pytest.fixture
def opened(bus: KafkaBus) -> Iterator[Callable[..., Port]]:
    ports: list[Port] = []

    def made(stream: str, label: str, sequence: int = 1, **more: Any) -> Port:
        port = bus.port(Place(f"{stream}-1-{stream.encode().hex()}", label, sequence, **more))
        ports.append(port)
        port.open()
        return port

    yield made
    for port in ports:
        port.close()


def _send(port: Port, *payloads: int, state: bytes | None = None, era: str = "1x1") -> None:
    messages = tuple(Message(payload, {}, payload) for payload in payloads)
    port.commit(Record(messages, {}, (state,), (), era), {})


def _take(port: Port, count: int, era: str = "1x1", most: int = 1_000) -> list[int]:
    """Reads until so many messages have come, in steps that are committed."""
    found: list[int] = []

    def step() -> bool:
        positions = dict(port.positions)
        for each in port.next(most):
            positions[each.journal] = each.following
            if each.mine:
                found.append(each.message.payload)
        if positions != port.positions:
            port.commit(Record((), positions, (), (), era), positions)
        return len(found) >= count

    eventually(step, lambda: found, 20)
    return found


def _id(stream: str) -> str:
    return f"{stream}-1-{stream.encode().hex()}"


def test_a_step_is_whole_and_an_older_owner_is_kept_away(bus: KafkaBus, opened: Callable[..., Port]) -> None:
    first = opened("a", "time", readers=(f"{_id('a')}.log.1",))
    _send(first, 1, 2, state=b"two")
    second = bus.port(Place(_id("a"), "time", readers=(f"{_id('a')}.log.1",)))
    record = second.open()
    assert record is not None
    assert record.state == (b"two",)
    with pytest.raises(TakenError, match=r"another container runs a-1-61.time.1"):
        _send(first, 99, state=b"lost")
    _send(second, 3, state=b"three")
    log = opened("a", "log", input=ModuleFeed(_id("a"), "time"))
    assert _take(log, 3, most=2) == [1, 2, 3]
    second.close()
    # A reader that comes again goes on behind what it has committed.
    log.close()
    again = opened("a", "log", input=ModuleFeed(_id("a"), "time"))
    third = opened("a", "time", readers=(f"{_id('a')}.log.1",))
    _send(third, 4)
    assert _take(again, 1) == [4]


def test_messages_of_a_partition_go_to_one_instance_and_no_message_is_lost_with_more_instances(
    opened: Callable[..., Port],
) -> None:
    feed = ModuleFeed(_id("p"), "time")
    source = opened("p", "time", readers=tuple(f"{_id('p')}.log.{number}" for number in (1, 2)))
    two = [opened("p", "log", number, count=2, input=feed) for number in (1, 2)]
    _send(source, *range(10))
    assert [_take(port, 5, "1x2") for port in two] == [[0, 2, 4, 6, 8], [1, 3, 5, 7, 9]]
    for port in two:
        port.close()
    three = [opened("p", "log", number, count=3, generation=2, input=feed) for number in (1, 2, 3)]
    _send(source, *range(10, 16))
    assert [_take(port, 2, "2x3") for port in three] == [[12, 15], [10, 13], [11, 14]]


def test_a_queue_is_shared_and_taps_and_topics_see_all(bus: KafkaBus, opened: Callable[..., Port]) -> None:
    def reader(stream: str, feed: Feed) -> Port:
        return opened(stream, "file", input=feed)

    source = opened("q", "time", output=QUEUE)
    _send(source, 0)
    spy = reader("spy", ChannelFeed(QUEUE, tapped=True))
    tap = reader("tap", TapFeed("q", "time", QUEUE))
    none = reader("none", TapFeed("other", "time", QUEUE))
    taken: dict[str, list[int]] = {"one": [], "two": []}
    sent, stopped = 1, threading.Event()

    def read(name: str) -> None:
        port = reader(name, ChannelFeed(QUEUE))
        while not stopped.is_set():
            positions, found = dict(port.positions), []
            try:
                for each in port.next(3):
                    positions[each.journal] = each.following
                    found.append(each.message.payload)
                if positions != port.positions:
                    port.commit(Record((), positions, (), (), "1x1"), positions)
                taken[name] += found
            except BusError:
                # What it had read was given to the other one meanwhile.
                port.close()
                port = reader(name, ChannelFeed(QUEUE))

    # As in a container: a reader is a member of the group only while it reads.
    with ThreadPoolExecutor() as pool:
        readers = [pool.submit(read, name) for name in taken]
        try:
            while not all(taken.values()):
                _send(source, sent)
                sent += 1
                assert not any(each.done() for each in readers), taken
            eventually(lambda: sum(map(len, taken.values())) >= sent, lambda: taken)
        finally:
            stopped.set()
    for each in readers:
        each.result()
    assert sorted(taken["one"] + taken["two"]) == list(range(sent))
    assert sorted(_take(spy, sent - 1)) == list(range(1, sent))
    assert sorted(_take(tap, sent - 1)) == list(range(1, sent))
    assert [each for each in none.next(100) if each.mine] == []


def test_a_slow_reader_holds_back_what_feeds_it(bus: KafkaBus, opened: Callable[..., Port]) -> None:
    source = opened("s", "time", readers=(f"{_id('s')}.log.1",))
    log = opened("s", "log", input=ModuleFeed(_id("s"), "time"))
    sent = 0
    while not source.full():
        _send(source, *range(sent, sent + 100))
        sent += 100
        assert sent < 100_000
    assert _take(log, sent) == list(range(sent))
    assert source.full()
    assert isinstance(bus.clock, _Clock)
    bus.clock.more += 10
    log.upkeep()
    source.upkeep()
    assert not source.full()


def test_a_dead_letter_is_written_with_its_step_and_topics_of_destroyed_streams_go(
    kafka_server: KafkaServer, bus: KafkaBus, opened: Callable[..., Port]
) -> None:
    clock = _Clock()
    there = {_id("d"), _id("e")}
    other = KafkaBus(
        bus.clients, bus.seals, replication=1, channel_partitions=1, most_bytes=1 << 20, exists=there.__contains__,
        grace_secs=100, clock=clock,
    )  # fmt: skip
    port = other.port(Place(_id("d"), "time", readers=(f"{_id('d')}.log.1",)))
    port.open()
    port.commit(Record((), {}, (), (), "1x1"), {}, [Letter(Message("bad", {"n": 1}), "no number")])
    consumer = bus.clients.consumer()
    from kafka import TopicPartition

    where = TopicPartition(bus.names.dead_letters, 0)
    consumer.assign([where])
    consumer.seek(where, 0)
    letters = eventually(lambda: consumer.poll(100))
    assert [each.value for each in letters[where]] == [
        b'{"payload": "bad", "headers": {"n": "1"}, "reason": "no number"}'
    ]
    consumer.close()
    opened("e", "time", readers=(f"{_id('e')}.log.1",))
    there.remove(_id("d"))
    for _ in range(2):
        clock.more += 101
        other.topics.sweep()
    found = eventually(
        lambda: (
            [name for name in bus.topics.known(fresh=True) if _id("e") in name]
            if not any(_id("d") in name for name in bus.topics.known(fresh=True))
            else []
        )
    )
    assert len(found) == 2
    port.close()
    other.close()


def test_what_another_cluster_wrote_is_refused(bus: KafkaBus, opened: Callable[..., Port]) -> None:
    source = opened("f", "time", readers=(f"{_id('f')}.log.1",))
    topic = bus.names.output(_id("f"), "time")
    producer = bus.clients.producer("stranger")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic, Seals(bytes(32)).sealed(topic, (Message(1, {}),)), partition=0)
    producer.commit_transaction()
    producer.close()
    log = opened("f", "log", input=ModuleFeed(_id("f"), "time"))
    with pytest.raises(BusError, match="is not of this cluster"):
        _take(log, 1)
    assert source.positions == {}


def test_no_message_is_missing_or_doubled_when_a_container_and_the_broker_are_killed(
    tmp_path: Path, kafka_server: KafkaServer
) -> None:
    def out(name: str) -> Path:
        return tmp_path / "out" / name

    conf = {"xd.transport": "kafka", "xd.messagebus.kafka.brokers": kafka_server.bootstrap_servers}
    streams = {
        "numbers": f"rate --messagesPerSecond=150 --maxMessages={MESSAGES} "
        f"| filter --expression='payload.length() > 0' | file --dir={out('numbers')}",
        "tap": f":numbers.filter > file --dir={out('tap')}",
        "work": f"queue:work > file --dir={out('work')}",
        "news": f"topic:news > file --dir={out('news')}",
        "send": ":numbers.rate > queue:work",
        "tell": ":numbers.rate > topic:news",
    }
    written = ("numbers", "tap", "work", "news")
    with (
        ZooKeeperServer(tmp_path / "zookeeper", tick=0.2) as server,
        Cluster(tmp_path, server.connect_string, conf=conf) as xd,
    ):
        xd.start(admins=1, containers=2)
        for name, definition in streams.items():
            xd.create(name, definition)
        for name in streams.keys() - {"numbers"}:
            # Both containers read the queue, and both have a reader of the topic.
            xd.deploy(name, {"module.file.count": "2"} if name in ("work", "news") else None)
        for name in streams.keys() - {"numbers"}:
            eventually(lambda: xd.state(name) == "deployed", xd.logs)  # noqa: B023 # called at once
        xd.deploy("numbers", {"module.filter.count": "2"})
        eventually(lambda: len(numbers(out("numbers"))) > 100, xd.logs)
        killed = xd.modules()["numbers.sink.file.1"]
        assert len(numbers(out("numbers"))) < MESSAGES
        assert killed in {each for name, each in xd.modules().items() if name.startswith("work.")}
        xd.kill_container(killed)
        kafka_server.kill()
        kafka_server.start()
        eventually(lambda: xd.modules().get("numbers.sink.file.1", killed) != killed, xd.logs)
        for name in written:
            # What a killed reader wrote and the other one got, it takes back when it runs again.
            eventually(lambda: numbers(out(name)) == list(range(MESSAGES)), xd.logs)  # noqa: B023 # called at once


def _make_again(bus: KafkaBus, topic: str, partitions: int = 1) -> None:
    """Deletes a topic of the bus and makes another one of its name, as somebody might by hand."""
    admin = bus.clients.admin()
    admin.delete_topics([topic])
    eventually(lambda: topic not in admin.list_topics())
    admin.close()
    bus.topics.known(fresh=True)
    eventually(lambda: bus.topics.ensure(topic, partitions) is None)


@pytest.mark.parametrize("runs", [True, False])
def test_a_topic_that_was_made_again_is_read_from_its_first_record(
    bus: KafkaBus, opened: Callable[..., Port], runs: bool
) -> None:
    """Also where it has more records than were read of the old one."""
    feed, readers = ModuleFeed(_id("g"), "time"), (f"{_id('g')}.log.1",)
    source = opened("g", "time", readers=readers)
    for number in range(4):
        _send(source, number)
    log = opened("g", "log", input=feed)
    assert _take(log, 4) == [0, 1, 2, 3]
    if not runs:
        log.close()
    _make_again(bus, bus.names.output(_id("g"), "time"))
    source.close()
    source = opened("g", "time", readers=readers)
    for number in range(10, 30):
        _send(source, number)
    if runs:
        with pytest.raises(BusError, match="was deleted and created again: beginning again with its first record"):
            eventually(lambda: list(log.next(1)) and False)
        log.close()
    log = opened("g", "log", input=feed)
    assert _take(log, 20) == list(range(10, 30))
    log.close()
    assert _take_none(opened("g", "log", input=feed)), "what it began anew is kept"


def _take_none(port: Port) -> bool:
    return not [each for _ in range(20) for each in port.next(10) if each.mine]


def test_a_queue_that_was_made_again_is_read_from_its_first_record(bus: KafkaBus, opened: Callable[..., Port]) -> None:
    source = opened("h", "time", output=QUEUE)
    _send(source, 0)
    reader = opened("h", "file", input=ChannelFeed(QUEUE))
    topic = bus.names.channel(QUEUE)
    assert _take(reader, 1) == [0]
    _make_again(bus, topic, 4)
    source.close()
    source = opened("h", "time", output=QUEUE)
    for number in range(10, 30):
        _send(source, number)
    with pytest.raises(BusError, match="was deleted and created again"):
        eventually(lambda: list(reader.next(1)) and False)
    reader.close()
    assert sorted(_take(opened("h", "file", input=ChannelFeed(QUEUE)), 20)) == list(range(10, 30))


def test_aborted_records_whose_keys_are_no_text_are_passed(bus: KafkaBus, opened: Callable[..., Port]) -> None:
    source = opened("i", "time", readers=(f"{_id('i')}.log.1",))
    topic = bus.names.output(_id("i"), "time")
    for number in range(3):
        _send(source, number)
        stranger = bus.clients.producer(f"stranger-{number}")
        stranger.init_transactions()
        stranger.begin_transaction()
        # Aborted, and with a key that is no text.
        stranger.send(topic, b"not sealed", b"\x80\xff", partition=0)
        stranger.flush()
        stranger.abort_transaction()
        stranger.close()
    log = opened("i", "log", input=ModuleFeed(_id("i"), "time"))
    assert _take(log, 3) == [0, 1, 2]
    assert _take_none(log)
