"""Clients of Kafka: their settings, and what their errors mean for an instance."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from storm_on_spark.api.errors import ConfigError
from storm_on_spark.connectors.kafka.clients import connected, described, kafka_python
from storm_on_spark.xd.bus.journal import TakenError
from storm_on_spark.xd.bus.port import BusError

ANSWER_MS: Final = 10_000
COMMIT_MS: Final = 30_000
LARGEST_RECORD: Final = 16 << 20
"""Bytes; topics of the bus are created with this limit."""
_SESSION_MS: Final = 6_000
"""The minimum in Kafka. A dead reader of a queue keeps its partitions for this long."""
_HEARTBEAT_MS: Final = 2_000
_RETRY_MS: Final = 10
_MOST_POLLED: Final = 20
"""Records, of up to a thousand messages each."""
_CLOSE_SECS: Final = 1.0
_KEY: Final = "xd.messagebus.kafka.properties"
_OURS: Final = frozenset(
    {"bootstrap_servers", "kafka_client", "selector", "client_id", "api_version", "metric_reporters"}
)


@dataclass(frozen=True)
class Clients:
    """Makes clients.

    Args:
        servers: of Kafka.
        properties: settings of kafka-python for all clients, such as logins; with dots instead of underscores.

    Raises:
        SetupError: kafka-python is not installed, or too old.
        ConfigError: there is no such property.

    Example:
        >>> Clients(("127.0.0.1:9092",), {"security.protocol": "SASL_SSL"}).settings["security_protocol"]
        'SASL_SSL'
        >>> Clients(("127.0.0.1:9092",), {"group.id": "mine"})
        Traceback (most recent call last):
            ...
        storm_on_spark.api.errors.ConfigError: xd.messagebus.kafka.properties can't have 'group.id'
    """

    servers: tuple[str, ...]
    properties: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        kafka = kafka_python("message bus")
        clients = (kafka.KafkaProducer, kafka.KafkaConsumer, kafka.KafkaAdminClient)
        allowed = set.intersection(*(set(each.DEFAULT_CONFIG) for each in clients)) - _OURS
        for name in self.properties:
            if name.replace(".", "_") not in allowed:
                raise ConfigError(f"{_KEY} can't have {name!r:.100}", key=_KEY)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of all clients."""
        return {
            "bootstrap_timeout_ms": ANSWER_MS,
            "request_timeout_ms": ANSWER_MS,
            "reconnect_backoff_max_ms": 1_000,
            **{name.replace(".", "_"): value for name, value in self.properties.items()},
            "bootstrap_servers": list(self.servers),
        }

    def producer(self, transactional_id: str) -> Any:
        """Returns a producer of transactions."""
        more = {
            "transactional_id": transactional_id,
            "transaction_timeout_ms": COMMIT_MS,
            "max_block_ms": ANSWER_MS,
            "delivery_timeout_ms": COMMIT_MS,
            "max_request_size": LARGEST_RECORD,
            "batch_size": 1 << 17,
            "retry_backoff_ms": _RETRY_MS,
            "allow_auto_create_topics": False,
            "metrics_enabled": False,
        }
        return connected("KafkaProducer", self.settings | more)

    def consumer(self) -> Any:
        """Returns a consumer of no group."""
        return connected("KafkaConsumer", self.settings | _reading())

    def member(self, group: str, instance: str) -> Any:
        """Returns a consumer of a group.

        Args:
            group: its name.
            instance: id of the member; a member that returns gets its partitions back without a rebalance.
        """
        from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

        more = {
            "group_id": group,
            "group_instance_id": instance,
            "session_timeout_ms": _SESSION_MS,
            "heartbeat_interval_ms": _HEARTBEAT_MS,
            "auto_offset_reset": "earliest",
            "partition_assignment_strategy": (StickyPartitionAssignor,),
        }
        return connected("KafkaConsumer", self.settings | _reading() | more)

    def admin(self) -> Any:
        """Returns a client for administration, such as creating topics."""
        return connected("KafkaAdminClient", self.settings)

    @contextlib.contextmanager
    def told(self, name: str) -> Iterator[None]:
        """Translates Kafka's errors into those of a bus.

        Args:
            name: of the instance.

        Raises:
            TakenError: another process runs the instance.
            BusError: Kafka refuses, or does not answer.
        """
        from kafka.errors import KafkaError

        try:
            yield
        except (KafkaError, OSError) as error:
            if _is_fenced(error):
                raise TakenError(f"another container runs {name} now, or Kafka has ended its transaction") from None
            raise BusError(f"Kafka at {', '.join(self.servers)}: {described(error)}") from None


def close_producer(producer: Any) -> None:
    """Ends a producer. The next producer of that name aborts what this one has not committed."""
    with contextlib.suppress(Exception):
        producer.close(timeout=_CLOSE_SECS)


def close_consumer(consumer: Any) -> None:
    """Ends a consumer; a member of a group keeps its partitions for a while."""
    with contextlib.suppress(Exception):
        consumer.close(autocommit=False, timeout_ms=_CLOSE_SECS * 1_000)


def _reading() -> dict[str, Any]:
    return {
        "group_id": None,
        "isolation_level": "read_committed",
        "enable_auto_commit": False,
        "auto_offset_reset": "none",
        "allow_auto_create_topics": False,
        "max_poll_records": _MOST_POLLED,
        "metrics_enabled": False,
    }


def _is_fenced(error: BaseException) -> bool:
    from kafka import errors

    fenced = (errors.ProducerFencedError, errors.InvalidProducerEpochError, errors.FencedInstanceIdError)
    return isinstance(error, fenced) or any(isinstance(part, fenced) for part in error.args)
