"""How both Kafka bolts turn tuples into records: topic, key and value."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Final, NamedTuple, TypeVar

from storm_on_spark.api.errors import ConfigError, TupleError
from storm_on_spark.api.task.collector import OutputCollector
from storm_on_spark.api.tuple import Tuple
from storm_on_spark.connectors.kafka.clients import described
from storm_on_spark.connectors.kafka.config import checked_servers, checked_topic
from storm_on_spark.connectors.kafka.errors import KafkaBoltError
from storm_on_spark.connectors.kafka.names import StormNames

TopicSelector = Callable[[Tuple], "str | None"]
"""Returns the topic of a tuple; None drops the tuple, which is acked."""
TupleMapper = Callable[[Tuple], "tuple[str | bytes | None, str | bytes | None]"]
"""Returns key and value of a tuple's record; texts are written as UTF-8."""
HeaderMapper = Callable[[Tuple], "Iterable[tuple[str, str | bytes | None]]"]
"""Returns the headers of a tuple's record."""

DEFAULTS: Final[Mapping[str, Any]] = {
    "linger_ms": 5,
    "max_block_ms": 10_000,
    "request_timeout_ms": 10_000,
    "delivery_timeout_ms": 20_000,
}
"""Of a producer, by kafka-python's names: what can't be written fails before a user takes it for hung."""
_OURS: Final[Mapping[str, str]] = {
    "bootstrap_servers": "they are the first argument",
    "key_serializer": "with_tuple_to_kafka_mapper returns bytes or text",
    "value_serializer": "with_tuple_to_kafka_mapper returns bytes or text",
    "transactional_id": "a transaction can't span the attempts at a micro-batch",
    "kafka_client": "it can't be replaced",
    "selector": "it can't be replaced",
}
"""Settings of a producer that are not for the user, and why."""
_MOST_REPORTED: Final = 20
"""Errors of one micro-batch that are reported; the number of tuples that failed is in the last."""


class OutRecord(NamedTuple):
    """A record to be written."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


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


_Bolt = TypeVar("_Bolt", bound="RecordMaking")


class RecordMaking(StormNames):
    """The settings of a Kafka bolt's producer and records.

    The methods `with_…` return the bolt, as storm-kafka-client's do.

    Args:
        bootstrap_servers: `host:port,host:port,…`.

    Raises:
        ConfigError: the servers make no sense.
    """

    refused: ClassVar[Mapping[str, str]] = {
        "set_async": "a micro-batch waits once for all its records",
        "with_producer_callback": "the record's tuple is acked or failed",
    }

    def __init__(self, bootstrap_servers: str) -> None:
        self._servers = checked_servers(bootstrap_servers)
        self._properties: dict[str, Any] = {}
        self._selector: TopicSelector | None = None
        #: Where all records go; None where a function chooses.
        self._topic: str | None = None
        self._mapper: TupleMapper = FieldNameBasedTupleToKafkaMapper()
        self._headers: HeaderMapper | None = None

    def with_producer_properties(self: _Bolt, properties: Mapping[str, Any]) -> _Bolt:
        """Adds settings of a producer, by kafka-python's names, or with dots as Kafka's own has them.

        Raises:
            ConfigError: one is not for the user, or the bolt's producer has no such setting.
        """
        for name in properties:
            if (reason := _OURS.get(name.replace(".", "_"))) is not None:
                raise ConfigError(f"{name!r} can't be set: {reason}", key=name)
        self._properties.update(self._checked_properties(properties))
        return self

    @abstractmethod
    def _checked_properties(self, properties: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns settings as the bolt keeps them.

        Raises:
            ConfigError: it has no such setting.
        """

    def with_topic_selector(self: _Bolt, topic: str | TopicSelector) -> _Bolt:
        """Sets the topic of records: its name, or a function that returns it for a tuple.

        Raises:
            ConfigError: the name can't be a topic's, or it is not a function.
        """
        if callable(topic):
            self._selector, self._topic = topic, None
        else:
            name = self._topic = checked_topic(topic, "topic")
            self._selector = lambda tup: name
        return self

    def with_tuple_to_kafka_mapper(self: _Bolt, mapper: TupleMapper) -> _Bolt:
        """Sets the mapper of records: a function that returns key and value for a tuple.

        Raises:
            ConfigError: it is not a function.
        """
        if not callable(mapper):
            raise ConfigError(f"a mapper is a function of a tuple (given {mapper!r:.100})", key="mapper")
        self._mapper = mapper
        return self

    def with_headers(self: _Bolt, headers: HeaderMapper) -> _Bolt:
        """Says which headers a record has: a function that returns names and values for a tuple.

        Raises:
            ConfigError: it is not a function.
        """
        if not callable(headers):
            raise ConfigError(f"headers are made by a function of a tuple (given {headers!r:.100})", key="headers")
        self._headers = headers
        return self

    def _check_told(self) -> None:
        """Does nothing where it is known where records go.

        Raises:
            ConfigError: it was not said.
        """
        if self._selector is None:
            raise ConfigError("no topic is given for the records: call with_topic_selector", key="topic")

    def _record(self, tup: Tuple) -> OutRecord | None:
        """Returns a tuple's record, None for none; raises what the user's functions raise, or what is wrong."""
        assert self._selector is not None
        topic = self._selector(tup)
        if topic is None:
            return None
        key, value = self._mapper(tup)
        headers = [] if self._headers is None else [_header(each) for each in self._headers(tup)]
        return OutRecord(checked_topic(topic, "topic"), _bytes("key", key), _bytes("value", value), headers)


class Failing:
    """Fails the tuples of one micro-batch whose records can't be written, and reports each reason once.

    Args:
        name: how reports call the task.
        collector: of the task.
    """

    def __init__(self, name: str, collector: OutputCollector) -> None:
        self._name, self._collector = name, collector
        self._errors: dict[str, int] = {}

    def fail(self, tup: Tuple, error: Exception) -> None:
        """Fails a tuple, and notes why."""
        text = f"{type(error).__name__}: {described(error)}"
        self._errors[text] = self._errors.get(text, 0) + 1
        self._collector.fail(tup)

    def report(self) -> None:
        """Reports what was noted, at the end of a micro-batch."""
        errors, self._errors = self._errors, {}
        for text, count in list(errors.items())[:_MOST_REPORTED]:
            self._collector.report_error(KafkaBoltError(f"{self._name}: {count} records were not written: {text}"))


def _header(given: Any) -> tuple[str, bytes | None]:
    if not isinstance(given, tuple) or len(given) != 2 or not isinstance(given[0], str):
        raise TupleError(f"a header of a record is a tuple of name and value, not {given!r:.100}")
    return given[0], _bytes("header", given[1])


def _bytes(what: str, value: object) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    raise TupleError(f"the {what} of a record is bytes, text or None, not {value!r:.100} ({type(value).__name__})")
