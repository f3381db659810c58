"""`KafkaSpout` in real time, where its task reads: the same records as from Spark's source, and each by one reader."""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path

import pytest
from kafka_broker import Kafka
from lengths import PATIENCE_SECS
from processes import killed, script
from pyspark.sql import SparkSession
from topologies.kafka_readers import conf_of, counts, kafka_readers
from waiting import eventually

from storm_on_spark import LocalCluster, TopologyBuilder, TopologyFailedError
from storm_on_spark.connectors.kafka import KafkaSpout
from storm_on_spark.testing import running_topology
from storm_on_spark.testing.plugin import kafka_server

__all__ = ["kafka_server"]

LOGS = "offsets", "commits"
PART = 100
END_SECS = 30
"""How long a run may take to end after Ctrl-C; it is asked to drain."""
STARTS = (
    ("realtime", "at a record"),  # before Spark's first micro-batch
    ("latency", "after Spark's log is changed"),
    ("latency", "at a record"),  # in a micro-batch with rows that Spark has read
)
"""The profile of each start, and what its driver dies of. The model in the unit tests has all other moments."""
PROFILES = ("realtime", "throughput", "realtime")
"""Of the starts after them, each of which finds a record that failed in the one before."""
GROWS_AT = 1
"""At which of these the topic has one more partition."""


def run(
    spark: SparkSession, kafka: Kafka, topic: str, folder: Path, profile: str, sent: int, held: int = -1, parts: int = 2
) -> None:
    """Runs the topology until all numbers are counted that were sent and are not held, and committed up to there."""
    topology, conf, seen = kafka_readers(kafka.server.bootstrap_servers, topic), conf_of(folder, profile, held), "seen"
    done = sent - (held >= 0)

    def committed() -> list[int]:
        return [kafka.committed(topic, topic, number) or 0 for number in range(parts)]

    with running_topology(topology, conf=conf, spark=spark, capture=()) as running:
        eventually(lambda: (folder / seen).exists() and (folder / seen).read_text() == str(done), profile)
        # Each look makes new clients.
        eventually(lambda: sum(committed()) == done, lambda: f"{committed()} committed of {done}", every=0.2)
        # The next run counts the number that is held: the last failure of it must be in the checkpoint by then.
        assert profile != "realtime" or running.query.drain(PATIENCE_SECS)
    assert counts(spark, folder) == Counter(number for number in range(sent) if number != held), profile


def test_each_record_is_counted_once_by_either_reader_after_a_failure_and_ctrl_c(
    nothing_left_behind: None, spark_session: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    topic, poison, servers = kafka.topic(2), tmp_path / "poison", kafka.server.bootstrap_servers
    kafka.send(topic, *map(str, range(PART)))
    poison.write_text(str(PART // 2))
    with LocalCluster(spark_session) as cluster:
        conf = conf_of(tmp_path, "latency", end="a bolt raises")
        cluster.submit_topology("test", conf, kafka_readers(servers, topic))
        with pytest.raises(TopologyFailedError, match="the bolt raises"):
            cluster.await_completion("test", PATIENCE_SECS)
    # Spark's micro-batch with these rows is planned and not done. The task reads what comes behind them.
    planned, done = ({entry.name for entry in (tmp_path / "checkpoint" / log).glob("[0-9]*")} for log in LOGS)
    assert planned > done
    kafka.send(topic, *map(str, range(PART, 2 * PART)), partition=1)
    poison.write_text(str(PART + PART // 2))
    with script(
        tmp_path / "tmp", "-m", "topologies.kafka_readers", servers, topic, str(tmp_path), "realtime", "interrupted"
    ) as process:
        eventually(lambda: not poison.exists() or process.poll() is not None, "the number is counted")
        process.wait(END_SECS)
        assert (process.returncode, poison.exists()) == (-signal.SIGINT, False), process.communicate()
    kafka.send(topic, *map(str, range(2 * PART, 3 * PART)))
    run(spark_session, kafka, topic, tmp_path, "realtime", 3 * PART, held=3 * PART - 1)
    kafka.grow(topic, 3)
    kafka.send(topic, *map(str, range(3 * PART, 4 * PART)), partition=2)
    run(spark_session, kafka, topic, tmp_path, "throughput", 4 * PART, parts=3)


@pytest.mark.soak  # shorter: test_each_record_is_counted_once_by_either_reader_after_a_failure_and_ctrl_c
def test_each_record_is_counted_once_wherever_the_driver_is_killed_and_as_profiles_change(
    nothing_left_behind: None, spark_session: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    topic, parts, sent = kafka.topic(2), 2, 0
    for number, (profile, death) in enumerate(STARTS):
        kafka.send(topic, *map(str, range(sent, sent + PART)), partition=number % 2)
        sent += PART
        at_record = death == "at a record"
        if at_record:
            (tmp_path / "poison").write_text(str(sent - PART // 2))
        arguments = (kafka.server.bootstrap_servers, topic, str(tmp_path), profile, "killed" if at_record else death)
        with script(tmp_path / "tmp", "-m", "topologies.kafka_readers", *arguments) as process:
            eventually(lambda process=process: process.poll() is not None, f"{number}: the death {death}")
            assert killed(process), (number, process.communicate())
        assert not (tmp_path / "poison").exists()
    for number, profile in enumerate(PROFILES):
        if number == GROWS_AT:
            parts = 3
            kafka.grow(topic, parts)
        kafka.send(topic, *map(str, range(sent, sent + PART)), partition=(number + 1) % parts)
        sent += PART
        held = -1 if number == len(PROFILES) - 1 else sent - 1
        run(spark_session, kafka, topic, tmp_path, profile, sent, held, parts)


@pytest.mark.soak  # shorter, for each reader by itself: test_kafka_gone.py and test_kafka_native.py
def test_the_task_passes_over_what_kafka_has_deleted_and_spark_continues_behind_it(
    nothing_left_behind: None, spark_session: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    topic = kafka.topic()
    conf = {"topology.checkpoint.dir": str(tmp_path)}

    def reads(profile: str, value: str, done: int) -> None:
        kafka.send(topic, value)
        builder = TopologyBuilder()
        config = kafka.config(topic).set_group_id(topic).set_partition_refresh_period_ms(2_000)
        builder.set_spout("kafka", KafkaSpout(config.set_prop("auto.offset.reset", "earliest").build()))
        topology, more = builder.create_topology(), {**conf, "topology.profile": profile}
        with running_topology(topology, conf=more, spark=spark_session) as running:
            eventually(lambda: kafka.committed(topic, topic) == done, f"{value} is done")
            assert (value,) in running.captured().values("kafka")

    reads("latency", "a", 1)
    kafka.send(topic, "b")
    kafka.forget(topic, 2)
    reads("realtime", "c", 3)
    kafka.make_again(topic)
    reads("realtime", "A", 1)
    reads("latency", "B", 2)
