"""Topics of the bus, and how far groups have read them; all instances of a container share one client for this."""

from __future__ import annotations

import contextlib
import logging
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from storm_on_spark.xd.bus.kafka.clients import LARGEST_RECORD, Clients
from storm_on_spark.xd.bus.kafka.names import Names
from storm_on_spark.xd.bus.port import BusError

logger = logging.getLogger(__name__)

_LOOK_SECS: Final = 1.0
_SWEEP_SECS: Final = 30.0
_SEGMENT_BYTES: Final = 16 << 20
_ATTEMPTS: Final = 5

Partition = tuple[str, int]
"""Topic and number."""


class Read(NamedTuple):
    """The position of a reader."""

    offset: int
    generation: int


class Topics:
    """The topics.

    Args:
        clients: creates the client.
        names: of the cluster.
        replication: of new topics.
        exists: whether a stream, by its id, exists.
        grace_secs: how long the topics of a destroyed stream stay, for streams that tap it.
        clock: seconds.
    """

    def __init__(
        self,
        clients: Clients,
        names: Names,
        replication: int,
        exists: Callable[[str], bool],
        grace_secs: float,
        clock: Callable[[], float],
    ) -> None:
        self._clients, self._names, self._replication = clients, names, replication
        self._exists, self._grace_secs, self._clock = exists, grace_secs, clock
        self._lock = threading.Lock()
        self._admin: Any = None
        self._known: dict[str, int] = {}
        self._ids: dict[str, str] = {}
        self._looked: float | None = None
        self._failed: tuple[float, str] | None = None
        #: When destroyed streams were last looked for, and since when each is known to be destroyed.
        self._swept = clock()
        self._gone: dict[str, float] = {}

    def known(self, *, fresh: bool = False) -> Mapping[str, int]:
        """Returns topic -> number of partitions, of this cluster's topics, as of a moment ago.

        Args:
            fresh: whether to ask for the current ones.
        """
        if fresh or self._looked is None or self._clock() - self._looked >= _LOOK_SECS:
            found = {
                each["name"]: each for each in self._client().describe_topics() if self._names.is_own(each["name"])
            }
            self._ids = {name: str(each["topic_id"]) for name, each in found.items() if _is_id(each["topic_id"])}
            self._known = {name: len(each["partitions"]) for name, each in found.items()}
            self._looked = self._clock()
        return self._known

    def ids(self) -> Mapping[str, str]:
        """Returns topic -> id, of the same topics. A recreated topic has a new id; brokers before 2.8 have none."""
        self.known()
        return self._ids

    def ensure(self, topic: str, partitions: int, retained_bytes: int = -1) -> None:
        """Creates a topic, or adds partitions to it, unless they exist.

        Args:
            topic: its name.
            partitions: the minimum.
            retained_bytes: that a partition keeps; -1 for all, until they are removed.
        """
        from kafka.errors import InvalidPartitionsError, TopicAlreadyExistsError

        for attempt in range(_ATTEMPTS):
            there = self.known(fresh=attempt > 0).get(topic, 0)
            if there >= partitions:
                return
            # Another instance may do the same at the same time.
            with contextlib.suppress(TopicAlreadyExistsError, InvalidPartitionsError):
                if there:
                    self._client().create_partitions({topic: partitions})
                else:
                    self._create(topic, partitions, retained_bytes)
        raise BusError(f"topic {topic} does not have {partitions} partitions")

    def _create(self, topic: str, partitions: int, retained_bytes: int) -> None:
        configs = {
            "cleanup.policy": "delete",
            "retention.ms": "-1",
            "retention.bytes": str(retained_bytes),
            "segment.bytes": str(_SEGMENT_BYTES),
            "max.message.bytes": str(LARGEST_RECORD),
        }
        new = {"num_partitions": partitions, "replication_factor": self._replication, "configs": configs}
        self._client().create_topics({topic: new}, wait_for_metadata=True)

    def trim(self, offsets: Mapping[Partition, int]) -> None:
        """Removes the records before the given offsets."""
        self._client().delete_records({_kafka(partition): offset for partition, offset in offsets.items()})

    def publish(self, group: str, offsets: Mapping[Partition, int], generation: int) -> None:
        """Records the position of a reader that is not a member of a group."""
        from kafka.structs import OffsetAndMetadata

        said = {_kafka(each): OffsetAndMetadata(offset, str(generation), -1) for each, offset in offsets.items()}
        self._client().alter_group_offsets(group, said)

    def read_by(self, groups: Iterable[str], partitions: Iterable[Partition]) -> dict[str, dict[Partition, Read]]:
        """Returns the positions of groups, without partitions that they have not begun."""
        wanted = [_kafka(each) for each in partitions]
        found = self._client().list_group_offsets(dict.fromkeys(groups, wanted))
        return {
            group: {
                (where.topic, where.partition): Read(at.offset, int(at.metadata or 0))
                for where, at in read.items()
                if at.offset >= 0
            }
            for group, read in found.items()
        }

    def bounds(self, partitions: Iterable[Partition]) -> dict[Partition, tuple[int, int]]:
        """Returns the first offset of each partition, and the one after the last."""
        from kafka.admin import OffsetSpec

        wanted = [_kafka(each) for each in partitions]
        if not wanted:
            return {}
        first = self._client().list_partition_offsets(dict.fromkeys(wanted, OffsetSpec.EARLIEST))
        behind = self._client().list_partition_offsets(dict.fromkeys(wanted, OffsetSpec.LATEST))
        return {(each.topic, each.partition): (first[each].offset, behind[each].offset) for each in wanted}

    def sweep(self) -> None:
        """Removes topics of streams that were destroyed a while ago, if a check is due."""
        now = self._clock()
        with self._lock:
            if now - self._swept < min(_SWEEP_SECS, self._grace_secs):
                return
            self._swept = now
        streams = {topic: stream for topic in self.known() if (stream := self._names.stream_of(topic)) is not None}
        gone = {stream for stream in set(streams.values()) if not self._exists(stream)}
        self._gone = {stream: self._gone.get(stream, now) for stream in gone}
        old = [topic for topic, stream in streams.items() if now - self._gone.get(stream, now) >= self._grace_secs]
        if old:
            logger.info("Removing topics of destroyed streams: %s", ", ".join(sorted(old)))
            # Another container may do the same at the same time.
            self._client().delete_topics(old, raise_errors=False)

    def close(self) -> None:
        """Closes the client."""
        with self._lock:
            if self._admin is not None:
                self._admin.close()
                self._admin = None

    def _client(self) -> Any:
        with self._lock:
            if self._admin is None:
                # If Kafka does not answer, the instances of a container wait once together, not one after another.
                if self._failed is not None and self._clock() - self._failed[0] < _LOOK_SECS:
                    raise BusError(self._failed[1])
                try:
                    with self._clients.told("the bus"):
                        self._admin = self._clients.admin()
                except BusError as error:
                    self._failed = self._clock(), str(error)
                    raise
            return self._admin


def _is_id(given: Any) -> bool:
    return given is not None and bool(uuid.UUID(str(given)).int)


def _kafka(partition: Partition) -> Any:
    from kafka.structs import TopicPartition

    return TopicPartition(*partition)
