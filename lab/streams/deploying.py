"""The time to deploy many streams, and the resources of a container for a module and for a fused stream."""

from __future__ import annotations

import contextlib
import statistics
import time
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from lab.streams.cluster import Cluster, eventually
from storm_on_spark.cluster.zookeeper.server import ZooKeeperServer

_IDLE_SECS = 10.0
_PARTS = 4


def deploy(home: Path, streams: int, containers: int, fused: int) -> dict[str, Any]:
    """Creates and deploys streams `time | log`, one after the other, until all of them run; then fused ones as well.

    Args:
        home: a folder for all.
        streams: how many have their modules on the bus.
        containers: that share them.
        fused: how many more there are, each as one topology.

    Returns:
        Seconds of all; the median of a stream's seconds for each quarter; megabytes that a container has more for each
        module, and the share of a core that all processes need when nothing else happens; the same for fused streams.
        The first one in a container starts Spark, whose memory is told apart from that of further ones.
    """
    with ZooKeeperServer(home / "zookeeper", tick=0.2) as server, Cluster(home, server.connect_string) as xd:
        xd.start(admins=1, containers=containers)
        nodes = [psutil.Process(node.pid) for node in xd.nodes]
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
        light = _memory(nodes[1:])
        more: dict[str, Any] = {}
        if fused:
            each_fused, sizes = [], []
            for number in range(fused):
                start = time.monotonic()
                xd.create(f"f{number}", "time | log")
                xd.deploy(f"f{number}", fused=True)
                eventually(partial(_runs, xd, f"f{number}"), xd.logs, 120)
                each_fused.append(time.monotonic() - start)
                sizes.append(_tree(nodes[1:]))
            used = _cpu(_with_children(nodes))
            time.sleep(_IDLE_SECS)
            busy = (_cpu(_with_children(nodes)) - used) / _IDLE_SECS
            first, further = each_fused[:containers], each_fused[containers:] or each_fused
            growth = (sizes[-1] - sizes[min(containers, fused) - 1]) / max(1, fused - containers)
            more = {
                "fused_streams": fused,
                "seconds_of_a_container's_first_fused_stream": round(max(first), 1),
                "median_seconds_of_further_ones": round(statistics.median(further), 1),
                "megabytes_of_Spark_and_a_first_one": round(
                    (sizes[min(containers, fused) - 1] - light) / 2**20 / containers
                ),
                "megabytes_per_further_one": round(growth / 2**20),
                "cores_with_fused_streams": round(busy, 2),
            }
        return {
            "streams": streams,
            "containers": containers,
            "seconds": round(took, 1),
            "median_seconds_by_quarter": [
                round(statistics.median(each[at : at + size]), 3) for at in range(0, size * _PARTS, size)
            ],
            "megabytes_per_module": round((light - before) / 2**20 / (2 * streams), 2),
            "cores_when_idle": round(share, 2),
            **more,
        }


def _runs(xd: Cluster, name: str) -> bool:
    return xd.state(name) == "deployed"


def _memory(nodes: list[psutil.Process]) -> int:
    return sum(node.memory_info().rss for node in nodes)


def _with_children(nodes: list[psutil.Process]) -> list[psutil.Process]:
    return [*nodes, *(child for node in nodes for child in node.children(recursive=True))]


def _tree(nodes: list[psutil.Process]) -> int:
    """Returns the memory of processes and their descendants; shared pages count once."""
    found = 0
    for process in _with_children(nodes):
        with contextlib.suppress(psutil.NoSuchProcess):
            found += process.memory_full_info().pss
    return found


def _cpu(nodes: list[psutil.Process]) -> float:
    return sum(sum(node.cpu_times()[:2]) for node in nodes)
