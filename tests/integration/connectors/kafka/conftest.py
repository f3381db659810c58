"""A broker for each file here, by `kafka_server`, and what its tests do to it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from storm_on_spark.connectors.kafka.server import KafkaServer

sys.path.insert(0, str(Path(__file__).parent))

from kafka_broker import Kafka  # needs the path above


@pytest.fixture(scope="module")
def kafka(kafka_server: KafkaServer) -> Kafka:
    return Kafka(kafka_server)
