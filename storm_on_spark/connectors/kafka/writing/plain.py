"""A Kafka bolt in plain Python, for clusters without the jar of Spark's Kafka sink."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

from storm_on_spark.api.component import BaseRichBolt
from storm_on_spark.api.errors import ConfigError
from storm_on_spark.api.task.collector import OutputCollector
from storm_on_spark.api.task.context import TopologyContext
from storm_on_spark.api.tuple import Tuple
from storm_on_spark.connectors.kafka.clients import connected, kafka_python
from storm_on_spark.connectors.kafka.writing.record_mapping import DEFAULTS, Failing, OutRecord, RecordMaking
from storm_on_spark.connectors.sinks.dividing import divided

_log = logging.getLogger(__name__)

_DEFAULTS: Final[Mapping[str, Any]] = {
    **DEFAULTS,
    "bootstrap_timeout_ms": 5_000,
    "allow_auto_create_topics": False,
}
_GRACE_SECS: Final = 5.0


class PlainKafkaBolt(BaseRichBolt, RecordMaking):
    """Writes a record for each tuple, by kafka-python.

    A tuple is acked once Kafka has confirmed its record, at the end of its micro-batch. Without a confirmation the
    tuple fails, and the spout emits it again: a record may be in the topic more than once, and never not at all.
    The order of a task's records is that of its tuples. Kafka refuses the records of a batch together: they are sent
    again in smaller ones, until the tuple of the refused record fails alone. Ticks are acked and write nothing.

    Args:
        bootstrap_servers: `host:port,host:port,…`.

    Raises:
        ConfigError: the servers make no sense.
        SetupError: kafka-python is not installed.

    Example:
        >>> from storm_on_spark.connectors.kafka import FieldNameBasedTupleToKafkaMapper
        >>> bolt = PlainKafkaBolt("127.0.0.1:9092").with_topic_selector("counts")
        >>> bolt = bolt.with_tuple_to_kafka_mapper(FieldNameBasedTupleToKafkaMapper("word", "count"))
    """

    stateless: ClassVar[bool | None] = True

    def __init__(self, bootstrap_servers: str) -> None:
        kafka_python("bolt")
        RecordMaking.__init__(self, bootstrap_servers)
        self._fire_and_forget = False

    def _checked_properties(self, properties: Mapping[str, Any]) -> Mapping[str, Any]:
        known = kafka_python("bolt").KafkaProducer.DEFAULT_CONFIG
        for name in properties:
            if name.replace(".", "_") not in known:
                raise ConfigError(f"kafka-python has no setting {name!r} for a producer", key=name)
        return {name.replace(".", "_"): value for name, value in properties.items()}

    def set_fire_and_forget(self, value: bool) -> PlainKafkaBolt:
        """Says whether tuples are acked when their record is handed over, whatever becomes of it."""
        if not isinstance(value, bool):
            raise ConfigError(f"fire_and_forget must be a bool (given {value!r:.100})", key="fire_and_forget")
        self._fire_and_forget = value
        return self

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Notes the collector; the first tuple connects.

        Raises:
            ConfigError: it was not said where records go.
        """
        self._check_told()
        self._collector = collector
        self._failing = Failing(f"{context.this_component_id} (task {context.this_task_id})", collector)
        self._kafka_errors: Any = kafka_python("bolt").errors
        self._producer: Any = None
        self._sent: list[tuple[Tuple, OutRecord, Any]] = []
        #: What the micro-batch did not get: topics, and "" for a connection. It waits once for each.
        self._missing: dict[str, Exception] = {}

    def execute(self, tup: Tuple) -> None:
        """Hands a record over to the producer."""
        if tup.is_tick:
            self._collector.ack(tup)
            return
        try:
            record = self._record(tup)
            future = None if record is None else self._send(record)
        except Exception as error:  # also what the user's functions raise
            self._failing.fail(tup, error)
            return
        if record is None or self._fire_and_forget:
            self._collector.ack(tup)
        else:
            self._sent.append((tup, record, future))

    def finish_micro_batch(self) -> None:
        """Waits until Kafka has answered for all records of the micro-batch, and acks or fails their tuples."""
        sent, self._sent = self._sent, []
        if sent:
            refused = []
            answers = self._answers([future for _, _, future in sent])
            for (tup, record, _), error in zip(sent, answers, strict=True):
                if error is None:
                    self._collector.ack(tup)
                elif self._refuses(error):
                    refused.append((tup, record))
                else:
                    self._failing.fail(tup, error)
            self._send_divided(refused)
        self._missing.clear()
        self._failing.report()

    def _answers(self, futures: Sequence[Any]) -> list[Exception | None]:
        """Waits for Kafka; returns for each record why it was not written, or None."""
        timeout = self._settings()["delivery_timeout_ms"] / 1000 + _GRACE_SECS
        until = time.monotonic() + timeout
        # What was not delivered says so itself.
        with contextlib.suppress(Exception):
            self._producer.flush(timeout)
        found: list[Exception | None] = []
        for future in futures:
            try:
                future.get(max(0.0, until - time.monotonic()))
            except Exception as error:
                found.append(error)
            else:
                found.append(None)
        if any(error is not None and not getattr(error, "retriable", False) for error in found):
            # It is idempotent, and sends nothing more after such an error.
            self._close()
        return found

    def _close(self) -> None:
        if self._producer is not None:
            self._producer.close(timeout=_GRACE_SECS)
            self._producer = None

    def _refuses(self, error: Exception) -> bool:
        """Returns whether a record of the same batch was refused, and not all records that Kafka is sent."""
        errors = self._kafka_errors
        # kafka-python has no class of its own for the neighbours of a record that the broker names.
        return type(error) is errors.KafkaError or isinstance(
            error,
            (
                errors.InvalidRecordError,
                errors.InvalidTimestampError,
                errors.CorruptRecordError,
                errors.MessageSizeTooLargeError,
                errors.RecordListTooLargeError,
            ),
        )

    def _send_divided(self, refused: Sequence[tuple[Tuple, OutRecord]]) -> None:
        """Sends records again whose batches were refused; acks or fails their tuples."""
        written: set[int] = set()

        def write(part: Sequence[tuple[Tuple, OutRecord]]) -> Exception | None:
            # Kafka takes a batch as a whole, and a part may be several: of several partitions.
            left = [record for _, record in part if id(record) not in written]
            answers = self._answers([self._send(record) for record in left])
            written.update(id(record) for record, error in zip(left, answers, strict=True) if error is None)
            errors = [error for error in answers if error is not None]
            for error in errors:
                if not self._refuses(error):
                    raise error
            return errors[0] if errors else None

        done = 0
        try:
            for part, refusal in divided(refused, write):
                done += len(part)
                for tup, _ in part:
                    if refusal is None:
                        self._collector.ack(tup)
                    else:
                        self._failing.fail(tup, refusal)
        except Exception as error:
            for tup, record in refused[done:]:
                if id(record) in written:
                    self._collector.ack(tup)
                else:
                    self._failing.fail(tup, error)

    def cleanup(self) -> None:
        """Closes the connection."""
        self._close()

    def _send(self, record: OutRecord) -> Any:
        if self._producer is None:
            self._producer = self._once("", lambda: connected("KafkaProducer", self._settings()))
        return self._once(
            record.topic,
            lambda: self._producer.send(record.topic, record.value, record.key, record.headers),
        )

    def _once(self, what: str, call: Callable[[], Any]) -> Any:
        """Calls what may wait for a broker, unless this micro-batch has waited for that already."""
        if what in self._missing:
            raise self._missing[what]
        try:
            return call()
        except self._kafka_errors.MessageSizeTooLargeError:
            raise  # it says nothing about the topic's other records
        except (ConnectionError, TimeoutError, self._kafka_errors.KafkaError) as error:
            self._missing[what] = error
            raise

    def _settings(self) -> dict[str, Any]:
        return {**_DEFAULTS, **self._properties, "bootstrap_servers": list(self._servers)}
