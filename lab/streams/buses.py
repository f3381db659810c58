"""Message buses to measure."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from storm_on_spark.connectors.kafka.server import KafkaServer

TRANSPORTS: Final = ("local", "kafka")


@contextlib.contextmanager
def bus(transport: str, home: Path) -> Iterator[Mapping[str, object]]:
    """Yields the configuration of a bus; a broker of Kafka runs meanwhile, if it is needed.

    Args:
        transport: which.
        home: a folder for its data.
    """
    conf = {"xd.transport": transport}
    if transport == "kafka":
        with KafkaServer(home / "kafka") as server:
            yield {**conf, "xd.messagebus.kafka.brokers": server.bootstrap_servers}
    else:
        yield conf
