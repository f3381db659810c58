"""Records of Kafka, and how they become tuples."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from storm_on_spark.api.errors import ConfigError
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.streams.stream import DEFAULT_STREAM

Deserialized = tuple["bytes | None", Callable[[bytes], Any]]
"""Bytes of a key or value, and the function that makes a value of them."""


@dataclass(frozen=True)
class KafkaRecord:
    """One record of a topic, as a translator gets it."""

    topic: str
    partition: int
    offset: int
    key: Any
    """As the deserializer of keys returns it; None for a record without a key."""
    value: Any
    """As the deserializer of values returns it; None for a tombstone."""
    timestamp: int
    """Milliseconds since the epoch, of the producer or of the broker, as the topic is configured; -1 for none."""
    headers: tuple[tuple[str, bytes | None], ...] = ()

    @classmethod
    def read(
        cls,
        where: tuple[str, int, int],
        key: Deserialized,
        value: Deserialized,
        timestamp: int,
        headers: Iterable[tuple[str, bytes | None]],
    ) -> KafkaRecord:
        """Returns a record of which key and value are deserialized when they are looked at first.

        Args:
            where: topic, partition and offset.
            key: its bytes, and the function for them.
            value: the same of the value.
            timestamp: milliseconds since the epoch.
            headers: names and values.
        """
        record = cls.__new__(cls)
        topic, partition, offset = where
        known = {"topic": topic, "partition": partition, "offset": offset, "timestamp": timestamp}
        record.__dict__.update(known, headers=tuple(headers), _unread={"key": key, "value": value})
        return record

    if not TYPE_CHECKING:  # it would hide misspelt names from type checkers

        def __getattr__(self, name: str) -> Any:
            """Deserializes key or value."""
            unread = self.__dict__.get("_unread", {})
            if name not in unread:
                raise AttributeError(f"a KafkaRecord has no {name!r}")
            data, function = unread[name]
            found = self.__dict__[name] = None if data is None else function(data)
            return found

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles key and value, not the functions that make them."""
        return type(self), tuple(getattr(self, each.name) for each in dataclasses.fields(self))


class KafkaTuple(list[Any]):
    """Values of a tuple that name their stream; a plain list goes to the default stream.

    Example:
        >>> KafkaTuple(["storm"], stream="words").stream
        'words'
    """

    def __init__(self, values: Iterable[Any] = (), stream: str = DEFAULT_STREAM) -> None:
        super().__init__(values)
        self.stream = stream

    def routed_to(self, stream: str) -> KafkaTuple:
        """Returns the same values for another stream; Storm's way to say it."""
        return KafkaTuple(self, stream)


class RecordTranslator(ABC):
    """Makes a tuple of each record."""

    @abstractmethod
    def apply(self, record: KafkaRecord) -> Sequence[Any] | None:
        """Returns a record's tuple: a list, or a `KafkaTuple` that names its stream; None for no tuple at all."""

    @abstractmethod
    def streams(self) -> Mapping[str, Fields]:
        """Returns the streams that tuples go to, with their fields."""


class DefaultRecordTranslator(RecordTranslator):
    """Emits topic, partition, offset, key and value on the default stream."""

    def apply(self, record: KafkaRecord) -> Sequence[Any]:
        """Returns the five values."""
        return [record.topic, record.partition, record.offset, record.key, record.value]

    def streams(self) -> Mapping[str, Fields]:
        """Returns the default stream."""
        return {DEFAULT_STREAM: Fields("topic", "partition", "offset", "key", "value")}


class SimpleRecordTranslator(RecordTranslator):
    """Makes tuples of one stream by a function.

    Args:
        function: gets a `KafkaRecord` and returns the values, or None for no tuple.
        fields: their names.
        stream: where they go.

    Example:
        >>> translator = SimpleRecordTranslator(lambda record: [record.value], Fields("line"))
        >>> translator.apply(KafkaRecord("t", 0, 0, None, "to be", -1))
        ['to be']
    """

    def __init__(
        self, function: Callable[[KafkaRecord], Sequence[Any] | None], fields: Fields, stream: str = DEFAULT_STREAM
    ) -> None:
        self._function, self._fields, self._stream = function, fields, stream

    def apply(self, record: KafkaRecord) -> KafkaTuple | None:
        """Calls the function."""
        values = self._function(record)
        return None if values is None else KafkaTuple(values, self._stream)

    def streams(self) -> Mapping[str, Fields]:
        """Returns the one stream."""
        return {self._stream: self._fields}


class ByTopicRecordTranslator(RecordTranslator):
    """Chooses the translator, and with it the stream, by the record's topic.

    Args:
        default: for topics that `for_topic` does not name.

    Raises:
        ConfigError: a topic is named twice, or a stream has different fields.

    Example:
        >>> lines = SimpleRecordTranslator(lambda record: [record.value], Fields("line"), "lines")
        >>> clicks = SimpleRecordTranslator(lambda record: [record.key], Fields("user"), "clicks")
        >>> sorted(ByTopicRecordTranslator(lines).for_topic("clicks", clicks).streams())
        ['clicks', 'lines']
    """

    def __init__(self, default: RecordTranslator) -> None:
        self._default = default
        self._by_topic: dict[str, RecordTranslator] = {}
        self._streams = dict(default.streams())

    def for_topic(self, topic: str, translator: RecordTranslator) -> ByTopicRecordTranslator:
        """Names the translator for a topic; returns this object."""
        if topic in self._by_topic:
            raise ConfigError(f'topic "{topic}" has a translator already')
        for stream, fields in translator.streams().items():
            known = self._streams.setdefault(stream, fields)
            if known != fields:
                raise ConfigError(
                    f'the translator for topic "{topic}" gives stream "{stream}" the fields {list(fields)}, and '
                    f"another one {list(known)}; name another stream"
                )
        self._by_topic[topic] = translator
        return self

    def apply(self, record: KafkaRecord) -> Sequence[Any] | None:
        """Calls the topic's translator."""
        return self._by_topic.get(record.topic, self._default).apply(record)

    def streams(self) -> Mapping[str, Fields]:
        """Returns the streams of all of them."""
        return dict(self._streams)


def as_text(data: bytes) -> str | bytes:
    r"""Returns a key or a value as text, or as it is if it is not UTF-8: the default deserializer.

    Example:
        >>> as_text(b"storm"), as_text(b"\xff\x01")
        ('storm', b'\xff\x01')
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data


def as_bytes(data: bytes) -> bytes:
    """Returns a key or a value as it is: a deserializer."""
    return data
