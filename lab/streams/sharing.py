"""What one more stream costs a container: as one topology in its Spark session, and as modules on threads."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import psutil

from lab.streams.cluster import Cluster, eventually
from storm_on_spark.cluster.zookeeper.server import ZooKeeperServer

_PATIENCE_SECS: Final = 120.0
DEFINITIONS: Final = {"idle": "time --fixedDelay=3600 | log", "a message a second": "time | log"}


MODES: Final[dict[str, tuple[bool, dict[str, object]]]] = {
    "threads": (False, {}),
    "micro-batches": (True, {"topology.profile": "latency"}),
    "real time": (True, {}),
}
"""Whether a stream is one topology, and the container's configuration."""


def share(home: Path, sizes: Sequence[int], load: str, mode: str, settle: float, secs: float) -> list[dict[str, Any]]:
    """Deploys streams in one container, step by step, and measures it at each number of them.

    Args:
        home: a folder that is not there.
        sizes: the numbers of streams, ascending.
        load: which of `DEFINITIONS` all of them have.
        mode: which of `MODES`.
        settle: seconds between deploying and measuring: Spark compiles what it has executed often.
        secs: for which processor time is measured.

    Returns:
        For each number, of the container and all processes that it started: megabytes (memory that processes share
        counts once), cores, processes and threads; and the median of the seconds that a stream took until it ran.
    """
    home.mkdir(parents=True)
    fused, conf = MODES[mode]
    found: list[dict[str, Any]] = []
    with ZooKeeperServer(home / "zookeeper", tick=0.2) as server, Cluster(home, server.connect_string, conf=conf) as xd:
        xd.start(admins=1, containers=1)
        (node,) = xd.containers.values()
        root = psutil.Process(node.pid)
        there = 0
        before: dict[str, Any] | None = None
        for size in sizes:
            took: list[float] = []
            while there < size:
                start = time.monotonic()
                xd.create(f"s{there}", DEFINITIONS[load])
                xd.deploy(f"s{there}", fused=fused)
                eventually(partial(_runs, xd, f"s{there}"), xd.logs, _PATIENCE_SECS)
                took.append(time.monotonic() - start)
                there += 1
            time.sleep(settle)
            now = measured(root, secs)
            states = [xd.state(f"s{number}") for number in range(there)]
            row: dict[str, Any] = {
                "load": load,
                "mode": mode,
                "streams": there,
                **now,
                "seconds_until_one_more_runs": round(statistics.median(took), 1),
                "deployed": states.count("deployed"),
            }
            if before is not None:
                more = there - before["streams"]
                row["megabytes_of_one_more"] = round((now["megabytes"] - before["megabytes"]) / more, 1)
                row["percent_of_a_core_of_one_more"] = round(100 * (now["cores"] - before["cores"]) / more, 2)
            found.append(row)
            before = row
    return found


def measured(root: psutil.Process, secs: float) -> dict[str, Any]:
    """Returns what a process and all that it started need for a while."""
    used, began = _seconds(root), time.monotonic()
    time.sleep(secs)
    used_then, elapsed = _seconds(root), time.monotonic() - began
    memory: dict[str, float] = {}
    count = threads = 0
    for process in _tree(root):
        with contextlib.suppress(psutil.NoSuchProcess):
            kind = _kind(process, root)
            memory[kind] = memory.get(kind, 0) + process.memory_full_info().pss / 2**20
            count += 1
            threads += process.num_threads()
    cores = {kind: used_then[kind] - used.get(kind, 0) for kind in used_then}
    return {
        "megabytes": round(sum(memory.values())),
        "cores": round(sum(cores.values()) / elapsed, 4),
        "processes": count,
        "threads": threads,
        "megabytes_by_process": {kind: round(size) for kind, size in sorted(memory.items())},
        "cores_by_process": {kind: round(seconds / elapsed, 4) for kind, seconds in sorted(cores.items())},
    }


def _runs(xd: Cluster, name: str) -> bool:
    return xd.state(name) == "deployed"


def _tree(root: psutil.Process) -> list[psutil.Process]:
    return [root, *root.children(recursive=True)]


def _seconds(root: psutil.Process) -> dict[str, float]:
    found: dict[str, float] = {}
    for process in _tree(root):
        with contextlib.suppress(psutil.NoSuchProcess):
            kind = _kind(process, root)
            found[kind] = found.get(kind, 0) + sum(process.cpu_times()[:2])
    return found


def _kind(process: psutil.Process, root: psutil.Process) -> str:
    if process == root:
        return "container"
    command = process.cmdline()
    if any("java" in part for part in command[:1]):
        return "JVM"
    text = " ".join(command)
    if "python_streaming_source_runner" in text:
        return "source readers"
    if "daemon" in text:
        return "Python workers"
    return next((part.rsplit(".", 1)[-1] for part in command if part.startswith("storm_on_spark.")), text[-60:])
