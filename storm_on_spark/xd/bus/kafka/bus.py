"""The bus in Kafka: topics between modules, a transaction for each step.

What a step emits, the instance's state and its positions become visible together or not at all. Only the newest owner
of the instance's name can commit.
"""

from __future__ import annotations

from storm_on_spark.xd.bus.kafka.port import KafkaPort
from storm_on_spark.xd.bus.kafka.shared import Shared
from storm_on_spark.xd.bus.port import Place


class KafkaBus(Shared):
    """The bus of a container; see `Shared` for its arguments."""

    def port(self, place: Place) -> KafkaPort:
        """See `Bus`."""
        return KafkaPort(self, place)
