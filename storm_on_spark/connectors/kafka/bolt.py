"""A Kafka bolt in plain Python, for clusters without the jar of Spark's Kafka sink."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

from storm_on_spark.api.collector import OutputCollector
from storm_on_spark.api.component import BaseRichBolt
from storm_on_spark.api.context import TopologyContext
from storm_on_spark.api.errors import ConfigError, TupleError
from storm_on_spark.api.tuple import Tuple
from storm_on_spark.connectors.kafka.clients import connected, described, kafka_python
from storm_on_spark.connectors.kafka.config import checked_servers, checked_topic
from storm_on_spark.connectors.kafka.errors import KafkaBoltError

_log = logging.getLogger(__name__)

TopicSelector = Callable[[Tuple], "str | None"]
"""Returns the topic of a tuple; None drops the tuple, which is acked."""
TupleMapper = Callable[[Tuple], "tuple[str | bytes | None, str | bytes | None]"]
"""Returns key and value of a tuple's record; texts are written as UTF-8."""

_OURS: Final[Mapping[str, str]] = {
    "bootstrap_servers": "they are the first argument",
    "key_serializer": "with_tuple_to_kafka_mapper returns bytes or text",
    "value_serializer": "with_tuple_to_kafka_mapper returns bytes or text",
    "transactional_id": "a transaction can't span the attempts at a micro-batch",
    "kafka_client": "it can't be replaced",
    "selector": "it can't be replaced",
}
_DEFAULTS: Final[Mapping[str, Any]] = {
    "linger_ms": 5,
    "max_block_ms": 10_000,
    "request_timeout_ms": 10_000,
    "delivery_timeout_ms": 20_000,
    "bootstrap_timeout_ms": 5_000,
    "allow_auto_create_topics": False,
}
_MOST_REPORTED: Final = 20
"""Errors of one micro-batch that are reported; the number of tuples that failed is in the last."""
_GRACE_SECS: Final = 5.0


class FieldNameTopicSelector:
    """Takes the topic from a field.

    Args:
        field: its name.
        default: the topic of tuples without that field, or with None in it; None drops them.
    """

    def __init__(self, field: str, default: str | None = None) -> None:
        self.field = field
        self.default = default

    def __call__(self, tup: Tuple) -> str | None:
        """Returns the topic."""
        topic = tup.get_value_by_field(self.field) if tup.contains(self.field) else None
        return self.default if topic is None else str(topic)


class FieldNameBasedTupleToKafkaMapper:
    """Takes key and value from fields; a tuple without the field of the key has no key.

    Args:
        key: the name of the field of the key.
        message: of the value.
    """

    def __init__(self, key: str = "key", message: str = "message") -> None:
        self.key = key
        self.message = message

    def __call__(self, tup: Tuple) -> tuple[Any, Any]:
        """Returns key and value."""
        key = tup.get_value_by_field(self.key) if tup.contains(self.key) else None
        return key, tup.get_value_by_field(self.message)


