"""The queue spout against a real RabbitMQ: delete on ack, put back on fail or when the client is gone."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pika
import psutil
import pytest
from processes import script
from waiting import eventually

from storm_on_spark import Fields, SetupError, TopologyBuilder
from storm_on_spark.connectors.queue import QueueServer, QueueSpout, QueueSpoutError
from storm_on_spark.testing import SpoutTester, running_topology
from storm_on_spark.testing.servers.rabbitmq import RabbitServer


class Queues:
    """What tests do to the server."""

    def __init__(self, server: RabbitServer) -> None:
        self.server = server
        self.at = QueueServer("127.0.0.1", server.port)
        self._made = 0

    def connection(self) -> pika.BlockingConnection:
        return pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", self.server.port))

    def queue(self, *bodies: str) -> str:
        """Makes a queue that survives a crash, with messages."""
        self._made += 1
        name = f"queue-{self._made}"
        with self.connection() as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            channel.queue_declare(name, durable=True)
            for body in bodies:
                channel.basic_publish("", name, body.encode(), pika.BasicProperties(delivery_mode=2))
        return name

    def left(self, name: str) -> list[str]:
        """Takes what is in a queue and pending nowhere."""
        found = []
        with self.connection() as connection:
            channel = connection.channel()
            while (got := channel.basic_get(name, auto_ack=True))[0] is not None:
                found.append(got[2].decode())
        return found


@pytest.fixture(scope="module")
def queues() -> Iterator[Queues]:
    try:
        server = RabbitServer()
    except SetupError as error:
        pytest.skip(f"a real queue server can't be had here: {error}")
    with server:
        yield Queues(server)


def read(tester: SpoutTester, count: int):
    found = []
    eventually(lambda: found.extend(tester.next_tuple()) or len(found) >= count, "messages")
    return found


def test_acked_messages_are_deleted_failed_ones_come_again_and_the_rest_is_put_back(queues: Queues) -> None:
    name = queues.queue("a", "b", "c", "d")
    with SpoutTester(QueueSpout(queues.at, name)) as tester:
        first = {emission.values[0]: emission for emission in read(tester, 4)}
        assert queues.left(name) == [], "all are pending"
        for body in "ab":
            tester.ack(first[body].message_id)
        tester.fail(first["c"].message_id)
        (again,) = read(tester, 1)
        assert again.values == ("c",)
        assert again.message_id != first["c"].message_id
        assert queues.left(name) == []
    eventually(lambda: sorted(queues.left(name)) == ["c", "d"], "what was not acked is back")


def test_what_a_translator_makes_of_messages(queues: Queues) -> None:
    name = queues.queue("1", "none", "2")

    def number(message):
        return None if message.body == b"none" else [int(message.body), message.routing_key, message.redelivered]

    with SpoutTester(QueueSpout(queues.at, name, number, Fields("n", "key", "again"), prefetch=1)) as tester:
        for expected in 1, 2:
            (found,) = read(tester, 1)
            assert found.values == (expected, name, False)
            tester.ack(found.message_id)
    assert queues.left(name) == []
    wrong = queues.queue("x")
    with (
        SpoutTester(QueueSpout(queues.at, wrong, number, Fields("n", "key", "again"))) as tester,
        pytest.raises(QueueSpoutError, match="no tuple can be made of a message: ValueError"),
    ):
        read(tester, 1)
    eventually(lambda: queues.left(wrong) == ["x"], "it stays in the queue")


def test_what_is_refused_is_said_without_the_password(queues: Queues) -> None:
    wrong = QueueServer("127.0.0.1", queues.server.port, password="not-the-pass")
    cases = [
        (QueueSpout(queues.at, "missing"), "no queue 'missing' in vhost '/'"),
        (QueueSpout(wrong, queues.queue()), "refuses the login of 'guest' to '/'"),
    ]
    for spout, words in cases:
        with SpoutTester(spout) as tester, pytest.raises(QueueSpoutError, match=words) as error:
            read(tester, 1)
        assert "not-the-pass" not in str(error.value) + repr(wrong)


READER = """
import sys
from storm_on_spark.connectors.queue import QueueServer, QueueSpout
from storm_on_spark.testing import SpoutTester
with SpoutTester(QueueSpout(QueueServer("127.0.0.1", int(sys.argv[1])), sys.argv[2])) as tester:
    found = []
    while len(found) < 50:
        found += tester.next_tuple()
    for emission in found[:20]:
        tester.ack(emission.message_id)
    print("pending", flush=True)
    sys.stdin.read() or tester.next_tuple()
    import time
    time.sleep(600)
"""


def test_messages_that_are_pending_at_a_killed_client_are_put_back(queues: Queues, tmp_path) -> None:
    bodies = [str(number) for number in range(50)]
    name = queues.queue(*bodies)
    with script(tmp_path / "tmp", "-c", READER, str(queues.server.port), name) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "pending\n"
        assert queues.left(name) == []
        process.kill()
        process.wait(10)
    back: list[str] = []
    eventually(lambda: back.extend(queues.left(name)) or len(back) >= 30, "what was pending")
    assert set(back) <= set(bodies)
    assert set(bodies) - set(back) <= set(bodies[:20]), "none but acked ones are gone"


def test_the_spout_goes_on_when_the_server_was_killed(queues: Queues) -> None:
    name = queues.queue("a", "b")
    with SpoutTester(QueueSpout(queues.at, name)) as tester:
        first = read(tester, 2)
        queues.server.kill()
        eventually(lambda: tester.next_tuple() or tester.collector.errors, "that it says so")
        assert "no connection to its queue" in str(tester.collector.errors[0])
        queues.server.start()
        again = read(tester, 2)
        assert sorted(emission.values for emission in again) == [("a",), ("b",)]
        tester.ack(first[0].message_id)
        for emission in again:
            tester.ack(emission.message_id)
    assert queues.left(name) == []


def test_a_topology_loses_none_when_its_spout_host_is_killed(
    nothing_left_behind, spark_session, queues: Queues
) -> None:
    bodies = [str(number) for number in range(200)]
    name = queues.queue(*bodies)
    builder = TopologyBuilder()
    builder.set_spout("queue", QueueSpout(queues.at, name, prefetch=40))
    conf = {"topology.max.spout.pending": 40}
    with running_topology(builder.create_topology(), conf=conf, spark=spark_session) as running:
        running.wait_until(lambda captured: len(captured.acked()) >= 60)
        hosts = [
            child
            for child in psutil.Process().children(recursive=True)
            if child.status() != psutil.STATUS_ZOMBIE and "storm_on_spark.runtime.spouts.spout_host" in child.cmdline()
        ]
        assert len(hosts) == 1
        hosts[0].kill()
        hosts[0].wait(10)
        running.wait_until(lambda captured: {values[0] for values in captured.values("queue")} == set(bodies), 90)
        eventually(lambda: len(running.captured().acked()) >= len(bodies) - 40, "acks")

        def empty() -> bool:
            with queues.connection() as connection:
                return connection.channel().queue_declare(name, passive=True).method.message_count == 0

        def settled() -> bool:
            before = len(running.captured().acked())
            time.sleep(3)
            return len(running.captured().acked()) == before

        eventually(empty, "an empty queue")
        # The server does not say how many messages are open.
        eventually(settled, "the last acks")
    assert queues.left(name) == []
