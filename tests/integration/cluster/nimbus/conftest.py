from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from storm_on_spark.cluster.zookeeper.server import ZooKeeperServer

sys.path.insert(0, str(Path(__file__).parent))

from world import World


@pytest.fixture(scope="session")
def one_zookeeper() -> Iterator[ZooKeeperServer]:
    with ZooKeeperServer() as server:
        yield server


@pytest.fixture
def world(one_zookeeper: ZooKeeperServer, tmp_path: Path) -> Iterator[World]:
    world = World(one_zookeeper.connect_string, tmp_path)
    yield world
    world.close()
