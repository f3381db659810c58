"""The topics that cases of Kafka read: one that is filled once, before them, and those that are fed at a rate.

`python -m lab.benchmarks.workloads.topics fill SERVERS FILE` and `… feed SERVERS TOPIC RATE` are separate processes.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from lab.benchmarks.workloads.data import read_sentences
from storm_on_spark.connectors.kafka.server import KafkaServer
from storm_on_spark.connectors.kafka.topics import create

TOPIC: Final = "sentences"
PARTITIONS: Final = 4
LIVE_PARTITIONS: Final = 2
MESSAGES: Final = 4_000_000
_TEXTS: Final = 1000
_SECS: Final = 300
_PAUSE_SECS: Final = 0.002


@contextlib.contextmanager
def broker(source: Path, tell: Callable[[str], None]) -> Iterator[str]:
    """Starts a broker with the topic of sentences; gives its servers."""
    with KafkaServer() as server:
        tell(f"filling a topic with {MESSAGES:,} records")
        fill(server.bootstrap_servers, source)
        yield server.bootstrap_servers


def fill(servers: str, source: Path) -> None:
    """Makes the topic and writes it; returns when it is there.

    Raises:
        subprocess.CalledProcessError: it could not be written.
    """
    command = [sys.executable, "-m", "lab.benchmarks.workloads.topics", "fill", servers, str(source)]
    subprocess.run(command, check=True, timeout=_SECS, stdin=subprocess.DEVNULL, stdout=sys.stderr)


def _write(servers: str, source: str) -> None:
    from pyspark.sql import functions as F  # noqa: N812 # as everybody writes it

    from storm_on_spark.connectors.kafka.jars import SOURCE, SOURCE_CLASS
    from storm_on_spark.spark.session import local_session, stop_session
    from storm_on_spark.spark.session.jars import use

    create(servers, {TOPIC: PARTITIONS})
    spark = local_session()
    try:
        use(spark, SOURCE, SOURCE_CLASS)
        texts = F.array([F.lit(text) for text in read_sentences(source)[:_TEXTS]])
        rows = spark.range(0, MESSAGES, 1, 8).select(
            F.element_at(texts, (F.col("id") % _TEXTS + 1).cast("int")).cast("binary").alias("value"),
            (F.col("id") % PARTITIONS).cast("int").alias("partition"),
        )
        options = {"kafka.bootstrap.servers": servers, "topic": TOPIC, "kafka.linger.ms": "20"}
        rows.write.format("kafka").options(**options).save()
    finally:
        stop_session(spark)


def producer_of(servers: str, linger_ms: int) -> Any:
    """Returns a producer of kafka-python's."""
    from kafka import KafkaProducer

    return KafkaProducer(bootstrap_servers=servers, linger_ms=linger_ms)


def made() -> bytes:
    """Returns a record that says when it was made, in seconds since the epoch."""
    return f"{time.time():.4f}".encode()


def _feed(servers: str, topic: str, rate: str) -> None:
    """Writes records at a rate until it is killed."""
    producer, since, done = producer_of(servers, 1), time.monotonic(), 0
    while True:
        due = int((time.monotonic() - since) * float(rate))
        for _ in range(due - done):
            producer.send(topic, made())
        done = due
        time.sleep(_PAUSE_SECS)


if __name__ == "__main__":
    if sys.argv[1] == "fill":
        _write(*sys.argv[2:])
    else:
        _feed(*sys.argv[2:])
