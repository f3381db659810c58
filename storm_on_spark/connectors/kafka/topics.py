"""Topics of a development broker: making them, and filling them from files."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Final

from storm_on_spark.api.errors import ConfigError, SetupError
from storm_on_spark.connectors.kafka.clients import kafka_python

_SPEC: Final = re.compile(r"([A-Za-z0-9._-]{1,249})(?::([1-9][0-9]{0,3}))?")
_ANSWER_SECS: Final = 30
_CONNECT_SECS: Final = 5


def parsed(text: str) -> tuple[str, int]:
    """Returns name and number of partitions of `NAME` or `NAME:PARTITIONS`.

    Raises:
        ConfigError: it is neither.

    Example:
        >>> parsed("lines"), parsed("clicks:4")
        (('lines', 1), ('clicks', 4))
    """
    found = _SPEC.fullmatch(text)
    if found is None:
        raise ConfigError(f"a topic is NAME or NAME:PARTITIONS, with 1 to 9999 partitions (given {text!r:.100})")
    return found[1], int(found[2] or 1)


def create(bootstrap_servers: str, topics: dict[str, int]) -> None:
    """Creates those of the topics that don't exist.

    Args:
        bootstrap_servers: `host:port` of a broker.
        topics: how many partitions each is to have.

    Raises:
        SetupError: kafka-python is not installed, or the broker refuses.
    """
    kafka = kafka_python("topic")
    host, _, port = bootstrap_servers.rpartition(":")
    try:
        # At once, where kafka-python would try for a while.
        socket.create_connection((host, int(port)), _CONNECT_SECS).close()
        admin = kafka.KafkaAdminClient(bootstrap_servers=bootstrap_servers, bootstrap_timeout_ms=1000 * _CONNECT_SECS)
    except (OSError, kafka.errors.KafkaError):
        raise SetupError(f"no Kafka answers at {bootstrap_servers}") from None
    try:
        present = set(admin.list_topics())
        new = {
            name: {"num_partitions": partitions, "replication_factor": 1}
            for name, partitions in topics.items()
            if name not in present
        }
        if new:
            admin.create_topics(new, wait_for_metadata=True)
    except kafka.errors.KafkaError as error:
        raise SetupError(f"the topics can't be created: {error}") from error
    finally:
        admin.close()


def load(bootstrap_servers: str, topic: str, file: Path) -> int:
    """Sends the lines of a file to a topic, one record each; returns how many.

    Raises:
        SetupError: the file can't be read, kafka-python is not installed, or the broker refuses.
    """
    kafka = kafka_python("topic")
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap_servers, linger_ms=5)
    sent = []
    try:
        with file.open("rb") as lines:
            sent = [producer.send(topic, line.rstrip(b"\r\n")) for line in lines]
        producer.flush(timeout=_ANSWER_SECS)
        for future in sent:
            future.get(timeout=_ANSWER_SECS)
    except OSError as error:
        raise SetupError(f"{file} can't be read: {error.strerror}") from error
    except kafka.errors.KafkaError as error:
        raise SetupError(f"{file} can't be loaded into topic {topic}: {error}") from error
    finally:
        producer.close()
    return len(sent)


def need_kafka() -> None:
    """Does nothing where kafka-python is installed.

    Raises:
        SetupError: it isn't, or is too old.
    """
    kafka_python("topic")
