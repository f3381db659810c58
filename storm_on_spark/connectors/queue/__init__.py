"""A RabbitMQ queue as a spout, with the protocol of Storm's guide on guaranteed processing (extra `rabbitmq`)."""

from __future__ import annotations

from storm_on_spark.connectors.queue.errors import QueueSpoutError
from storm_on_spark.connectors.queue.link import QueueMessage, QueueServer
from storm_on_spark.connectors.queue.spout import QueueSpout

__all__ = ["QueueMessage", "QueueServer", "QueueSpout", "QueueSpoutError"]
