"""A stream that a container runs as one topology on Spark: killed under load, it continues elsewhere, exactly."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from waiting import eventually

from lab.streams.cluster import Cluster, numbers
from storm_on_spark.cluster.zookeeper.server import ZooKeeperServer

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


def test_a_fused_stream_goes_on_from_its_checkpoint_when_its_container_is_killed(tmp_path: Path) -> None:
    out = tmp_path / "out"
    text = f"rate --messagesPerSecond=600 --maxMessages={_COUNT} | aggregator --count=10 | splitter | file --dir={out}"
    with ZooKeeperServer(tmp_path / "zookeeper", tick=0.2) as server, Cluster(tmp_path, server.connect_string) as xd:
        xd.start(admins=1, containers=2)
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
        before = eventually(lambda: len(numbers(out)) > _COUNT / 10 and len(numbers(out)), xd.logs)
        assert before < _COUNT
        xd.kill_container(container)
        eventually(lambda: len(set(numbers(out))) == _COUNT, xd.logs)
        assert numbers(out) == list(range(_COUNT))
        (other,) = set(xd.modules().values())
        assert other != container
        with _client(server.connect_string) as client:
            assert client.get_children(f"/xd/deployments/modules/allocated/{other}")
