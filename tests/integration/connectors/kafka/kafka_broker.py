"""What tests do to a broker, and to what reads it."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.consumer.fetcher import ConsumerRecord
from kafka.errors import TopicAlreadyExistsError
from kafka.structs import OffsetAndMetadata
from lengths import PATIENCE_SECS

from storm_on_spark import Fields
from storm_on_spark.connectors.kafka import KafkaSpoutConfig, KafkaSpoutConfigBuilder, SimpleRecordTranslator
from storm_on_spark.connectors.kafka.server import KafkaServer
from storm_on_spark.testing import Emission, SpoutTester


class Kafka:
    """What tests do to Kafka."""

    def __init__(self, server: KafkaServer) -> None:
        self.server = server
        self._topics = 0

    def topic(self, partitions: int = 1, **configs: str) -> str:
        self._topics += 1
        name = f"topic-{self._topics}"
        self.make(name, partitions, **configs)
        return name

    def delete(self, topic: str) -> None:
        """Returns once it is gone."""
        with self._admin() as admin:
            admin.delete_topics([topic])
            until(lambda: topic not in admin.list_topics())

    def make_again(self, topic: str, partitions: int = 1) -> None:
        """Deletes a topic, and makes another one of its name."""
        self.delete(topic)
        self.make(topic, partitions)

    def make(self, name: str, partitions: int = 1, **configs: str) -> None:
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        new = {name: {"num_partitions": partitions, "replication_factor": 1, "configs": settings}}
        with self._admin() as admin:
            # The old one of this name may not be removed from all of the broker's parts yet.
            until(lambda: name in _made(admin, new))

    def grow(self, topic: str, partitions: int) -> None:
        with self._admin() as admin:
            admin.create_partitions({topic: partitions})

    def forget(self, topic: str, before: int) -> None:
        """Deletes the records in front of an offset, as retention does."""
        with self._admin() as admin:
            admin.delete_records({TopicPartition(topic, 0): before})

    def send(self, topic: str, *values: str | None, partition: int = 0, **more: object) -> None:
        producer = KafkaProducer(bootstrap_servers=self.server.bootstrap_servers)
        for value in values:
            data = None if value is None else value.encode()
            producer.send(topic, data, partition=partition, **more)
        producer.flush()
        producer.close()

    def send_bytes(self, topic: str, key: bytes, value: bytes, headers: list[tuple[str, bytes]]) -> None:
        producer = KafkaProducer(bootstrap_servers=self.server.bootstrap_servers)
        producer.send(topic, value, key, headers)
        producer.close()

    def transaction(self, topic: str, *values: str, commit: bool = True) -> None:
        """Sends records in one transaction, and commits or aborts it."""
        producer = KafkaProducer(bootstrap_servers=self.server.bootstrap_servers, transactional_id=topic)
        producer.init_transactions()
        producer.begin_transaction()
        for value in values:
            producer.send(topic, value.encode(), partition=0)
        producer.flush()
        (producer.commit_transaction if commit else producer.abort_transaction)()
        producer.close()

    def commit(self, group: str, topic: str, offset: int, metadata: str = "") -> None:
        """Commits an offset of a group's, as a program without the spout would."""
        with self._admin() as admin:
            admin.alter_group_offsets(group, {TopicPartition(topic, 0): OffsetAndMetadata(offset, metadata, -1)})

    def committed(self, group: str, topic: str, partition: int = 0) -> int | None:
        consumer = KafkaConsumer(bootstrap_servers=self.server.bootstrap_servers, group_id=group)
        try:
            return consumer.committed(TopicPartition(topic, partition))
        finally:
            consumer.close(autocommit=False)

    def note(self, group: str, topic: str) -> str:
        """Returns what was committed beside the offset."""
        consumer = KafkaConsumer(bootstrap_servers=self.server.bootstrap_servers, group_id=group)
        try:
            return consumer.committed(TopicPartition(topic, 0), metadata=True).metadata
        finally:
            consumer.close(autocommit=False)

    def config(self, *topics: str | re.Pattern[str]) -> KafkaSpoutConfigBuilder:
        """Of the values alone."""
        return (
            KafkaSpoutConfig.builder(self.server.bootstrap_servers, *topics)
            .set_group_id("group")
            .set_record_translator(SimpleRecordTranslator(lambda record: [record.value], Fields("value")))
            .set_partition_refresh_period_ms(50)
            .set_offset_commit_period_ms(20)
        )

    def _admin(self) -> KafkaAdminClient:
        return KafkaAdminClient(bootstrap_servers=self.server.bootstrap_servers)


def _made(admin: KafkaAdminClient, new: dict[str, dict[str, Any]]) -> set[str]:
    with contextlib.suppress(TopicAlreadyExistsError):
        admin.create_topics(new, wait_for_metadata=True)
    return set(admin.list_topics())


def records(server: KafkaServer, topic: str, **settings: Any) -> list[ConsumerRecord]:
    """Returns all records of a topic."""
    consumer = KafkaConsumer(bootstrap_servers=server.bootstrap_servers, group_id=None, **settings)
    try:
        partitions = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic) or ()]
        ends = consumer.end_offsets(partitions)
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
        found: list[ConsumerRecord] = []
        until(
            lambda: all(consumer.position(partition) >= ends[partition] for partition in partitions),
            lambda: found.extend(record for batch in consumer.poll(1000).values() for record in batch),
        )
        return found
    finally:
        consumer.close(autocommit=False)


def until(true: Callable[[], bool], step: Callable[[], object] = lambda: None) -> None:
    deadline = time.monotonic() + PATIENCE_SECS
    while not true():
        assert time.monotonic() < deadline, f"not within {PATIENCE_SECS:g} s"
        step()
        time.sleep(0.002)


def read(tester: SpoutTester, count: int) -> list[Emission]:
    """Returns the next tuples."""
    found: list[Emission] = []
    until(lambda: len(found) >= count, lambda: found.extend(tester.next_tuple()))
    return found
