"""What stands for storm-kafka-client's Java classes: in Flux files, in streamparse topologies, and over Thrift."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from storm_on_spark.api.errors import ConfigError, InvalidTopologyError
from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
from storm_on_spark.api.streams.stream import DEFAULT_STREAM, StreamSpec
from storm_on_spark.api.tuple import Tuple
from storm_on_spark.connectors.kafka import config
from storm_on_spark.connectors.kafka.config import checked_servers, checked_topic
from storm_on_spark.connectors.kafka.reading.plain import PlainKafkaSpout
from storm_on_spark.connectors.kafka.records import KafkaRecord, SimpleRecordTranslator, as_bytes, as_text
from storm_on_spark.connectors.kafka.writing.plain import PlainKafkaBolt
from storm_on_spark.connectors.kafka.writing.record_mapping import FieldNameBasedTupleToKafkaMapper

TOPIC: Final = "topic"
"""Key of a `KafkaBolt`'s configuration, as in Storm."""
PRODUCER_PROPERTIES: Final = "kafka.broker.properties"
"""The same, as in Storm before 1.0."""
CONSUMER_PROPERTIES: Final = "kafka.consumer.properties"
"""Key of a `KafkaSpout`'s configuration."""

_SERIALIZATION: Final = "org.apache.kafka.common.serialization."
_RECORD_FIELDS: Final = ("topic", "partition", "offset", "key", "value")


def _number(form: str, data: bytes) -> Any:
    """Returns a number as Kafka's serializers write it."""
    return struct.unpack(form, data)[0]


_DESERIALIZERS: Final[Mapping[str, Callable[[bytes], Any]]] = {
    f"{_SERIALIZATION}StringDeserializer": as_text,
    f"{_SERIALIZATION}ByteArrayDeserializer": as_bytes,
    f"{_SERIALIZATION}IntegerDeserializer": partial(_number, ">i"),
    f"{_SERIALIZATION}LongDeserializer": partial(_number, ">q"),
    f"{_SERIALIZATION}FloatDeserializer": partial(_number, ">f"),
    f"{_SERIALIZATION}DoubleDeserializer": partial(_number, ">d"),
}
_SERIALIZERS: Final = (
    f"{_SERIALIZATION}StringSerializer",
    f"{_SERIALIZATION}ByteArraySerializer",
    "kafka.serializer.StringEncoder",
    "kafka.serializer.DefaultEncoder",
)


class Properties(dict[str, Any]):
    """Java's `Properties`.

    Example:
        >>> properties = Properties()
        >>> properties.set_property("acks", "1")
        >>> properties
        {'acks': '1'}
    """

    def put(self, key: str, value: Any) -> None:
        """Sets a property."""
        self[key] = value

    def set_property(self, key: str, value: str) -> None:
        """Sets a property."""
        self[key] = value

    def put_all(self, others: Mapping[str, Any]) -> None:
        """Sets properties."""
        self.update(others)


class KafkaSpoutConfigBuilder(config.KafkaSpoutConfigBuilder):
    """`KafkaSpoutConfig.Builder`, with Java's names of a consumer's properties.

    Args:
        bootstrap_servers: `host:port,host:port,…`.
        topics: names of topics, or lists of them.

    Example:
        >>> builder = KafkaSpoutConfigBuilder("127.0.0.1:9092", ["lines"])
        >>> built = builder.set_prop({"group.id": "words", "value.deserializer":
        ...                           "org.apache.kafka.common.serialization.ByteArrayDeserializer"}).build()
        >>> built.topics, built.group_id, built.value_deserializer(b"x")
        (('lines',), 'words', b'x')
    """

    def __init__(self, bootstrap_servers: str, *topics: str | Sequence[str]) -> None:
        names = [name for given in topics for name in ([given] if isinstance(given, str) else given)]
        super().__init__(bootstrap_servers, *names)

    def set_prop(self, name: str | Mapping[str, Any], value: Any = None) -> config.KafkaSpoutConfigBuilder:
        """Sets a property, or several."""
        if isinstance(name, Mapping):
            for key, each in name.items():
                self.set_prop(key, each)
            return self
        if name in ("key.deserializer", "value.deserializer"):
            known = _DESERIALIZERS.get(str(value))
            if known is None:
                raise ConfigError(
                    f"{name} is the Java class {value!r:.200}; known are those of {_SERIALIZATION}* for "
                    "String, ByteArray, Integer, Long, Float and Double",
                    key=name,
                )
            return self.set_key_deserializer(known) if name.startswith("key") else self.set_value_deserializer(known)
        return super().set_prop(name, value)

    def set_start_time_stamp(self, timestamp_ms: int) -> config.KafkaSpoutConfigBuilder:
        """Sets the time for `FirstPollOffsetStrategy.TIMESTAMP`, as Java spells it."""
        return self.set_start_timestamp(timestamp_ms)


