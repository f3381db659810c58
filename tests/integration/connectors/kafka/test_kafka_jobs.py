"""The jobs that read Kafka and write Delta, beside batch jobs that count and join the same topics."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from chispa import assert_df_equality
from deltalake import DeltaTable
from kafka_broker import Kafka
from lengths import PATIENCE_SECS
from processes import ROOT, script
from waiting import eventually

sys.path.insert(0, str(Path(__file__).parents[4] / "jobs"))

import clickstream_join  # needs the path above
import kafka_word_count

from storm_on_spark import Config, ConfigError
from storm_on_spark.testing import running_topology
from storm_on_spark.testing.plugin import kafka_server

__all__ = ["kafka_server"]

EVENTS = 60
LOOK = 0.3
"""To read a table takes the time of the topology that is waited for."""


def rows(place: Path) -> list[dict[str, Any]]:
    return DeltaTable(place).to_pyarrow_table().to_pylist() if DeltaTable.is_deltatable(str(place)) else []


def test_words_of_a_topic_are_counted_in_a_table_as_by_a_batch_job_and_on_through_a_restart(
    nothing_left_behind: None, spark_session: Any, kafka: Kafka, tmp_path: Path
) -> None:
    topic, servers, table = kafka.topic(2), kafka.server.bootstrap_servers, tmp_path / "counts"
    conf = {
        kafka_word_count.SERVERS: servers,
        kafka_word_count.TOPIC: topic,
        kafka_word_count.TABLE: str(table),
        Config.TOPOLOGY_CHECKPOINT_DIR: str(tmp_path / "checkpoint"),
    }
    lines = [f"to be or not {number % 9} to  be \t{number % 4}" for number in range(150)]
    words = 0
    for part in lines[:100], lines[100:]:
        kafka.send(topic, *part[::2])
        kafka.send(topic, *part[1::2], None, partition=1, key=b"k")
        words += sum(len(line.split()) for line in part)
        with running_topology(kafka_word_count.build(conf), conf=conf, spark=spark_session, capture=()):
            eventually(lambda words=words: sum(row["count"] for row in rows(table)) >= words, "all words", every=LOOK)
    written = spark_session.createDataFrame(DeltaTable(table).to_pyarrow_table())
    expected = kafka_word_count.by_plain_spark(spark_session, servers, topic)
    assert_df_equality(written, expected, ignore_row_order=True, ignore_nullable=True)


def test_the_documented_command_without_its_checkpoint_is_refused_once_the_group_has_offsets(
    nothing_left_behind: None, spark_session: Any, kafka: Kafka, tmp_path: Path
) -> None:
    topic, table, group = kafka.topic(), tmp_path / "counts", "kafka-word-count"
    conf: dict[str, Any] = {
        kafka_word_count.SERVERS: kafka.server.bootstrap_servers,
        kafka_word_count.TOPIC: topic,
        kafka_word_count.TABLE: str(table),
    }
    kept = {**conf, Config.TOPOLOGY_CHECKPOINT_DIR: str(tmp_path / "checkpoint")}
    kafka.send(topic, "a a a", "b")
    with running_topology(kafka_word_count.build(kept), conf=kept, spark=spark_session, capture=()) as running:
        eventually(lambda: sum(row["count"] for row in rows(table)) == 4, "all words", every=LOOK)
        # Rows are in the table before their micro-batch ends, and records are acked after that.
        assert running.query.drain(PATIENCE_SECS)
    eventually(lambda: kafka.committed(group, topic) == 2, "the group's offset")
    kafka.send(topic, "a")

    said = tmp_path / "conf.json"
    said.write_text(json.dumps(conf))
    job = ROOT / "jobs" / "kafka_word_count.py"
    with script(tmp_path / "tmp", "-m", "storm_on_spark.cli", "run", str(job), "--conf", str(said)) as process:
        process.wait(PATIENCE_SECS)
        assert process.stderr is not None
        error = process.stderr.read()
    assert process.returncode == 2
    assert f"consumer group {group} has committed offsets of {topic} (1 partition)" in error
    assert "--checkpoint DIR" in error
    assert "another consumer group, or first_poll_offset_strategy EARLIEST" in error
    counts = {row["word"]: row["count"] for row in rows(table)}
    assert counts == {"a": 3, "b": 1}, "it would have written a: 1"

    # The two ways out.
    with running_topology(kafka_word_count.build(kept), conf=kept, spark=spark_session, capture=()):
        eventually(lambda: {row["word"]: row["count"] for row in rows(table)}["a"] == 4, "the new word", every=LOOK)
    other = {**conf, kafka_word_count.GROUP: "another", kafka_word_count.TABLE: str(tmp_path / "again")}
    with running_topology(kafka_word_count.build(other), conf=other, spark=spark_session, capture=()):
        eventually(lambda: sum(row["count"] for row in rows(tmp_path / "again")) == 5, "all words", every=LOOK)


def test_clicks_are_joined_as_by_a_batch_job_and_late_ones_are_in_a_table_of_their_own(
    nothing_left_behind: None, spark_session: Any, kafka: Kafka, tmp_path: Path
) -> None:
    impressions, clicks = kafka.topic(2), kafka.topic(2)
    conf = {
        clickstream_join.SERVERS: kafka.server.bootstrap_servers,
        clickstream_join.IMPRESSIONS: impressions,
        clickstream_join.CLICKS: clicks,
        clickstream_join.FOLDER: str(tmp_path),
        clickstream_join.WINDOW_MS: 1000,
        clickstream_join.LATENESS_MS: 100_000,
        Config.TOPOLOGY_CHECKPOINT_DIR: str(tmp_path / "checkpoint"),
    }

    def send(topic: str, what: str, *events: tuple[str, int]) -> None:
        lines = [json.dumps({"id": name, what: f"{what} of {name}", "at": at}) for name, at in events]
        kafka.send(topic, *lines[::2])
        kafka.send(topic, "no event", *lines[1::2], partition=1)

    # Every third click comes too long after its impression; both are read in any order.
    send(clicks, "user", *((f"i{n}", 1000 + 10 * n + (2000 if n % 3 == 0 else 500)) for n in range(EVENTS)))
    send(impressions, "ad", *((f"i{n}", 1000 + 10 * n) for n in range(EVENTS)))
    with running_topology(clickstream_join.build(conf), conf=conf, spark=spark_session, capture=()):
        eventually(lambda: len(rows(tmp_path / "joined")) == 40, "what is joined", every=LOOK)
        eventually(lambda: len(rows(tmp_path / "late")) == 20, "what is outside the window", every=LOOK)
        # Each task sees the time go on in both streams; what was there before is over.
        send(clicks, "user", ("lonely", 2000), *((f"new{n}", 500_000) for n in range(20)))
        send(impressions, "ad", *((f"new{n}", 500_000) for n in range(20)))
        eventually(lambda: len(rows(tmp_path / "joined")) == 60, "the new ones", every=LOOK)
        send(clicks, "user", ("i1", 1200))
        send(impressions, "ad", ("late", 1200))
        eventually(lambda: len(rows(tmp_path / "late")) == 23, "what is late", every=LOOK)

    late = rows(tmp_path / "late")
    outside = [row for row in late if row["reason"] == "outside the window"]
    assert sorted(row["id"] for row in outside) == sorted(f"i{n}" for n in range(0, EVENTS, 3))
    others = sorted((row["stream"], row["id"], row["at"], row["reason"]) for row in late if row not in outside)
    assert others == [
        ("clicks", "i1", 1200, "late"),
        ("clicks", "lonely", 2000, "no impression"),
        ("impressions", "late", 1200, "late"),
    ]
    written = spark_session.createDataFrame(DeltaTable(tmp_path / "joined").to_pyarrow_table())
    by_batch = clickstream_join.by_plain_spark(spark_session, conf).where("NOT (id = 'i1' AND clicked_at = 1200)")
    assert_df_equality(written, by_batch, ignore_row_order=True, ignore_nullable=True)


@pytest.mark.parametrize(
    ("job", "conf", "message"),
    [
        (kafka_word_count, {kafka_word_count.TABLE: ""}, "must be a text that is not empty, not ''"),
        (kafka_word_count, {kafka_word_count.SERVERS: "nowhere"}, "bootstrap servers are host:port"),
        (clickstream_join, {clickstream_join.WINDOW_MS: "1s"}, "whole number of milliseconds, not '1s'"),
        (clickstream_join, {clickstream_join.CLICKS: "a topic"}, "'a topic' is not a topic's name"),
    ],
)
def test_settings_that_make_no_sense_are_refused(job: Any, conf: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        job.build(conf)
