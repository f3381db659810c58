"""How long it takes to deploy many light streams, and what a container needs for a module."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any

import psutil

from lab.streams.cluster import Cluster, eventually
from storm_on_spark.cluster.zookeeper.server import ZooKeeperServer

_IDLE_SECS = 10.0
_PARTS = 4


def deploy(home: Path, streams: int, containers: int) -> dict[str, Any]:
    """Creates and deploys streams `time | log`, one after the other, until all of them run.

    Returns:
        Seconds of all; the median of a stream's seconds for each quarter; megabytes that a container has more for each
        module, and the share of a core that all processes need when nothing else happens.
    """
    with ZooKeeperServer(home / "zookeeper", tick=0.2) as server, Cluster(home, server.connect_string) as xd:
        xd.start(admins=1, containers=containers)
        nodes = [psutil.Process(node.process.pid) for node in xd.nodes]
        before = _memory(nodes[1:])
        each: list[float] = []
        began = time.monotonic()
        for number in range(streams):
            start = time.monotonic()
            xd.create(f"s{number}", "time | log")
            xd.deploy(f"s{number}")
            each.append(time.monotonic() - start)
        eventually(lambda: len(xd.modules()) == 2 * streams, timeout=120)
        took = time.monotonic() - began
        size = max(1, streams // _PARTS)
        used = _cpu(nodes)
        time.sleep(_IDLE_SECS)
        share = (_cpu(nodes) - used) / _IDLE_SECS
        return {
            "streams": streams,
            "containers": containers,
            "seconds": round(took, 1),
            "median_seconds_by_quarter": [
                round(statistics.median(each[at : at + size]), 3) for at in range(0, size * _PARTS, size)
            ],
            "megabytes_per_module": round((_memory(nodes[1:]) - before) / 2**20 / (2 * streams), 2),
            "cores_when_idle": round(share, 2),
        }


def _memory(nodes: list[psutil.Process]) -> int:
    return sum(node.memory_info().rss for node in nodes)


def _cpu(nodes: list[psutil.Process]) -> float:
    return sum(sum(node.cpu_times()[:2]) for node in nodes)