class KafkaSpoutConfig:
    """`KafkaSpoutConfig`, made of its builder."""

    def __new__(cls, builder: config.KafkaSpoutConfigBuilder) -> config.KafkaSpoutConfig:  # type: ignore[misc]
        """Returns what the builder builds."""
        if not isinstance(builder, config.KafkaSpoutConfigBuilder):
            raise ConfigError(f"KafkaSpoutConfig takes its builder (given {builder!r:.100})")
        return builder.build()

    @staticmethod
    def builder(bootstrap_servers: str, *topics: str | Sequence[str]) -> KafkaSpoutConfigBuilder:
        """Returns a builder."""
        return KafkaSpoutConfigBuilder(bootstrap_servers, *topics)


class DefaultTopicSelector:
    """Always the same topic.

    Example:
        >>> DefaultTopicSelector("counts")(None)
        'counts'
    """

    def __init__(self, topic: str) -> None:
        self.topic = checked_topic(topic, TOPIC)

    def __call__(self, tup: Tuple | None) -> str:
        """Returns it."""
        return self.topic


class FieldIndexTopicSelector:
    """Takes the topic from the field at an index; the default one where there is no such field, or None in it."""

    def __init__(self, index: int, default: str | None = None) -> None:
        self.index, self.default = index, default

    def __call__(self, tup: Tuple) -> str | None:
        """Returns the topic."""
        topic = tup.values[self.index] if self.index < len(tup.values) else None
        return self.default if topic is None else str(topic)