class PlainKafkaBolt(BaseRichBolt):
    """Writes a record for each tuple, by kafka-python.

    A tuple is acked once Kafka has confirmed its record, at the end of its micro-batch. Without a confirmation the
    tuple fails, and the spout emits it again: a record may be in the topic more than once, and never not at all.
    The order of a task's records is that of its tuples. Ticks are acked and write nothing.

    The methods `with_…` and `set_…` return the bolt, as those of storm-kafka-client's `KafkaBolt` do.

    Args:
        bootstrap_servers: `host:port,host:port,…`.

    Raises:
        ConfigError: the servers make no sense.
        SetupError: kafka-python is not installed.

    Example:
        >>> bolt = PlainKafkaBolt("127.0.0.1:9092").with_topic_selector("counts")
        >>> bolt = bolt.with_tuple_to_kafka_mapper(FieldNameBasedTupleToKafkaMapper("word", "count"))
    """

    stateless: ClassVar[bool | None] = True

    def __init__(self, bootstrap_servers: str) -> None:
        kafka_python("bolt")
        self._servers = checked_servers(bootstrap_servers)
        self._selector: TopicSelector | None = None
        self._mapper: TupleMapper = FieldNameBasedTupleToKafkaMapper()
        self._properties: dict[str, Any] = {}
        self._fire_and_forget = False

    def with_topic_selector(self, topic: str | TopicSelector) -> PlainKafkaBolt:
        """Says where records go: the name of a topic, or a function that returns it for a tuple.

        Raises:
            ConfigError: the name can't be a topic's, or it is no function.
        """
        if callable(topic):
            self._selector = topic
        else:
            name = checked_topic(topic, "topic")
            self._selector = lambda tup: name
        return self

    def with_tuple_to_kafka_mapper(self, mapper: TupleMapper) -> PlainKafkaBolt:
        """Says what a record holds: a function that returns key and value for a tuple.

        Raises:
            ConfigError: it is no function.
        """
        if not callable(mapper):
            raise ConfigError(f"a mapper is a function of a tuple (given {mapper!r:.100})", key="mapper")
        self._mapper = mapper
        return self

    def with_producer_properties(self, properties: Mapping[str, Any]) -> PlainKafkaBolt:
        """Adds settings of kafka-python's producer; dots in their names stand for underscores.

        Raises:
            ConfigError: there is no such setting, or it is not for the user.
        """
        for name, value in properties.items():
            key = name.replace(".", "_")
            if key in _OURS:
                raise ConfigError(f"{name!r} can't be set: {_OURS[key]}", key=name)
            if key not in kafka_python("bolt").KafkaProducer.DEFAULT_CONFIG:
                raise ConfigError(f"kafka-python has no setting {name!r} for a producer", key=name)
            self._properties[key] = value
        return self

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
        if self._selector is None:
            raise ConfigError("it was not said where records go: with_topic_selector", key="topic")
        self._select, self._collector = self._selector, collector
        self._name = f"{context.this_component_id} (task {context.this_task_id})"
        self._kafka_errors: Any = kafka_python("bolt").errors
        self._producer: Any = None
        self._sent: list[tuple[Tuple, Any]] = []
        self._errors: dict[str, int] = {}
        #: What the micro-batch did not get: topics, and "" for a connection. It waits once for each.
        self._missing: dict[str, Exception] = {}

    def execute(self, tup: Tuple) -> None:
        """Hands a record over to the producer."""
        if tup.is_tick:
            self._collector.ack(tup)
            return
        try:
            future = self._send(tup)
        except Exception as error:  # also what the user's functions raise
            self._fail(tup, error)
            return
        if future is None or self._fire_and_forget:
            self._collector.ack(tup)
        else:
            self._sent.append((tup, future))

    def finish_micro_batch(self) -> None:
        """Waits until Kafka has answered for all records of the micro-batch, and acks or fails their tuples."""
        sent, self._sent = self._sent, []
        if sent:
            timeout = self._settings()["delivery_timeout_ms"] / 1000 + _GRACE_SECS
            until = time.monotonic() + timeout
            # What was not delivered says so itself.
            with contextlib.suppress(Exception):
                self._producer.flush(timeout)
            for tup, future in sent:
                try:
                    future.get(max(0.0, until - time.monotonic()))
                except Exception as error:
                    self._fail(tup, error)
                else:
                    self._collector.ack(tup)
        self._missing.clear()
        errors, self._errors = self._errors, {}
        for text, count in list(errors.items())[:_MOST_REPORTED]:
            self._collector.report_error(KafkaBoltError(f"{self._name}: {count} records were not written: {text}"))

    def cleanup(self) -> None:
        """Closes the connection."""
        if self._producer is not None:
            self._producer.close(timeout=_GRACE_SECS)

    def _send(self, tup: Tuple) -> Any:
        topic = self._select(tup)
        if topic is None:
            return None
        key, value = self._mapper(tup)
        record = {"key": _bytes("key", key), "value": _bytes("value", value)}
        checked_topic(topic, "topic")
        if self._producer is None:
            self._producer = self._once("", lambda: connected("KafkaProducer", self._settings()))
        return self._once(topic, lambda: self._producer.send(topic, **record))

    def _once(self, what: str, call: Callable[[], Any]) -> Any:
        """Calls what may wait for a broker, unless this micro-batch has waited for that already."""
        if what in self._missing:
            raise self._missing[what]
        try:
            return call()
        except (ConnectionError, TimeoutError, self._kafka_errors.KafkaError) as error:
            self._missing[what] = error
            raise

    def _settings(self) -> dict[str, Any]:
        return {**_DEFAULTS, **self._properties, "bootstrap_servers": list(self._servers)}

    def _fail(self, tup: Tuple, error: Exception) -> None:
        text = f"{type(error).__name__}: {described(error)}"
        self._errors[text] = self._errors.get(text, 0) + 1
        self._collector.fail(tup)


def _bytes(what: str, value: object) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    raise TupleError(f"the {what} of a record is bytes, text or None, not {value!r:.100} ({type(value).__name__})")
