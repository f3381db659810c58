"""A Nimbus that reads all heartbeats every ten seconds.

    python -m lab.benchmarks.pacemaker.nimbus ours|storm|zookeeper CORE WORKERS HOST:PORT...

It prints for each read how long it took, how many heartbeats and how many bytes it found, and ends with its input.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import sys
import time
from collections.abc import Callable
from typing import Any

from kazoo.client import KazooClient

from lab.benchmarks.pacemaker.wire import FOLDER, path_of
from storm_on_spark.cluster.errors import PacemakerError
from storm_on_spark.cluster.heartbeats.connection import Connection
from storm_on_spark.cluster.heartbeats.pulses import PulseReader
from storm_on_spark.cluster.heartbeats.settings import PacemakerSettings
from storm_on_spark.cluster.pacemaker.messages import MessageType, Pulse

PERIOD = 10.0
_AT_ONCE = 500


def main() -> None:
    """Reads until its input ends."""
    way, core, workers, *servers = sys.argv[1:]
    os.sched_setaffinity(0, {int(core)})
    # It shares the generator's core, and comes after it.
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    ways = {"ours": _ours, "storm": lambda names: _storm(names, int(workers)), "zookeeper": _zookeeper}
    read = ways[way](servers)
    while True:
        began = time.monotonic()
        values = read()
        took = time.monotonic() - began
        print(json.dumps({"secs": took, "heartbeats": len(values), "bytes": sum(values)}), flush=True)
        if select.select([sys.stdin], [], [], max(0.0, PERIOD - took))[0]:
            return


def _connections(servers: list[str]) -> list[Connection]:
    settings = PacemakerSettings(tuple(servers), timeout_secs=10.0)
    return [Connection(server, settings) for server in servers]


def _ours(servers: list[str]) -> Callable[[], list[int]]:
    readers = list(map(PulseReader, _connections(servers)))

    def read() -> list[int]:
        found: dict[str, int] = {}
        for reader in readers:
            # One of several that has died; a Nimbus reads the others.
            with contextlib.suppress(PacemakerError) if len(readers) > 1 else contextlib.nullcontext():
                found.update((path, len(value)) for path, value in reader.read_tree(FOLDER).items())
        return list(found.values())

    return read


def _storm(servers: list[str], workers: int) -> Callable[[], list[int]]:
    """As Storm's Nimbus does: it knows from assignments which workers there are, and asks for each by itself."""
    connections = _connections(servers)
    requests = [(MessageType.GET_PULSE, path_of(worker)) for worker in range(workers)]

    def read() -> list[int]:
        replies = [reply for connection in connections for reply in connection.ask(requests)]
        return [len(reply.data.details or b"") for reply in replies if isinstance(reply.data, Pulse)]

    return read


def _zookeeper(servers: list[str]) -> Callable[[], list[int]]:
    client = KazooClient(",".join(servers), timeout=60)
    client.start(60)

    def read() -> list[int]:
        folders = client.get_children(FOLDER)
        names = _gather(lambda folder: client.get_children_async(f"{FOLDER}/{folder}"), folders)
        paths = [f"{FOLDER}/{folder}/{name}" for folder, below in zip(folders, names, strict=True) for name in below]
        return [len(data) for data, _ in _gather(client.get_async, paths)]

    return read


def _gather(ask: Callable[[str], Any], names: list[str]) -> list[Any]:
    found: list[Any] = []
    for start in range(0, len(names), _AT_ONCE):
        found += [result.get(60) for result in [ask(name) for name in names[start : start + _AT_ONCE]]]
    return found


if __name__ == "__main__":
    main()