class KafkaBolt(PlainKafkaBolt):
    """`KafkaBolt`, which learns the servers from the producer's properties.

    Example:
        >>> bolt = KafkaBolt().with_producer_properties({"bootstrap.servers": "127.0.0.1:9092", "acks": "all"})
        >>> bolt = bolt.with_topic_selector("counts")
    """

    def __init__(self) -> None:
        super().__init__("none:1")
        self._servers = ()

    def with_producer_properties(self, properties: Mapping[str, Any]) -> KafkaBolt:
        """Adds a producer's properties, by Java's names; values are texts or bytes whatever serializer is named.

        Raises:
            ConfigError: one has no counterpart here.
        """
        given = dict(properties)
        servers = given.pop("bootstrap.servers", None) or given.pop("metadata.broker.list", None)
        if servers is not None:
            self._servers = checked_servers(servers)
        for name in ("key.serializer", "value.serializer", "serializer.class", "key.serializer.class"):
            found = given.pop(name, None)
            if found is not None and found not in _SERIALIZERS:
                raise ConfigError(
                    f"{name} is the Java class {found!r:.200}; here a mapper returns texts or bytes, so name a "
                    "StringSerializer or ByteArraySerializer",
                    key=name,
                )
        if "request.required.acks" in given:
            given["acks"] = given.pop("request.required.acks")
        if isinstance(given.get("acks"), str) and given["acks"] != "all":
            given["acks"] = _acks(given["acks"])
        return super().with_producer_properties(given)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares nothing, and checks that the servers are known.

        Raises:
            ConfigError: they are not.
        """
        if not self._servers:
            raise ConfigError(
                "KafkaBolt needs bootstrap.servers among its producer properties", key="bootstrap.servers"
            )


def _acks(text: str) -> int | str:
    if text not in ("-1", "0", "1"):
        raise ConfigError(f"acks is all, -1, 0 or 1, not {text!r:.100}", key="acks")
    return "all" if text == "-1" else int(text)


def spout_of(arguments: Sequence[Any], streams: Mapping[str, StreamSpec], conf: Mapping[str, Any]) -> PlainKafkaSpout:
    """Returns the `KafkaSpout` of a Java object in Thrift's terms.

    Args:
        arguments: the servers, then topics.
        streams: its outputs: one stream with some of the fields topic, partition, offset, key and value; one field of
            another name is the value.
        conf: `kafka.consumer.properties` are a consumer's properties, `group.id` among them.

    Raises:
        InvalidTopologyError, ConfigError: they are something else.
    """
    if len(arguments) < 2 or not all(isinstance(each, str) for each in arguments):
        raise InvalidTopologyError(
            f"KafkaSpout takes the bootstrap servers and topics as texts, not {list(arguments)!r:.200}: "
            "a KafkaSpoutConfig of Java can't be given here"
        )
    fields = list(streams[DEFAULT_STREAM].fields) if list(streams) == [DEFAULT_STREAM] else []
    if len(fields) == 1 and fields[0] not in _RECORD_FIELDS:
        parts = ["value"]
    elif fields and set(fields) <= set(_RECORD_FIELDS):
        parts = fields
    else:
        raise InvalidTopologyError(
            f"KafkaSpout's outputs are one stream with fields of {', '.join(_RECORD_FIELDS)}, or one field for the "
            f"value, not {dict(streams)!r:.200}"
        )
    properties = _properties(conf, CONSUMER_PROPERTIES)
    if "group.id" not in properties:
        raise ConfigError(
            f"KafkaSpout needs a group.id among {CONSUMER_PROPERTIES} of its configuration", key="group.id"
        )
    builder = KafkaSpoutConfigBuilder(arguments[0], *arguments[1:]).set_prop(properties)
    builder.set_record_translator(SimpleRecordTranslator(partial(_values, parts), streams[DEFAULT_STREAM].fields))
    return PlainKafkaSpout(builder.build())


def bolt_of(arguments: Sequence[Any], streams: Mapping[str, StreamSpec], conf: Mapping[str, Any]) -> PlainKafkaBolt:
    """Returns the `KafkaBolt` of a Java object in Thrift's terms: it takes fields `key` and `message`.

    Args:
        arguments: none.
        streams: none.
        conf: `topic`, and `kafka.broker.properties`, as Storm before 1.0 had them.

    Raises:
        InvalidTopologyError, ConfigError: they are something else.
    """
    if arguments or streams:
        raise InvalidTopologyError(f"KafkaBolt takes no arguments and has no outputs, not {list(arguments)!r:.200}")
    if TOPIC not in conf:
        raise ConfigError(f'KafkaBolt needs "{TOPIC}" in its configuration', key=TOPIC)
    bolt = KafkaBolt().with_producer_properties(_properties(conf, PRODUCER_PROPERTIES))
    bolt.with_tuple_to_kafka_mapper(FieldNameBasedTupleToKafkaMapper())
    return bolt.with_topic_selector(DefaultTopicSelector(conf[TOPIC]))


def _values(parts: Iterable[str], record: KafkaRecord) -> list[Any]:
    return [getattr(record, part) for part in parts]


def _properties(conf: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = conf.get(key, {})
    if not isinstance(found, Mapping) or not all(isinstance(name, str) for name in found):
        raise ConfigError(f"{key} is a mapping from properties to values, not {found!r:.100}", key=key)
    return found
