"""A stream that a container runs as one topology on Spark: killed under load, it continues elsewhere, exactly."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
import pytest
from kazoo.client import KazooClient
from waiting import eventually

from lab.streams.cluster import Cluster, numbers
from storm_on_spark.cluster.zookeeper.server import ZooKeeperServer

pytestmark = [pytest.mark.integration, pytest.mark.spark]

_COUNT = 4_000


FAILING = "trigger --payload=x --fixedDelay=0.1 --maxMessages=3 | transform --expression=payload.a | log"


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder whose path is short enough for the sockets of live processes."""
    with TemporaryDirectory(prefix="xd-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@contextmanager
def _client(connect: str) -> Iterator[KazooClient]:
    client = KazooClient(connect)
    client.start()
    try:
        yield client
    finally:
        client.stop()
        client.close()


# In real time it is below.
@pytest.mark.soak
def test_a_fused_stream_goes_on_from_its_checkpoint_when_its_container_is_killed(tmp_path: Path) -> None:
    out = tmp_path / "out"
    text = f"rate --messagesPerSecond=400 --maxMessages={_COUNT} | aggregator --count=10 | splitter | file --dir={out}"
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


def test_streams_of_one_session_are_in_real_time_and_do_not_disturb_each_other(home: Path) -> None:
    with (
        ZooKeeperServer(home / "zookeeper", tick=0.2) as server,
        Cluster(home, server.connect_string) as xd,
        socket.create_server(("127.0.0.1", 0)) as taken,
    ):
        xd.start(admins=1, containers=1)
        (node,) = xd.containers.values()
        texts = {
            "ticking": "time | log",
            "failing": FAILING,
            "files": f"time | file --dir={home / 'out'}",
            "broken": f"http --port={taken.getsockname()[1]} | log",
        }
        for name, text in texts.items():
            xd.create(name, text)
            xd.deploy(name, fused=True)
        eventually(lambda: xd.state("broken") == "failed", xd.logs)
        eventually(lambda: {xd.state(name) for name in texts} == {"failed", "deployed"}, xd.logs)
        ways = {each["name"]: each["deploymentProperties"].get("fused") for each in _modules(xd)}
        assert ways["failing.source.trigger.1"] == ways["ticking.sink.log.1"] == "real time"
        assert ways["files.sink.file.1"].startswith("micro-batches: the tuples of file are written with")
        there = psutil.Process(node.pid).children(recursive=True)
        xd.ask("DELETE", "/streams/deployments/ticking")
        eventually(lambda: xd.state("ticking") == "undeployed", xd.logs)
        eventually(lambda: sum(each.is_running() for each in there) < len(there), xd.logs)
        letters = eventually(lambda: len(found := _letters(home)) >= 3 and found, xd.logs)
        assert [each["payload"] for each in letters] == ["x"] * 3
        assert {xd.state(name) for name in ("failing", "files")} == {"deployed"}
        there = psutil.Process(node.pid).children(recursive=True)
    assert len(there) > 5
    assert not [each for each in there if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]


def test_a_stream_in_real_time_goes_on_exactly_when_its_container_is_killed(home: Path) -> None:
    (home / "in").mkdir()
    (home / "in" / "1").write_text("a\n" * 600)
    with ZooKeeperServer(home / "zookeeper", tick=0.2) as server, Cluster(home, server.connect_string) as xd:
        xd.start(admins=1, containers=2)
        xd.create("counted", f"file --dir={home / 'in'} --fixedDelay=0.1 | counter --name=numbers")
        xd.deploy("counted", fused=True)
        eventually(lambda: _count(xd) > 100, xd.logs)
        [source] = [each for each in _modules(xd) if each["name"] == "counted.source.file.1"]
        assert source["deploymentProperties"]["fused"] == "real time"
        (home / "2").write_text("b\n" * 20_000)
        (home / "2").rename(home / "in" / "2")
        eventually(lambda: _count(xd) > 600, xd.logs)
        xd.kill_container(source["containerId"])
        eventually(lambda: _count(xd) >= 20_600, xd.logs)
        assert _count(xd) == 20_600


def _modules(xd: Cluster) -> list[dict[str, Any]]:
    return list(xd.ask("GET", "/runtime/modules?size=100")["content"])


def _count(xd: Cluster) -> int:
    named = [each["name"] for each in xd.ask("GET", "/metrics/counters")["content"]]
    return int(xd.ask("GET", "/metrics/counters/numbers")["value"]) if named else 0


def _letters(home: Path) -> list[dict[str, Any]]:
    files = sorted((home / "bus").glob("failing-*/fused/dead-letters/*.json"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]
