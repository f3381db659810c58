"""Many DRPC clients at once: how many requests a second are answered, and whether each answer is right.

Usage: python -m lab.benchmarks.studies.drpc_clients [--clients N] [--requests N] [--profile NAME] [--kills]

A bolt counts how often it gets each number, and answers with the number and that count: an answer is right if the
count is 1. With `--kills` the process that executes the bolt dies at some numbers, as a request is worked on, and the
process of the spout is killed once. A request may then end without an answer, by a declared error; none may be
answered wrongly, counted twice, or be without an end.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from storm_on_spark import BaseBasicBolt, Fields, LocalCluster, LocalDRPC, Topology
from storm_on_spark.drpc import DRPCClient, DRPCExecutionException, LinearDRPCTopologyBuilder
from storm_on_spark.testing import crash, crashes

FUNCTION = "count"
TOTAL = "total"
"""The argument that is answered by how many numbers were counted, and how often all of them together."""
_REQUEST_SECS = 60
_WARM_UP = 200


class Counting(BaseBasicBolt):
    """Counts how often it gets each number.

    Args:
        folder: for the traces of its deaths.
        dies_at: the numbers at which its process dies, once each.
    """

    def __init__(self, folder: str, dies_at: frozenset[str]) -> None:
        self._folder, self._dies_at = folder, dies_at

    def prepare(self, conf: Mapping[str, Any], context: Any) -> None:
        self.times: dict[str, int] = {}

    def execute(self, tup: Any, collector: Any) -> None:
        request, number = tup
        if number == TOTAL:
            collector.emit([request, f"{len(self.times)} {sum(self.times.values())}"])
            return
        self.times[number] = self.times.get(number, 0) + 1
        if number in self._dies_at:
            crash(Path(self._folder) / f"crash-{number}")
        collector.emit([request, f"{number} {self.times[number]}"])

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("id", "result"))


def build(drpc: LocalDRPC, folder: Path, dies_at: Iterable[int] = ()) -> Topology:
    """Returns the topology."""
    builder = LinearDRPCTopologyBuilder(FUNCTION)
    builder.add_bolt(Counting(str(folder), frozenset(map(str, dies_at))))
    return builder.create_local_topology(drpc)


@dataclass
class Answers:
    """What came of all requests."""

    answered: int = 0
    wrong: list[str] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    millis: list[float] = field(default_factory=list)
    secs: float = 0.0


def ask(drpc: LocalDRPC, clients: int, numbers: Iterable[int]) -> Answers:
    """Asks for each number once, by so many clients at once, each with a connection of its own."""
    given, lock, found = iter(numbers), threading.Lock(), Answers()
    address = drpc.calls
    conf = {"drpc.servers": [address.host], "nimbus.auth.token.file": address.token_file}

    def run() -> None:
        with DRPCClient(conf, port=address.port, timeout_secs=2 * _REQUEST_SECS) as client:
            while True:
                with lock:
                    number = next(given, None)
                if number is None:
                    return
                began, error, answer = time.perf_counter(), None, ""
                try:
                    answer = client.execute(FUNCTION, str(number))
                except DRPCExecutionException as caught:
                    error = caught.type.name
                took = time.perf_counter() - began
                with lock:
                    found.millis.append(1000 * took)
                    if error is not None:
                        found.errors[error] += 1
                    elif answer == f"{number} 1":
                        found.answered += 1
                    else:
                        found.wrong.append(answer)

    threads = [threading.Thread(target=run, daemon=True) for _ in range(clients)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found.secs = time.perf_counter() - began
    return found


def kill_spouts() -> int:
    """Kills the processes of this one that run spouts; returns how many."""
    hosts = [child for child in psutil.Process().children(recursive=True) if "spout_host" in " ".join(_words(child))]
    for host in hosts:
        host.kill()
    return len(hosts)


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def main() -> int:
    """Measures and prints; returns 1 if something was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--requests", type=int, default=30_000)
    parser.add_argument("--profile", default="realtime", help="topology.profile")
    parser.add_argument("--kills", action="store_true", help="let processes die meanwhile")
    options = parser.parse_args()
    dies_at = [options.requests // 6, options.requests // 2] if options.kills else []
    conf = {"drpc.request.timeout.secs": _REQUEST_SECS}
    with tempfile.TemporaryDirectory() as name, LocalDRPC(conf) as drpc, LocalCluster() as cluster:
        folder, killed = Path(name), list[int]()
        cluster.submit_topology(FUNCTION, {"topology.profile": options.profile}, build(drpc, folder, dies_at))
        ask(drpc, options.clients, range(-_WARM_UP, 0))

        def numbers() -> Iterable[int]:
            for number in range(options.requests):
                if options.kills and number == 5 * options.requests // 6:
                    killed.append(kill_spouts())
                yield number

        found = ask(drpc, options.clients, numbers())
        counted, times = map(int, drpc.execute(FUNCTION, TOTAL).split())
        died = [crashes(folder / f"crash-{number}") for number in dies_at]
    cuts = statistics.quantiles(found.millis, n=100)
    print(
        f"{options.profile}: {found.answered:,} of {options.requests:,} requests of {options.clients} clients answered "
        f"in {found.secs:.1f} s, {options.requests / found.secs:,.0f} a second; p50 {cuts[49]:.1f} ms, p99 "
        f"{cuts[98]:.1f} ms; errors {dict(found.errors)}, wrong {found.wrong[:5]}; {counted:,} numbers counted, "
        f"{times - counted} of them again; bolts died {sum(died)} times, spouts {sum(killed)}"
    )
    answered = found.answered + _WARM_UP
    right = not found.wrong and counted == times and answered <= counted <= options.requests + _WARM_UP
    faults = not options.kills or (died == [1, 1] and killed == [1])
    return 0 if right and faults and (options.kills or found.answered == options.requests) else 1


if __name__ == "__main__":
    sys.exit(main())
