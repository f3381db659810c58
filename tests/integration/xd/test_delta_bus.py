"""A stream over the bus of Delta, in containers that are killed; what it has sent is a table for Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from lab.streams.cluster import Cluster, eventually, numbers
from storm_on_spark.cluster.zookeeper.server import ZooKeeperServer
from storm_on_spark.connectors.delta_spout import prepare

pytestmark = [pytest.mark.integration, pytest.mark.spark]

MESSAGES = 300


def test_a_stream_over_delta_outlives_kills_and_spark_reads_it(tmp_path: Path, spark_session: SparkSession) -> None:
    def out(name: str) -> Path:
        return tmp_path / "out" / name

    bus = tmp_path / "bus of delta"
    streams = {
        "first": f"queue:work > file --dir={out('first')}",
        "second": f"queue:work > file --dir={out('second')}",
        "numbers": f"rate --messagesPerSecond=100 --maxMessages={MESSAGES} "
        "| odd:filter --expression='payload.length() > 0' > queue:work",
        "tap": f":numbers.odd > file --dir={out('tap')}",
    }
    expected = list(range(MESSAGES))
    conf = {"xd.transport": "delta", "xd.messagebus.delta.location": bus}
    with (
        ZooKeeperServer(tmp_path / "zookeeper", tick=0.2) as server,
        Cluster(tmp_path, server.connect_string, conf=conf) as xd,
    ):
        xd.start(admins=1, containers=3)
        for name, definition in streams.items():
            xd.create(name, definition)
        for name in ("first", "second", "tap"):
            xd.deploy(name)
        xd.deploy("numbers", {"module.odd.count": "2", "module.rate.partitionKeyExpression": "payload"})
        eventually(lambda: numbers(out("first")) and numbers(out("second")) and numbers(out("tap")), xd.logs)
        killed = xd.modules()["numbers.source.rate.1"]
        xd.kill_container(killed)
        (stream,) = (path for path in (bus / "tables").iterdir() if path.name.startswith("numbers-"))
        assert sum(DeltaTable(stream / "rate").get_add_actions()["num_records"].to_pylist()) < MESSAGES
        eventually(lambda: xd.modules().get("numbers.source.rate.1", killed) != killed, xd.logs)
        eventually(lambda: sum(len(numbers(out(name))) for name in ("first", "second")) >= MESSAGES, xd.logs)
        assert sorted([*numbers(out("first")), *numbers(out("second"))]) == expected
        eventually(lambda: len(numbers(out("tap"))) >= MESSAGES, xd.logs)
        assert numbers(out("tap")) == expected
        # Nothing of it stands on the local bus.
        assert not [path for path in (tmp_path / "bus").glob("*") if path.name not in ("jobs", "delta.key")]

    prepare(spark_session)
    spark_session.conf.set("spark.databricks.delta.snapshotPartitions", "1")
    emitted = spark_session.read.format("delta").load(str(stream / "odd")).select("payload", "instance").collect()
    assert sorted(int(row.payload) for row in emitted) == expected
    assert {row.instance for row in emitted} == {1, 2}
    # A number had the key that says its instance: each of them executed its own partition.
    files = (stream / "rate").glob("*/*.parquet")
    rows = [row for file in files for row in pq.ParquetFile(file).read(use_threads=False).to_pylist()]
    keys = {row["payload"]: row["key"] for row in rows}
    assert all(keys[row.payload] % 2 == row.instance - 1 for row in emitted)
