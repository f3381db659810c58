"""Three brokers, of which two have replicas of a topic: the follower leads after it has missed records."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from typing import Final

from kafka import KafkaAdminClient
from kafka.errors import KafkaConnectionError
from kafka_broker import Kafka, until

from storm_on_spark.connectors.kafka.server import KafkaServer

_LEADER: Final = 2
_FOLLOWER: Final = 3


class Replicas:
    """The controller, and two brokers that have replicas.

    Args:
        controller: also the broker that clients ask first.
        leader: has the first replica.
        follower: has the second.
    """

    def __init__(self, controller: KafkaServer, leader: KafkaServer, follower: KafkaServer) -> None:
        self.kafka = Kafka(controller)
        self._leader, self._follower = leader, follower

    def make(self, *topics: str, beside: Collection[str] = ()) -> None:
        """Makes topics of one partition each.

        Args:
            topics: their follower may lead though it has missed records.
            beside: of these the controller has the only replica.
        """
        for each in (self._leader, self._follower):
            if each.pid is None:
                each.start()
        configs = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
        new = {topic: {"assignments": {0: [_LEADER, _FOLLOWER]}, "configs": configs} for topic in topics}
        new |= {topic: {"assignments": {0: [1]}} for topic in beside}
        with self._admin() as admin:
            admin.create_topics(new, wait_for_metadata=True)
        self._until(topics, _LEADER, {_LEADER, _FOLLOWER})

    def lose_follower(self, *topics: str) -> None:
        """Kills the follower; returns once the leader goes on without it."""
        self._follower.kill()
        self._until(topics, _LEADER, {_LEADER})

    def follower_leads(self, *topics: str) -> None:
        """Kills the leader and starts the follower; returns once that leads."""
        self._leader.kill()
        self._follower.start()
        self._until(topics, _FOLLOWER, {_FOLLOWER})

    def _until(self, topics: Collection[str], leader: int, in_sync: set[int]) -> None:
        def reached() -> bool:
            # The client may ask a broker that was killed.
            with contextlib.suppress(KafkaConnectionError), self._admin() as admin:
                found = [each["partitions"][0] for each in admin.describe_topics(list(topics))]
                return all(each["leader_id"] == leader and set(each["isr_nodes"]) == in_sync for each in found)
            return False

        until(reached)

    def _admin(self) -> KafkaAdminClient:
        return KafkaAdminClient(bootstrap_servers=self.kafka.server.bootstrap_servers)


@contextlib.contextmanager
def replicas() -> Iterator[Replicas]:
    """Starts the three."""
    properties = ("broker.session.timeout.ms=3000", "broker.heartbeat.interval.ms=500")
    with KafkaServer(properties=properties) as controller:
        # What groups and transactions are kept in has its only replica where no test kills.
        kafka = Kafka(controller)
        topic = kafka.topic()
        kafka.transaction(topic, "first")
        assert kafka.committed("first", topic) is None
        with (
            KafkaServer(controller=controller, node=_LEADER, properties=properties) as leader,
            KafkaServer(controller=controller, node=_FOLLOWER, properties=properties) as follower,
        ):
            yield Replicas(controller, leader, follower)
