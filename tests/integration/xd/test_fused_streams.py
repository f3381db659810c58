"""A stream that a container runs as one topology on Spark: killed under load, it goes on elsewhere, exactly."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from pyspark.sql import SparkSession

from lab.streams.cluster import Cluster, eventually, numbers
from storm_on_spark.cluster.zookeeper.server import ZooKeeperServer
from storm_on_spark.xd.container.daemon import Container

pytestmark = [pytest.mark.integration, pytest.mark.spark]

_COUNT = 4_000


@contextmanager
def _client(connect: str) -> Iterator[KazooClient]:
    client = KazooClient(connect)
    client.start()
    try:
        yield client
    finally:
        client.stop()
        client.close()


def test_a_fused_stream_goes_on_from_its_checkpoint_when_its_container_is_killed(
    spark: SparkSession, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    text = f"rate --messagesPerSecond=400 --maxMessages={_COUNT} | aggregator --count=10 | splitter | file --dir={out}"
    with ZooKeeperServer(tmp_path / "zookeeper", tick=0.2) as server, Cluster(tmp_path, server.connect_string) as xd:
        xd.start(admins=1, containers=1)
        xd.create("numbers", text)
        xd.deploy("numbers", fused=True)
        eventually(lambda: xd.state("numbers") == "deployed", xd.logs)
        modules = xd.modules()
        assert len(modules) == 4
        (container,) = set(modules.values())
        with _client(server.connect_string) as client:
            assert json.loads(client.get("/xd/deployments/streams/numbers/status")[0]) == {"state": "deployed"}
            there = client.get_children("/xd/deployments/streams/numbers/modules")
            assert sorted(there) == sorted(f"{name.removeprefix('numbers.')}.{container}" for name in modules)
        # The other one is in this process, whose session has been started.
        with Container({"zk.client.connect": server.connect_string}, bus=tmp_path / "bus") as other:
            before = eventually(lambda: len(numbers(out)), xd.logs)
            assert before < _COUNT
            xd.kill_container(container)
            eventually(lambda: len(set(numbers(out))) == _COUNT, xd.logs)
            assert numbers(out) == list(range(_COUNT))
            assert set(xd.modules().values()) == {other.container_id}
    # The container leaves a session that it has not started.
    assert spark.range(1).count() == 1
