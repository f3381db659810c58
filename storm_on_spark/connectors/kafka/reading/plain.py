"""A Kafka spout in plain Python, for clusters without the jar of Spark's Kafka source."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, Final

from storm_on_spark.api.component import BaseRichSpout
from storm_on_spark.api.errors import ConfigError
from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
from storm_on_spark.api.streams.stream import DEFAULT_STREAM
from storm_on_spark.api.task.collector import SpoutOutputCollector
from storm_on_spark.api.task.context import TopologyContext
from storm_on_spark.connectors.kafka.clients import (
    Clients,
    consumer_settings,
    described,
    group_position,
    is_final,
    now_ms,
    without_offset,
)
from storm_on_spark.connectors.kafka.config import DEAD_LETTER_FIELDS, KafkaSpoutConfig, ProcessingGuarantee
from storm_on_spark.connectors.kafka.errors import KafkaSpoutError
from storm_on_spark.connectors.kafka.lag import shown
from storm_on_spark.connectors.kafka.lookups import Found, LookUp
from storm_on_spark.connectors.kafka.offsets import Offsets, Partition, PartitionOffsets
from storm_on_spark.connectors.kafka.reading.replay import Replay
from storm_on_spark.connectors.kafka.records import KafkaRecord, KafkaTuple

_log = logging.getLogger(__name__)

_GONE: Final = "the record is no longer in Kafka"

MessageId = tuple[Any, ...]
"""Topic, partition and offset; then how often the partition has begun again, if it has."""


class PlainKafkaSpout(BaseRichSpout):
    """Emits the records of Kafka's topics, by kafka-python.

    The message id of a tuple is (topic, partition, offset). Where the topic was made again, the number of its turn
    comes last, so that tuples of the old topic are not taken for those of the new one. Partitions belong to tasks by
    their number. The offsets that are not done are the spout's state, saved with the topology's checkpoint: a restart
    continues exactly there. What is committed to the consumer group follows behind it, for tools that show the lag and
    for the first start without the checkpoint.

    Keys and values are deserialized when the translator looks at them.

    A tuple that fails is emitted again by itself: its record is read again, while its neighbours continue.

    Args:
        config: what to read and how.

    Raises:
        ConfigError: a property is unknown to kafka-python.
        SetupError: kafka-python is not installed.

    Example:
        >>> from storm_on_spark import TopologyBuilder
        >>> config = KafkaSpoutConfig.builder("127.0.0.1:9092", "lines").set_group_id("word-count").build()
        >>> TopologyBuilder().set_spout("lines", PlainKafkaSpout(config), 2)    # doctest: +SKIP
    """

    def __init__(self, config: KafkaSpoutConfig) -> None:
        if not isinstance(config, KafkaSpoutConfig):
            raise ConfigError(f"PlainKafkaSpout takes a KafkaSpoutConfig (given {config!r:.100})")
        consumer_settings(config)
        self._config = config

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares the translator's streams and the dead-letter stream."""
        for stream, fields in self._config.translator.streams().items():
            declarer.declare_stream(stream, fields)
        if self._config.dead_letter_stream is not None:
            declarer.declare_stream(self._config.dead_letter_stream, DEAD_LETTER_FIELDS)

    @property
    def kafka_config(self) -> KafkaSpoutConfig:
        """Its configuration."""
        return self._config

    def committed_outside(self) -> str:
        """Returns how far the consumer group has come, if a first start continues from there.

        Raises:
            KafkaSpoutError: Kafka doesn't answer.
        """
        return group_position(self._config)

    def get_component_configuration(self) -> Mapping[str, Any]:
        """Returns what others may know of it, without secrets: servers, topics and group, as in Storm."""
        return shown(self._config)

    def open(self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector) -> None:
        """Prepares the task; Kafka is not contacted yet."""
        self._collector = collector
        self._share = context.this_task_index, len(context.component_tasks(context.this_component_id))
        self._name = f'Kafka spout "{context.this_component_id}" (task {context.this_task_id})'
        self.offsets = Offsets()
        # What the runtime saves and puts back: not the configuration, which may be another one after a restart.
        self.state_holder = self.offsets
        guarantee = self._config.processing_guarantee
        self._tracks = guarantee is ProcessingGuarantee.AT_LEAST_ONCE
        self._commits_first = guarantee is ProcessingGuarantee.AT_MOST_ONCE
        self._clients: Clients | None = None
        self._replay: Replay | None = None
        #: Records that were read and not yet emitted, by partition.
        self._waiting: dict[Partition, deque[Any]] = {}
        self._paused: set[Partition] = set()
        self._is_assigned = False
        #: Partitions whose next offset is not in Kafka (any more), and that offset: the next look-up says what follows.
        self._gone: dict[Partition, int] = {}
        self._next_look_up = self._next_commit = 0
        self._reader_trouble = False
        self._told_trouble: str | None = None

    def next_tuple(self) -> None:
        """Emits the next record, or those that are due again. Never waits for Kafka."""
        now = now_ms()
        clients = self._clients or self._use(Clients(self._config, *self._share, self._name))
        if clients.failure is not None:
            raise clients.failure
        self._tell_trouble(clients)
        self._keep_up(clients, now)
        if clients.reader is None:
            return
        if self._tracks and self._emit_again(now):
            return
        if not self._emit_waiting(clients):
            self._read(clients)
            self._emit_waiting(clients)

    def _use(self, clients: Clients) -> Clients:
        self._clients, self._replay = clients, Replay(clients, self.offsets)
        return clients

    def ack(self, message_id: MessageId) -> None:
        """Notes that a record is done."""
        known = self._known(message_id)
        if known is not None:
            known.ack(message_id[2])

    def fail(self, message_id: MessageId) -> None:
        """Schedules a record to be emitted again, or gives it up."""
        topic, number, offset, *_ = message_id
        known = self._known(message_id)
        if known is None or not known.is_pending(offset):
            return
        retry, times = self._config.retry, known.times_failed(offset) + 1
        failure = known.failures.get(offset)
        dead = failure is not None and failure.reason is not None
        delay = retry.delay_ms(times)
        if dead or delay is not None:
            # A dead letter is emitted until it is acked: where should it go instead?
            known.fail(offset, now_ms() + retry.capped_delay_ms(times))
            return
        why = f"failed or timed out {times} times, more than max_retries={retry.max_retries} allows"
        if self._config.dead_letter_stream is None:
            _log.warning("%s gives up topic %s partition %d offset %d: %s", self._name, topic, number, offset, why)
            known.ack(offset)
        else:
            known.fail(offset, now_ms(), why)

    def _known(self, message_id: MessageId) -> PartitionOffsets | None:
        """Returns the offsets that a message is of; None if its partition has begun again since."""
        topic, number, _, *turns = message_id
        known = self.offsets.partitions.get((topic, number))
        return known if known is not None and sum(turns) == known.turn else None

    def _message_id(self, topic: str, number: int, offset: int) -> MessageId:
        turn = self.offsets.partitions[topic, number].turn
        return (topic, number, offset, turn) if turn else (topic, number, offset)

    def deactivate(self) -> None:
        """Requests a commit of all offsets that may be committed."""
        self._commit()

    def close(self) -> None:
        """Commits all offsets that may be committed, and ends the clients."""
        if self._clients is not None:
            self._commit()
            self._clients.close()
            self._clients = self._replay = None

    # --- keeping up with Kafka ---------------------------------------------------------------

    def _keep_up(self, clients: Clients, now: int) -> None:
        if now >= self._next_look_up:
            self._next_look_up = now + self._config.partition_refresh_period_ms
            offsets = self.offsets
            known, ids = frozenset(offsets.partitions), dict(offsets.topic_ids)
            clients.look_up(LookUp(known, not offsets.looked_up, ids, dict(self._gone)))
        found = clients.found()
        if found is not None:
            self._take(found, clients.reader)
        if clients.reader is not None and not self._is_assigned:
            self._assign(clients.reader)
        if now >= self._next_commit:
            self._next_commit = now + self._config.offset_commit_period_ms
            self._commit()

    def _take(self, found: Found, reader: Any) -> None:
        """Does what a look-up has found: also an older one than the last, of which something may be done already."""
        offsets, ids = self.offsets, found.existing.topic_ids
        again = {topic for topic, known in offsets.topic_ids.items() if ids.get(topic, known) != known}
        for partition in found.removed:
            if partition[0] in again:
                del offsets.partitions[partition]
                self._is_assigned = False
        for partition, elsewhere in found.elsewhere.items():
            if partition[0] in again or partition in self._gone:
                _log.warning("%s: %s, %d", self._name, elsewhere.why, elsewhere.offset)
                self._go_on_elsewhere(partition, elsewhere.offset, partition[0] in again, reader)
        for partition, start in found.starts.items():
            if offsets.begin(partition, start):
                self._is_assigned = False
        mine = {topic for topic, _ in offsets.partitions}
        offsets.topic_ids.update({topic: known for topic, known in ids.items() if topic in mine})
        offsets.looked_up = True

    def _go_on_elsewhere(self, partition: Partition, start: int, again: bool, reader: Any) -> None:
        from kafka.structs import TopicPartition

        known = self.offsets.partitions[partition]
        if again or start < known.position:
            if pending := known.pending:
                _log.warning("%s: %d records of %s/%d were not done, and are gone", self._name, pending, *partition)
            known.begin_again(start)
        else:
            known.pass_to(start)
        self._gone.pop(partition, None)
        if partition in self._waiting:
            self._waiting[partition].clear()
            reader.seek(TopicPartition(*partition), start)

    def _assign(self, reader: Any) -> None:
        """Makes the reader read all partitions of the task, new ones from their positions."""
        from kafka.structs import OffsetAndMetadata, TopicPartition

        partitions, before = self.offsets.partitions, self._waiting
        reader.assign([TopicPartition(*partition) for partition in partitions])
        for partition in partitions.keys() - before.keys():
            known = partitions[partition]
            # `seek` of the consumer itself takes no epoch. Without it, nobody would notice that another leader has cut
            # the log off while the topology did not run.
            at = OffsetAndMetadata(known.position, "", known.epoch)
            reader._subscription.seek(TopicPartition(*partition), at)  # noqa: SLF001
        self._waiting = {partition: before.get(partition, deque()) for partition in partitions}
        self._paused &= partitions.keys()
        self._gone = {partition: offset for partition, offset in self._gone.items() if partition in partitions}
        self._is_assigned = True

    def committable(self) -> dict[Partition, int]:
        """Returns, by partition, the first offset that is not done."""
        return self.offsets.committable()

    def _commit(self) -> None:
        # AT_MOST_ONCE has committed before it emitted.
        if self._clients is not None and self.offsets.partitions and not self._commits_first:
            self._clients.commit(self.committable(), self.offsets.topic_ids)

    def _tell_trouble(self, clients: Clients) -> None:
        trouble = clients.trouble
        if trouble != self._told_trouble:
            self._told_trouble = trouble
            if trouble is not None:
                self._collector.report_error(KafkaSpoutError(f"{self._name}: no answer from Kafka: {trouble}"))

    # --- reading ---------------------------------------------------------------

    def _read(self, clients: Clients) -> None:
        from kafka.errors import KafkaError

        if not self._waiting:
            return
        reader = clients.reader
        self._pause_full(reader)
        try:
            polled = reader.poll(0)
        except KafkaError as error:
            if lost := without_offset(error):
                self._note_gone(lost)
                return
            if is_final(error) or not error.retriable:
                raise KafkaSpoutError(f"{self._name} can't read: {described(error)}") from None
            if not self._reader_trouble:
                self._reader_trouble = True
                _log.warning("%s can't read for now, trying again: %s", self._name, described(error))
            return
        if polled:
            self._reader_trouble = False
        for where, records in polled.items():
            self._waiting[where.topic, where.partition].extend(records)
        # The reader also passes offsets that have no record: marks of transactions, aborted and compacted records.
        # `position` of kafka-python looks at all partitions for each, and this at each once.
        passed = reader._subscription.all_consumed_offsets()  # noqa: SLF001
        for where, at in passed.items():
            partition = where.topic, where.partition
            if not self._waiting[partition] and partition not in self._gone:
                self.offsets.partitions[partition].pass_to(at.offset, at.leader_epoch)
        if self._commits_first:
            ends = {(where.topic, where.partition): at.offset for where, at in passed.items()}
            clients.commit(ends, self.offsets.topic_ids)

    def _note_gone(self, lost: Iterable[Any]) -> None:
        """Requests a look-up of the positions from which partitions continue."""
        for where in lost:
            partition = where.topic, where.partition
            if partition in self.offsets.partitions and partition not in self._gone:
                self._gone[partition] = self.offsets.partitions[partition].position
                self._next_look_up = 0

    def _pause_full(self, reader: Any) -> None:
        from kafka.structs import TopicPartition

        most = self._config.max_uncommitted_offsets
        full = {
            partition
            for partition, waiting in self._waiting.items()
            if waiting or partition in self._gone or self.offsets.partitions[partition].uncommitted >= most
        }
        if full != self._paused:
            reader.pause(*(TopicPartition(*partition) for partition in full - self._paused))
            reader.resume(*(TopicPartition(*partition) for partition in self._paused - full))
            self._paused = full

    # --- emitting ---------------------------------------------------------------

    def _emit_waiting(self, clients: Clients) -> bool:
        """Emits one record; returns False if there is none that may be emitted."""
        most = self._config.max_uncommitted_offsets
        for partition, waiting in self._waiting.items():
            offsets = self.offsets.partitions[partition]
            while waiting and offsets.uncommitted < most:
                record = waiting[0]
                if self._commits_first and not self._is_committed(clients, partition, record.offset):
                    break
                waiting.popleft()
                offsets.emit(record.offset, record.leader_epoch)
                if self._emit(record):
                    return True
                offsets.ack(record.offset)
        return False

    def _is_committed(self, clients: Clients, partition: Partition, offset: int) -> bool:
        committed = clients.committed.get(partition)
        same = committed is not None and committed.topic_id == self.offsets.topic_ids.get(partition[0])
        return same and committed is not None and offset < committed.offset

    def _emit_again(self, now: int) -> bool:
        assert self._replay is not None
        emitted = False
        for (topic, number), offset, record in self._replay.step(now):
            offsets = self.offsets.partitions.get((topic, number))
            if offsets is None or offset not in offsets.failures:
                continue
            failure = offsets.emit_again(offset)
            if record is None:
                emitted |= self._bury(topic, number, offset, None, _GONE)
            elif failure.reason is not None:
                emitted |= self._bury(topic, number, offset, record, failure.reason)
            elif self._emit(record):
                emitted = True
            else:
                offsets.ack(offset)
        return emitted

    def _emit(self, record: Any) -> bool:
        """Emits a record's tuple; returns False if it has none."""
        config, collector = self._config, self._collector
        topic, partition, offset = record.topic, record.partition, record.offset
        try:
            values = config.translator.apply(self._translated(record))
        except Exception as error:  # whatever users' functions raise
            why = f"the record can't be translated: {type(error).__name__}: {error}"
            if config.dead_letter_stream is None:
                raise KafkaSpoutError(
                    f"{self._name}: topic {topic} partition {partition} offset {offset}: {why}; "
                    "with set_dead_letter_stream such records go to that stream"
                ) from error
            return self._bury(topic, partition, offset, record, why)
        stream = values.stream if isinstance(values, KafkaTuple) else DEFAULT_STREAM
        if values is None:
            if not config.emit_null_tuples:
                return False
            streams = config.translator.streams()
            stream = DEFAULT_STREAM if DEFAULT_STREAM in streams else next(iter(streams))
            values = [None] * len(streams[stream])
        message_id = self._message_id(topic, partition, offset) if self._tracks else None
        collector.emit(values, message_id=message_id, stream=stream)
        return self._tracks or self._untracked(topic, partition, offset)

    def _untracked(self, topic: str, partition: int, offset: int) -> bool:
        self.offsets.partitions[topic, partition].ack(offset)
        return True

    def _bury(self, topic: str, partition: int, offset: int, record: Any, why: str) -> bool:
        """Emits a record on the dead-letter stream; returns False if there is no such stream."""
        offsets = self.offsets.partitions[topic, partition]
        stream = self._config.dead_letter_stream
        if stream is None:
            _log.warning("%s gives up topic %s partition %d offset %d: %s", self._name, topic, partition, offset, why)
            offsets.ack(offset)
            return False
        failures = offsets.times_failed(offset)
        offsets.bury(offset, why)
        content = [None] * 4 if record is None else [record.key, record.value, record.timestamp, _headers(record)]
        values = [topic, partition, offset, *content, why, failures]
        self._collector.emit(values, message_id=self._message_id(topic, partition, offset), stream=stream)
        return True

    def _translated(self, record: Any) -> KafkaRecord:
        config = self._config
        return KafkaRecord.read(
            (record.topic, record.partition, record.offset),
            (record.key, config.key_deserializer),
            (record.value, config.value_deserializer),
            record.timestamp,
            _headers(record),
        )


def _headers(record: Any) -> tuple[tuple[str, bytes | None], ...]:
    return tuple((name, value) for name, value in record.headers)
