"""What the instances of a container share."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from storm_on_spark.xd.bus.kafka.clients import Clients
from storm_on_spark.xd.bus.kafka.names import Names
from storm_on_spark.xd.bus.kafka.seals import Seals
from storm_on_spark.xd.bus.kafka.topics import Partition, Topics
from storm_on_spark.xd.bus.port import Feed
from storm_on_spark.xd.dsl import Channel

_GRACE_SECS: Final = 600.0


class Shared:
    """The clients, names and topics of a container.

    Args:
        clients: creates clients of Kafka.
        seals: of the cluster.
        replication: of topics.
        channel_partitions: of new channels.
        most_bytes: limit of unread messages.
        exists: whether a stream, by its id, exists.
        grace_secs: how long the topics of a destroyed stream stay.
        clock: seconds.
    """

    def __init__(
        self,
        clients: Clients,
        seals: Seals,
        *,
        replication: int,
        channel_partitions: int,
        most_bytes: int,
        exists: Callable[[str], bool] = lambda stream: True,
        grace_secs: float = _GRACE_SECS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        #: Brokers store what is committed.
        self.sync = True
        self.clients, self.seals, self.most_bytes, self.clock = clients, seals, most_bytes, clock
        self._channel_partitions = channel_partitions
        self.names = Names(seals.tag)
        self.topics = Topics(clients, self.names, replication, exists, grace_secs, clock)

    def close(self) -> None:
        """Closes the client of topics."""
        self.topics.close()

    def partitions(self, feed: Feed) -> list[Partition]:
        """Returns the existing partitions of a feed."""
        known = self.topics.known()
        return [(topic, number) for topic in self.names.feeding(feed, known) for number in range(known[topic])]

    def ensure_channel(self, channel: Channel) -> None:
        """Creates the topic of a channel unless it exists."""
        retained = self.most_bytes if channel.kind == "topic" else -1
        self.topics.ensure(self.names.channel(channel), self._channel_partitions, retained)
